"""report.html: a suite's report as a self-contained file that can be viewed offline.

    header, sweeps, suite table
    run: verdict, sentences, numbers, chart, checks, gates, ledger, facts     (per run)
    library and series, compressed                                 (unpacked by a script)

The chart library is plotly.js from the installed Python package `plotly`.
"""

import os
import shlex
from datetime import UTC, datetime
from pathlib import Path
from urllib.parse import quote

from windtunnel.harness.artifact.documents import DocumentError
from windtunnel.harness.artifact.middlebox.frame_class import NAMES
from windtunnel.harness.artifact.regular_file import replace_file
from windtunnel.harness.artifact.run.suite import Suite
from windtunnel.harness.artifact.run.verdict import observations_of
from windtunnel.harness.artifact.run_dir import RunDir
from windtunnel.harness.artifact.suite_dir import SuiteDir
from windtunnel.reports import observed, tables
from windtunnel.reports.charts.chart_document import Limits, chart_document, is_reduced, limits_of
from windtunnel.reports.charts.packing import library, pack, packed
from windtunnel.reports.charts.series import RunSeries
from windtunnel.reports.charts.series_reader import read_series
from windtunnel.reports.comparison import comparisons
from windtunnel.reports.evidence import RunDocuments, read_run, read_suite, worst
from windtunnel.reports.finding_tables import findings
from windtunnel.reports.html import (
    CHART_SCRIPTS,
    Markup,
    badge,
    element,
    joined,
    number,
    page,
    page_header,
    text,
)
from windtunnel.reports.sweep.section import sweeps

CHARTS_MAX = 12
"""Maximum number of runs with charts, to keep the page small. Failed runs take precedence."""


def write_suite_report(suite_dir: Path) -> Path:
    """Write a suite's report and return the report's path.

    Incomplete suites are reported too. Raises DocumentError if the folder contains neither a suite
    nor runs.
    """
    folder = SuiteDir(suite_dir)
    suite, runs = read_suite(folder)
    if suite is None and not runs:
        raise DocumentError(f"{suite_dir}: contains neither a suite nor a run folder")
    with_chart = {each.run.path.name for each in sorted(runs, key=_is_uneventful)[:CHARTS_MAX]}
    drawn = [
        (run, read_series(run.run) if run.run.path.name in with_chart else None, f"run-{index}")
        for index, run in enumerate(runs)
    ]
    return _write(folder, suite, drawn)


def write_run_report(run_dir: Path) -> Path:
    """Write a single run's report to the run folder, and return the report's path."""
    run = read_run(RunDir(run_dir))
    return _write(SuiteDir(run_dir), None, [(run, read_series(run.run), "run-0")])


def _write(
    folder: SuiteDir,
    suite: Suite | None,
    runs: list[tuple[RunDocuments, RunSeries | None, str]],
) -> Path:
    replace_file(folder.report, _page(folder, suite, runs))
    return folder.report


def _is_uneventful(run: RunDocuments) -> bool:
    return run.outcome == "PASS"


def _page(
    folder: SuiteDir,
    suite: Suite | None,
    runs: list[tuple[RunDocuments, RunSeries | None, str]],
) -> str:
    limits = limits_of([series for _, series, _ in runs if series is not None])
    body = joined(
        [
            _header(folder, suite, [run for run, _, _ in runs]),
            element(
                "main",
                joined(
                    [
                        *sweeps([(run, anchor) for run, _, anchor in runs]),
                        _overview(suite, runs),
                        *comparisons([(run, series) for run, series, _ in runs]),
                        *(_run(folder, *each, limits) for each in runs),
                    ]
                ),
            ),
            element("footer", "Windtunnel · generated from the run folders next to this file"),
            library() if runs else "",
        ]
    )
    title = f"{worst([run.outcome for run, _, _ in runs])} · Windtunnel {folder.path.name}"
    return page(title, body, ["report.css"], CHART_SCRIPTS)


def _overview(
    suite: Suite | None, runs: list[tuple[RunDocuments, RunSeries | None, str]]
) -> Markup:
    """Return the tables of all runs and scenarios as a section. It is empty for a single run, whose
    own section begins with the same figures.
    """
    scenarios = tables.scenario_table(suite)
    if len(runs) == 1 and not scenarios:
        return Markup("")
    return element("section", joined([tables.suite_table(runs), scenarios]), class_="card")


