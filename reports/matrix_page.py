"""matrix.html: one row per scenario, one column per driver pair. It can be viewed offline.

    header: the matrix, its drivers and their versions
    cells:  worst verdict, passed/total, a small square per run         -> reports of the pairs
    lists:  cells that did not pass, with reasons; unsupported cells separately

A cell links to the worst run in the report of its driver pair. A square links to its run folder.
"""

from datetime import UTC, datetime
from pathlib import Path
from urllib.parse import quote

from windtunnel.harness.artifact.documents import DocumentError
from windtunnel.harness.artifact.noun_form import noun_for
from windtunnel.harness.artifact.regular_file import replace_file
from windtunnel.harness.artifact.run.manifest import version_text
from windtunnel.harness.artifact.run.matrix import Matrix, MatrixCell
from windtunnel.harness.artifact.run.suite import Suite, SuiteRun
from windtunnel.harness.artifact.run_dir import RunDir
from windtunnel.harness.artifact.suite_dir import MatrixDir
from windtunnel.reports.comparison import comparison_card, figures
from windtunnel.reports.evidence import read_run, worst
from windtunnel.reports.html import Markup, badge, element, joined, page, page_header, table
from windtunnel.reports.outcomes import pair_name
from windtunnel.reports.page import write_suite_report

STYLES = ("report.css", "matrix.css")
SCRIPT = "page.js"
UNSUPPORTED = "UNSUPPORTED"


def write_matrix_page(matrix_dir: Path) -> Path:
    """Write the matrix page, and a report for each driver pair with runs. Returns the page's path.

    Raises DocumentError if matrix.json is missing or malformed.
    """
    folder = MatrixDir(matrix_dir)
    matrix = Matrix.read(folder.document)
    if matrix is None:
        raise DocumentError(f"{matrix_dir}: {folder.document.name} not found")
    for name in dict.fromkeys(cell.suite for cell in matrix.cells if _has_runs(cell)):
        if folder.suite(name).document.is_file():
            write_suite_report(folder.suite(name).path)
    replace_file(folder.page, _page(folder, matrix))
    return folder.page


def _has_runs(cell: MatrixCell) -> bool:
    return any(run.outcome != UNSUPPORTED for run in cell.runs)


def _page(folder: MatrixDir, matrix: Matrix) -> str:
    outcome = worst([cell.outcome for cell in matrix.cells if cell.runs])
    body = joined(
        [
            _header(matrix, outcome),
            element(
                "main",
                joined(
                    [
                        element("section", _grid(folder, matrix), class_="card", id="cells"),
                        _findings(folder, matrix),
                        *_comparisons(folder, matrix),
                        _unsupported(matrix),
                        element("section", _peers(matrix), class_="card", id="drivers"),
                    ]
                ),
            ),
            element("footer", "Windtunnel · generated from the documents next to this file"),
        ]
    )
    return page(f"{outcome} · Windtunnel {matrix.matrix_id}", body, STYLES, [SCRIPT])


def _header(matrix: Matrix, outcome: str) -> Markup:
    started = datetime.fromtimestamp(matrix.started_ns / 1e9, UTC)
    run_count = sum(len(cell.runs) for cell in matrix.cells)
    facts = [
        matrix.matrix_id,
        f"{len(matrix.cells)} {noun_for(len(matrix.cells), 'cell')}, {run_count} "
        f"{noun_for(run_count, 'run')}, {matrix.jobs} parallel",
        matrix.fidelity,
        f"{started:%Y-%m-%d %H:%M:%S} UTC",
    ]
    if matrix.exit_code is None:
        facts.append("not finished")
    else:
        facts.append(f"{(matrix.ended_ns - matrix.started_ns) / 1e9:.1f} s")
        facts.append(f"exit code {matrix.exit_code}")
    return page_header("Windtunnel matrix", outcome, facts)


def _grid(folder: MatrixDir, matrix: Matrix) -> Markup:
    """Return the matrix as an HTML table, with scenarios as rows and driver pairs as columns."""
    width = len(matrix.subscribers)
    cells = {(each.scenario, each.publisher, each.subscriber): each for each in matrix.cells}
    top = [element("th", "publisher")]
    top += [
        element("th", name, colspan=width, title=name, class_="pair") for name in matrix.publishers
    ]
    below = [element("th", "subscriber")]
    below += [
        element("th", name, title=name, class_="pair")
        for _ in matrix.publishers
        for name in matrix.subscribers
    ]
    rows = []
    for scenario in dict.fromkeys(each.scenario for each in matrix.cells):
        row = [element("td", element("b", scenario))]
        for publisher in matrix.publishers:
            for subscriber in matrix.subscribers:
                row.append(_cell(folder, cells.get((scenario, publisher, subscriber))))
        rows.append(element("tr", joined(row)))
    head = element("thead", joined([element("tr", joined(top)), element("tr", joined(below))]))
    whole = element("table", joined([head, element("tbody", joined(rows))]), class_="matrix")
    return element("div", whole, class_="scroll")


