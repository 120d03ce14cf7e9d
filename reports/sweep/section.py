"""The section of a sweep on the page: charts of each stream, and a table of the runs."""

from collections.abc import Iterator, Sequence

from windtunnel.harness.artifact.rate_text import rate_text
from windtunnel.harness.artifact.run.result_row import NS_PER_MS, ResultRow
from windtunnel.harness.artifact.run.verdict import result_rows_of
from windtunnel.reports.evidence import RunDocuments
from windtunnel.reports.html import Markup, badge, element, joined, number, table
from windtunnel.reports.sweep.drawing import chart
from windtunnel.reports.sweep.lines import (
    FIGURES,
    Stream,
    lines_of,
    short,
    swept_names,
)

Anchored = tuple[RunDocuments, str]
"""A run, and the name of its section on the page."""


def sweeps(runs: Sequence[Anchored]) -> list[Markup]:
    """Return a section of the page for each sweep among the runs of a suite."""
    by_name: dict[str, list[Anchored]] = {}
    for run, anchor in runs:
        if run.summary is not None and run.summary.sweep:
            by_name.setdefault(run.summary.sweep, []).append((run, anchor))
    return [_card(name, each) for name, each in by_name.items()]


def _card(name: str, runs: list[Anchored]) -> Markup:
    names = swept_names([run for run, _ in runs])
    parts: list[object] = [element("h2", f"Sweep of {name}")]
    if names:
        for stream in _streams(runs):
            charts = list(_charts([run for run, _ in runs], stream, names))
            if charts:
                title = f"{stream[0]}: {stream[1]} to {stream[2]}"
                parts += [element("h3", title), element("div", joined(charts), class_="sweep")]
    parts.append(_table(runs, names))
    return element("section", joined(parts), class_="card")


def _streams(runs: Sequence[Anchored]) -> list[Stream]:
    rows = (row for run, _ in runs for row in result_rows_of(run.verdict))
    return list(dict.fromkeys((row.traffic, row.from_host, row.to_host) for row in rows))


def _charts(runs: Sequence[RunDocuments], stream: Stream, names: Sequence[str]) -> Iterator[Markup]:
    """Yield a chart of each figure that is known of a stream."""
    for figure in FIGURES:
        axis, lines = lines_of(runs, stream, names, figure.value)
        values = [value for each in lines for value in each.known]
        if values:
            size, unit = figure.unit_for(values)
            title = f"{figure.title} ({unit})"
            yield chart(title, [each.divided_by(size) for each in lines], axis, names[0])


def _table(runs: Sequence[Anchored], names: Sequence[str]) -> Markup:
    """Return a table with a row for each run and stream."""
    heads = [("verdict", ""), *((short(name), "text") for name in names), ("seed", "number")]
    heads += [("stream", "text"), ("goodput", "number"), ("repair p50", "number")]
    heads += [("repair p99", "number"), ("lost", "number"), ("sent again", "number")]
    rows = []
    for run, anchor in runs:
        settings = run.summary.settings if run.summary is not None else {}
        values = [settings.get(name) for name in names]
        start = [element("a", badge(run.outcome, "small"), href=f"#{anchor}"), *values, run.seed]
        found = result_rows_of(run.verdict)
        rows += [[*start, *_cells(row)] for row in found] or [[*start, *[None] * 6]]
    return table(heads, rows, class_="compared")


def _cells(row: ResultRow) -> list[object]:
    rate, *repairs = row.reached_bytes_per_s, row.repair_p50_ns, row.repair_p99_ns
    texts = [None if each is None else f"{number(each / NS_PER_MS, 2)} ms" for each in repairs]
    goodput = None if rate is None else rate_text(rate)
    return [row.traffic, goodput, *texts, number(row.lost_frames), number(row.resent_frames)]
