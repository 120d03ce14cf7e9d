"""The page of `windtunnel compare`: runs side by side in one file that can be viewed offline."""

from collections.abc import Sequence
from pathlib import Path

from windtunnel.harness.artifact.noun_form import noun_for
from windtunnel.harness.artifact.regular_file import replace_file
from windtunnel.harness.artifact.run_dir import RunDir
from windtunnel.reports.charts.packing import library
from windtunnel.reports.charts.series_reader import read_series
from windtunnel.reports.comparison import COLUMNS_MAX, distinct_names, figures, positions
from windtunnel.reports.evidence import read_run, worst
from windtunnel.reports.html import CHART_SCRIPTS, Markup, element, joined, page, page_header


def write_comparison(runs: Sequence[RunDir], path: Path) -> Path:
    """Write an HTML page that compares runs, and return the page's path. Raises OSError if the page
    cannot be written.
    """
    replace_file(path, comparison_page(runs))
    return path


def comparison_page(runs: Sequence[RunDir]) -> str:
    """Return an HTML page that compares runs."""
    names = distinct_names([run.path for run in runs])
    documents = [read_run(run) for run in runs]
    drawn = [
        (name, read_series(run)) for name, run in list(zip(names, runs, strict=True))[:COLUMNS_MAX]
    ]
    notes = [
        f"{name}: {note}"
        for name, document, (_, series) in zip(names, documents, drawn, strict=False)
        for note in (*document.notes, *series.notes)
    ]
    card = [
        figures(list(zip(names, documents, strict=True))),
        positions(drawn, "compared"),
        element("ul", joined(element("li", note) for note in notes), class_="notes")
        if notes
        else "",
    ]
    outcome = worst([each.outcome for each in documents])
    facts = [f"{len(runs)} {noun_for(len(runs), 'run')}"]
    body: list[Markup] = [
        page_header("Windtunnel comparison", outcome, facts),
        element("main", element("section", joined(card), class_="card")),
        element("footer", "Windtunnel · generated from the run folders"),
        library(),
    ]
    return page(f"{outcome} · Windtunnel comparison", joined(body), ["report.css"], CHART_SCRIPTS)
