"""HTML comparisons of runs: their figures side by side, and their positions on one time axis.

suite of several seeds     a comparison for each scenario          run-1 | run-2 | run-3
matrix                     a comparison of the driver pairs        pair 1 | pair 2
`windtunnel compare`       a page of any runs
"""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import PurePath

from windtunnel.harness.artifact.documents import DocumentError
from windtunnel.harness.artifact.noun_form import counted
from windtunnel.harness.artifact.run.comparison import (
    ComparedRun,
    brief_cells,
    compared_streams,
    found_first,
)
from windtunnel.harness.artifact.run.manifest import Manifest, version_text
from windtunnel.harness.artifact.run.verdict import read_verdict, result_rows_of
from windtunnel.harness.artifact.run_dir import RunDir
from windtunnel.harness.scenario.explain.parameters import case_parameters
from windtunnel.harness.scenario.resolved.case import Case
from windtunnel.reports.charts.chart_document import comparison_document
from windtunnel.reports.charts.packing import pack, packed
from windtunnel.reports.charts.series import RunSeries
from windtunnel.reports.evidence import RunDocuments
from windtunnel.reports.html import Markup, badge, element, joined, table

COLUMNS_MAX = 8
"""Maximum number of runs in a comparison. There are as many chart colours."""

Drawn = tuple[RunDocuments, RunSeries | None]


def compared_runs(runs: Sequence[RunDir]) -> list[ComparedRun]:
    """Return the parameters of runs, and the figures from their verdicts. Raises DocumentError if a
    verdict is missing or invalid.
    """
    names = distinct_names([run.path for run in runs])
    found = []
    for name, run in zip(names, runs, strict=True):
        verdict = read_verdict(run.verdict)
        if verdict is None:
            text = f"expected a verdict, found none: run `windtunnel judge {run.path}`"
            raise DocumentError(f"{run.path}: {text}")
        compared = _compared(name, RunDocuments(run, verdict=verdict))
        try:
            found.append(replace(compared, parameters=_parameters(run)))
        except (OSError, ValueError) as error:
            found.append(replace(compared, unknown=_reason(error)))
    return found


def _reason(error: OSError | ValueError) -> str:
    """Return the reason why a file with parameters cannot be read, in one line."""
    if isinstance(error, OSError) and error.filename is not None:
        return f"{PurePath(error.filename).name}: {error.strerror}"
    return str(error).splitlines()[0]


def _parameters(run: RunDir) -> dict[str, str]:
    """Return a run's parameters: its scenario's, its drivers' and the versions of what it used.
    Raises OSError or ValueError if a file with them is missing or damaged.
    """
    case, manifest = Case.read(run.case), Manifest.read(run.manifest)
    if manifest is None:
        raise DocumentError(f"{run.manifest.name}: no such file")
    found = case_parameters(case)
    own = manifest.versions.get("windtunnel", "")
    for host, subject in manifest.subjects.items():
        driver = f"{subject.peer} {version_text(subject.version, own)}".rstrip()
        found[f"driver.{host}"] = driver
        found |= {f"driver.{host}.{name}": text for name, text in subject.settings.items()}
    named = {"mutant": manifest.mutant, "sabotage": manifest.sabotage}
    found |= {name: text for name, text in named.items() if text}
    return found | {f"version.{name}": text for name, text in manifest.versions.items()}


def distinct_names(paths: Sequence[PurePath]) -> list[str]:
    """Return the last components of each path, as many as are needed to distinguish the paths."""
    for count in range(1, max(len(path.parts) for path in paths) + 1):
        names = ["/".join(path.parts[-count:]) for path in paths]
        if len(set(names)) == len(names):
            break
    return names


def comparisons(runs: Sequence[Drawn]) -> list[Markup]:
    """Compare the runs of each scenario in one section of a page. A section is empty if fewer than
    two of the runs have figures.
    """
    by_scenario: dict[str, list[Drawn]] = {}
    for run, series in runs:
        if run.verdict.get("results"):
            by_scenario.setdefault(run.scenario, []).append((run, series))
    return [
        comparison_card(f"Comparison of {scenario}", _body(each, f"compared-{index}"))
        for index, (scenario, each) in enumerate(by_scenario.items())
    ]


def comparison_card(title: str, body: Markup) -> Markup:
    """Return a comparison as a section of a page, or an empty string if there is nothing to
    compare.
    """
    if not body:
        return body
    return element("section", joined([element("h2", title), body]), class_="card")


def figures(runs: Sequence[tuple[str, RunDocuments]]) -> Markup:
    """Return an HTML table of each stream's figures, with one column per run."""
    shown = [_compared(name, run) for name, run in runs if run.verdict.get("results")]
    parts: list[Markup] = []
    if len(shown) < 2:
        return Markup("")
    if len(shown) > COLUMNS_MAX:
        text = f"The first {COLUMNS_MAX} of {len(shown)} runs; `windtunnel compare` shows all."
        parts.append(element("p", text, class_="hint"))
        shown = shown[:COLUMNS_MAX]
    named, found, others = found_first(compared_streams(shown))
    for stream in named:
        heads = [(stream.name, "text"), *((run.name, "text") for run in shown)]
        rows: list[list[object]] = [["verdict", *(badge(run.outcome, "small") for run in shown)]]
        rows += [[element("b", title), *texts] for title, texts in stream.cells()]
        parts.append(table(heads, rows, class_="compared"))
    if found:
        heads = [("streams that the captures show", "text"), *((run.name, "text") for run in shown)]
        brief: list[list[object]] = [
            [element("b", each.name), *each.brief_cells()] for each in found
        ]
        if others:
            brief.append([counted(len(others), "more stream"), *brief_cells(others)])
        parts.append(table(heads, brief, class_="compared"))
    return joined(parts)


def positions(runs: Sequence[tuple[str, RunSeries]], anchor: str) -> Markup:
    """Return a chart of each stream's positions in all runs, on one time axis."""
    document = comparison_document(runs)
    if not document["streams"]:
        return Markup("")
    place = element("div", "loading chart …", class_="chart", data_series=f"series-{anchor}")
    return joined([place, packed(f"series-{anchor}", pack(document))])


def _body(runs: Sequence[Drawn], anchor: str) -> Markup:
    names = distinct_names([run.run.path for run, _ in runs])
    named = list(zip(names, runs, strict=True))
    table_of = figures([(name, run) for name, (run, _) in named])
    drawn = [(name, series) for name, (_, series) in named[:COLUMNS_MAX] if series is not None]
    return joined([table_of, positions(drawn, anchor) if len(drawn) > 1 else ""])


def _compared(name: str, run: RunDocuments) -> ComparedRun:
    return ComparedRun(name, run.outcome, tuple(result_rows_of(run.verdict)))
