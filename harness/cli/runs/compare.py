"""`windtunnel compare`: shows the figures of several runs side by side, with their differences."""

import json
from pathlib import Path

import click

from windtunnel.harness.cli import exit_code
from windtunnel.harness.cli.failure import Failure
from windtunnel.harness.cli.options import in_existing_folder
from windtunnel.harness.cli.runs.run_folders import run_dirs_argument, run_folders

RUNS_MAX = 64
"""Maximum number of runs in a comparison."""


@click.command(short_help="Compare the figures of several runs.")
@run_dirs_argument
@click.option("--json", "as_json", is_flag=True, help="Print one JSON document.")
@click.option(
    "--report",
    type=click.Path(dir_okay=False, path_type=Path),
    callback=in_existing_folder,
    help="Also write a page with the figures, and the positions over time, to this file.",
)
def compare(run_dirs: tuple[Path, ...], as_json: bool, report: Path | None) -> None:
    """Show the figures of several runs side by side, with the differences from the first run, and
    the parameters in which the runs differ: of scenario, seed, drivers, settings and versions.

    RUN_DIR is the folder of a judged run, or a suite folder with several runs. The figures are
    those in verdict.json. The exit code does not depend on them.

    \b
      windtunnel compare runs/<suite>/<run> runs/<other suite>/<run>
      windtunnel compare runs/<suite> --report compare.html
    """
    from windtunnel.harness.artifact.run.comparison import comparison_document
    from windtunnel.harness.artifact.run_dir import RunDir
    from windtunnel.harness.cli.failure import one_line
    from windtunnel.harness.cli.render.results_table import comparison_lines
    from windtunnel.harness.cli.render.table import echo
    from windtunnel.reports.comparison import compared_runs

    with one_line():
        folders = list(dict.fromkeys(run_folders(run_dirs)))
        if not 2 <= len(folders) <= RUNS_MAX:
            text = f"expected 2 to {RUNS_MAX} different runs, found {len(folders)}"
            raise Failure(text, exit_code.USAGE)
        runs = [RunDir(folder) for folder in folders]
        compared = compared_runs(runs)
        if not any(run.rows for run in compared):
            text = "expected figures in the verdicts of these runs, found none: judge them again"
            raise Failure(text, exit_code.INCONCLUSIVE)
        if as_json:
            click.echo(json.dumps(comparison_document(compared)))
        else:
            for line in comparison_lines(compared):
                click.echo(line)
        if report is not None:
            from windtunnel.reports.compare_page import write_comparison

            echo(str(write_comparison(runs, report)), err=as_json)