def _header(folder: SuiteDir, suite: Suite | None, runs: list[RunDocuments]) -> Markup:
    facts = [folder.path.name, f"{len(runs)} run{'' if len(runs) == 1 else 's'}"]
    if suite is not None:
        started = datetime.fromtimestamp(suite.started_ns / 1e9, UTC)
        facts += [suite.fidelity, f"{started:%Y-%m-%d %H:%M:%S} UTC"]
        if suite.exit_code is not None:
            facts += [
                f"{(suite.ended_ns - suite.started_ns) / 1e9:.1f} s",
                f"exit code {suite.exit_code}",
            ]
        else:
            facts.append("not finished")
    return page_header("Windtunnel", worst([run.outcome for run in runs]), facts)


def _run(
    folder: SuiteDir, run: RunDocuments, series: RunSeries | None, anchor: str, limits: Limits
) -> Markup:
    notes = [*run.notes, *(series.notes if series else [])]
    parts: list[object] = [
        element(
            "div",
            joined([badge(run.outcome), element("h2", run.scenario)]),
            class_="run-head",
        ),
        element("p", run.reason, class_="reason"),
        observed.sentences(run),
        tables.results(run),
        element("p", run.subjects, class_="facts") if run.subjects else "",
        tables.tiles(run, series),
        _errors(run),
        element("ul", joined(element("li", note) for note in notes), class_="notes")
        if notes
        else "",
        _chart(run, series, anchor, limits),
        observed.lists(run),
        _captures(folder, run),
        findings(run),
        tables.ledger(run),
        tables.facts(run),
        _repro(run),
    ]
    return element("section", joined(parts), class_="card", id=anchor)


def _errors(run: RunDocuments) -> Markup:
    errors = run.manifest.errors if run.manifest else []
    if not errors:
        return Markup("")
    return element("ul", joined(element("li", each) for each in errors), class_="notes broken")


def _chart(run: RunDocuments, series: RunSeries | None, anchor: str, limits: Limits) -> Markup:
    if series is None:
        return element(
            "p",
            joined(
                [
                    f"Only {CHARTS_MAX} runs of a suite have charts. For this run: ",
                    element("code", _command("report", run)),
                ]
            ),
            class_="hint",
        )
    if not series.streams:
        return Markup("")
    document = chart_document(series, run.rule_names(), observations_of(run.verdict), limits)
    document["frame_names"] = {str(code): name for code, name in NAMES.items()}
    place = element("div", "loading chart …", class_="chart", data_series=f"series-{anchor}")
    hint = _left_out(run, series, limits)
    return joined([place, hint, packed(f"series-{anchor}", pack(document))])


def _left_out(run: RunDocuments, series: RunSeries, limits: Limits) -> Markup:
    """Return how many points a line has, if that is not all, and the command that draws more."""
    if not is_reduced(series, limits):
        return Markup("")
    parts: list[object] = [
        f"To keep the page small, a line has at most {number(limits.points)} points"
    ]
    if limits_of([series]) != limits:
        parts += [". To draw more: ", element("code", _command("report", run))]
    return element("p", joined(parts), class_="hint")


def _captures(folder: SuiteDir, run: RunDocuments) -> Markup:
    """Return a run's capture analysis as HTML, or the command that would create the analysis."""
    if not run.capture_summary:
        if not any(run.run.captures.glob("*.pcap*")):
            return Markup("")
        command = element("code", _command("analyze --report", run))
        return element(
            "p", joined(["Analyse loss and repair in the captures: ", command]), class_="hint"
        )
    page = quote(os.path.relpath(run.run.analysis_page, folder.path))
    link = element("a", "Captures", href=page) if run.run.analysis_page.is_file() else ""
    lines = element(
        "ul", joined(element("li", line) for line in run.capture_summary), class_="capture-summary"
    )
    return joined([element("h3", link or "Captures"), lines])


def _command(verb: str, run: RunDocuments) -> str:
    """Return a command line for a run. It has the run's absolute path, so it works in any
    directory.
    """
    return f"windtunnel {verb} {shlex.quote(str(run.run.path.resolve()))}"


def _repro(run: RunDocuments) -> Markup:
    if not run.repro:
        return Markup("")
    copy = element("button", "copy", type="button", data_copy="")
    return element("div", joined([element("code", run.repro), text(copy)]), class_="repro")
