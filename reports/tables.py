"""HTML tables for a report: the suite overview, and each run's key figures, ledger and facts."""

import itertools
from collections.abc import Iterator

from windtunnel.harness.artifact.middlebox.ledger import LinkAccount
from windtunnel.harness.artifact.run.result_row import (
    ResultRow,
    known_cells,
    rest_text,
    shown_first,
)
from windtunnel.harness.artifact.run.suite import Suite
from windtunnel.harness.artifact.run.verdict import result_rows_of
from windtunnel.reports.charts.marks import LOSSES
from windtunnel.reports.charts.series import RunSeries
from windtunnel.reports.evidence import RunDocuments
from windtunnel.reports.html import Markup, badge, details, element, joined, number, table

MEGABYTE = 1e6


def suite_table(runs: list[tuple[RunDocuments, RunSeries | None, str]]) -> Markup:
    """Return an HTML table of a suite's runs. Each row links to the run's section. Figures that no
    run has are left out: those of observed streams are not counted.
    """
    heads = [
        ("verdict", ""),
        ("scenario", "text"),
        ("seed", "number"),
        ("time to run", "number"),
        ("delivered", "number"),
        ("lost", "number"),
        ("NAKs", "number"),
        ("retransmits", "number"),
        ("gap fills", "number"),
        ("reason", "text"),
    ]
    rows: list[list[object]] = []
    for run, series, anchor in runs:
        kinds = (LOSSES, ("NAK",), ("retransmit",), ("gap fill",))
        counts = [number(count(series, *each)) for each in kinds]
        rows.append(
            [
                badge(run.outcome),
                element("a", run.scenario, href=f"#{anchor}"),
                run.seed,
                duration_text(run),
                delivered_text(series),
                *counts,
                run.reason,
            ]
        )
    known = [any(row[at] is not None for row in rows) for at in range(len(heads))]
    rows = [list(itertools.compress(row, known)) for row in rows]
    return table(list(itertools.compress(heads, known)), rows, class_="suite")


def scenario_table(suite: Suite | None) -> Markup:
    """Return an HTML table of the scenarios that have several runs, a limit or a known failure.

    Remarks on the suite follow the table. The result is empty if there are neither scenarios nor
    remarks to show.
    """
    shown = [
        each
        for each in (suite.scenarios if suite else [])
        if each.runs > 1 or each.limit is not None or each.known
    ]
    heads = [("total", ""), ("scenario", "text"), ("failure rate", "text")]
    rows = [[badge(each.outcome), each.scenario, each.text] for each in shown]
    remarks = [element("p", f"Note: {remark}") for remark in (suite.remarks if suite else [])]
    return joined([table(heads, rows, class_="suite") if rows else "", *remarks])


def count(series: RunSeries | None, *kinds: str) -> int | None:
    """Return the number of events of the given kinds in all streams of the traffic, or None if the
    run had none: the events of observed streams are not counted.
    """
    if series is None or not series.of_traffic.streams:
        return None
    return sum(series.of_traffic.count(kind) for kind in kinds)


def duration_text(run: RunDocuments) -> str | None:
    return None if run.duration_s is None else f"{run.duration_s:.1f} s"


def delivered_text(series: RunSeries | None) -> str | None:
    if series is None or not series.of_traffic.streams:
        return None
    total = sum(stream.delivered_bytes for stream in series.of_traffic.streams)
    return f"{number(total / MEGABYTE, 1)} MB"


def tiles(run: RunDocuments, series: RunSeries | None) -> Markup:
    """Return HTML tiles that show a run's key figures."""
    facts: list[tuple[str, object]] = [
        ("seed", run.seed),
        ("time to run", duration_text(run)),
    ]
    if run.case is None or run.case.traffic:
        facts += _stream_facts(run, series)
    entries = (
        element("li", joined([element("b", value), element("span", name)])) for name, value in facts
    )
    return element("ul", joined(entries), class_="tiles")


