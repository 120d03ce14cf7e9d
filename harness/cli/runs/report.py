"""`windtunnel report`: regenerates the HTML report of a suite, run or matrix."""

import os
from collections.abc import Callable
from pathlib import Path

import click


@click.command(short_help="Regenerate the HTML report of a suite, run or matrix.")
@click.argument("suite_dir", type=click.Path(exists=True, file_okay=False, path_type=Path))
def report(suite_dir: Path) -> None:
    """Regenerate the HTML report of SUITE_DIR from its run folders.

    SUITE_DIR can also be a run folder, for a page about this run only, or a matrix folder, for the
    matrix page and the reports of all driver pairs.
    """
    from windtunnel.harness.artifact.regular_file import untrusted_folder
    from windtunnel.harness.artifact.run_dir import RunDir
    from windtunnel.harness.artifact.suite_dir import MatrixDir
    from windtunnel.harness.cli.failure import one_line
    from windtunnel.harness.cli.render.table import echo
    from windtunnel.reports.matrix_page import write_matrix_page
    from windtunnel.reports.page import write_run_report, write_suite_report

    folder = untrusted_folder(suite_dir)
    write: Callable[[Path], Path] = write_suite_report
    if os.path.lexists(RunDir(folder).manifest):
        write = write_run_report
    elif os.path.lexists(MatrixDir(folder).document):
        write = write_matrix_page
    with one_line():
        echo(str(write(folder)))
