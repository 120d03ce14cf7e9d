"""`windtunnel report`: draw a suite's report again."""

from pathlib import Path

import click


@click.command(short_help="Write a suite's HTML report again.")
@click.argument("suite_dir", type=click.Path(exists=True, file_okay=False, path_type=Path))
def report(suite_dir: Path) -> None:
    """Write the HTML report of SUITE_DIR again, from what its run folders hold.

    SUITE_DIR may also be a single run folder: then a page of that run alone is written into it.
    """
    from harness.artifact.run_dir import RunDir
    from harness.cli.failure import one_line
    from reports.page import write_run_report, write_suite_report

    is_run = RunDir(suite_dir).manifest.is_file()
    with one_line():
        click.echo(str((write_run_report if is_run else write_suite_report)(suite_dir)))