def _stream_facts(run: RunDocuments, series: RunSeries | None) -> Iterator[tuple[str, object]]:
    """Yield the titles and values of the figures of a run's traffic."""
    yield "log bytes delivered", delivered_text(series)
    names = (
        ("frames dropped", "dropped"),
        ("frames lost to impairment", "lost to impairment"),
        ("feedback frames lost", "feedback lost"),
        ("frames held", "held"),
        ("frames swapped", "swapped"),
        ("frames displaced", "displaced"),
        ("frames duplicated", "duplicated"),
        ("NAKs", "NAK"),
        ("retransmits", "retransmit"),
        ("gap fills", "gap fill"),
    )
    always = ("dropped", "NAK", "retransmit", "gap fill")
    whose = " of the traffic" if run.case is not None and run.case.observed else ""
    for name, kind in names:
        if kind in always or count(series, kind):
            yield f"{name}{whose}", number(count(series, kind))


def results(run: RunDocuments) -> Markup:
    """Return a run's results as an HTML table, with a row of figures for each stream and
    subscriber. If many streams were found in the captures, those without events are folded.
    """
    shown, others = shown_first(result_rows_of(run.verdict))
    parts = [_results(shown)]
    if others:
        title = "More streams" if shown else "Streams"
        parts.append(details(title, rest_text(others, is_more=False), _results(others)))
    return joined(parts)


def _results(rows: list[ResultRow]) -> Markup:
    if not rows:
        return Markup("")
    titles, texts = known_cells(rows)
    heads = [("stream", ""), *((title, "") for title in titles)]
    body: list[list[object]] = [
        [element("b", f"{row.traffic}: {row.from_host} to {row.to_host}"), *each]
        for row, each in zip(rows, texts, strict=True)
    ]
    return table(heads, body, class_="results")


def ledger(run: RunDocuments) -> Markup:
    """Return the middlebox's ledger as an HTML table, with its counts of datagrams and frames."""
    if run.ledger is None:
        return Markup("")
    links = run.ledger.links
    unaccounted = sum(link.unaccounted for link in links.values())
    remark = "all datagrams accounted for" if unaccounted == 0 else f"{unaccounted} unaccounted"
    heads = [("link", ""), ("unit", "")] + [
        (name, "number")
        for name in ("in", "out", "dropped", "added", "held", "swapped", "unaccounted")
    ]
    rows: list[list[object]] = []
    for name, link in links.items():
        rows.append(_datagrams(name, link))
        for kind, frames in link.frames.items():
            counts = (
                frames.received,
                frames.sent,
                frames.dropped,
                frames.duplicated,
                frames.held,
                frames.swapped,
                frames.unaccounted,
            )
            rows.append(["", kind, *(number(each) for each in counts)])
    return details("Ledger", remark, table(heads, rows))


def _datagrams(name: str, link: LinkAccount) -> list[object]:
    counts = (
        link.datagrams_in,
        link.datagrams_out,
        link.datagrams_dropped,
        link.datagrams_added,
        link.datagrams_held_at_end,
        None,
        link.unaccounted,
    )
    return [element("b", name), element("b", "datagrams"), *(number(each) for each in counts)]


def facts(run: RunDocuments) -> Markup:
    """Return a run's facts as HTML: versions, machine, phases and processes."""
    manifest = run.manifest
    if manifest is None:
        return Markup("")
    known = {**manifest.versions, **manifest.host_facts}
    rows: list[list[object]] = [[name, value] for name, value in known.items()]
    rows += [
        [f"phase {each.name}", f"{(each.ended_ns - each.started_ns) / 1e9:.3f} s"]
        for each in manifest.phases
    ]
    rows += [
        [
            f"process {each.name}",
            "still running" if each.exit_code is None else f"exit code {each.exit_code}",
        ]
        for each in manifest.processes
    ]
    remark = ", ".join(f"{name} {value}" for name, value in manifest.versions.items())
    return details("Facts", remark, table([("fact", ""), ("value", "text mono")], rows))