def _cell(folder: MatrixDir, cell: MatrixCell | None) -> Markup:
    if cell is None:
        return element("td", "")
    if not cell.runs:
        return element("td", element("span", "not run", class_="where"))
    inside = element("b", cell.outcome.lower() if cell.outcome == UNSUPPORTED else cell.outcome)
    if cell.outcome == UNSUPPORTED:
        return element(
            "td", element("div", inside, class_=f"cell {UNSUPPORTED}", title=cell.reason)
        )
    passes = element("span", f"{cell.pass_count}/{len(cell.runs)}")
    link = element(
        "a",
        joined([inside, passes]),
        class_=f"cell {cell.outcome}",
        href=_report_of(folder, cell),
        title=cell.reason,
    )
    squares = joined(
        element(
            "a",
            "",
            class_=run.outcome,
            href=f"{quote(cell.suite)}/{quote(run.folder)}/",
            title=f"seed {run.seed}: {run.outcome}: {run.reason}",
        )
        for run in cell.runs
    )
    return element("td", joined([link, element("div", squares, class_="seeds")]))


def _report_of(folder: MatrixDir, cell: MatrixCell) -> str:
    """Return a link to the run that decided a cell's verdict, in its driver pair's report."""
    suite = folder.suite(cell.suite)
    try:
        found = Suite.read(suite.document)
    except (OSError, ValueError):
        found = None
    folders = [run.folder for run in found.runs] if found else []
    decided = _decisive(cell)
    at = f"#run-{folders.index(decided.folder)}" if decided.folder in folders else ""
    return f"{quote(cell.suite)}/{suite.report.name}{at}"


def _decisive(cell: MatrixCell) -> SuiteRun:
    return next((run for run in cell.runs if run.outcome == cell.outcome), cell.runs[0])


def _findings(folder: MatrixDir, matrix: Matrix) -> Markup:
    """Return an HTML list of the cells that did not pass, with the reasons."""
    heads = [("verdict", ""), ("scenario", "text"), ("pair", "text"), ("reason", "text")]
    rows = [
        [
            badge(cell.outcome, "small"),
            element("a", cell.scenario, href=_report_of(folder, cell)),
            pair_name(cell.publisher, cell.subscriber),
            joined(
                [
                    cell.reason,
                    element("div", f"{cell.suite}/{_decisive(cell).folder}", class_="where"),
                ]
            ),
        ]
        for cell in matrix.cells
        if cell.runs and cell.outcome not in ("PASS", UNSUPPORTED)
    ]
    if not rows:
        return Markup("")
    inside = joined([element("h2", "Not passed"), table(heads, rows)])
    return element("section", inside, class_="card", id="findings")


def _comparisons(folder: MatrixDir, matrix: Matrix) -> list[Markup]:
    """Return a comparison for each scenario, of the first run of each driver pair."""
    cards = []
    for scenario in dict.fromkeys(each.scenario for each in matrix.cells):
        runs = [
            (pair_name(cell.publisher, cell.subscriber), read_run(_first_run(folder, cell)))
            for cell in matrix.cells
            if cell.scenario == scenario and _has_runs(cell)
        ]
        cards.append(comparison_card(f"Figures of {scenario}", figures(runs)))
    return [each for each in cards if each]


def _first_run(folder: MatrixDir, cell: MatrixCell) -> RunDir:
    return RunDir(folder.suite(cell.suite).path / cell.runs[0].folder)


def _unsupported(matrix: Matrix) -> Markup:
    """Return an HTML list of the unsupported cells, grouped by reason."""
    reasons: dict[str, list[str]] = {}
    for cell in matrix.cells:
        if cell.outcome == UNSUPPORTED:
            where = f"{cell.scenario}, {pair_name(cell.publisher, cell.subscriber)}"
            reasons.setdefault(cell.reason, []).append(where)
    if not reasons:
        return Markup("")
    rows = [
        [len(cells), joined([reason, element("div", " · ".join(cells), class_="where")])]
        for reason, cells in reasons.items()
    ]
    heads = [("cells", "number"), ("reason", "text")]
    inside = joined([element("h2", "Not supported here"), table(heads, rows)])
    return element("section", inside, class_="card", id="missing")


def _peers(matrix: Matrix) -> Markup:
    heads = [("driver", "text mono"), ("version", "text")]
    rows = [
        [each.name, version_text(each.version) or each.missing or "unknown"]
        for each in matrix.peers
    ]
    return joined([element("h2", "Drivers"), table(heads, rows)])
