"""`windtunnel clean`: remove what killed runs left on the machine."""

from pathlib import Path

import click

from harness.cli import exit_code


@click.command(short_help="Remove what killed runs left on this machine.")
@click.option(
    "--out",
    type=click.Path(file_okay=False, path_type=Path),
    default=Path("runs"),
    help="The folder of the runs whose left-overs to remove.  [default: runs]",
)
def clean(out: Path) -> int:
    """Remove every namespace, container, network and qdisc that a run left behind.

    Only what a dead run left: a run that is alive keeps its own. Run folders are kept.
    """
    from harness.cli.failure import one_line
    from harness.orchestrate.clean import remove_left_overs
    from harness.uml import boot

    with one_line():
        removed = remove_left_overs(out) + boot.remove_left_overs()
    for line in removed:
        click.echo(f"removed {line}")
    click.echo(f"{len(removed)} left-overs removed" if removed else "nothing was left over")
    return exit_code.OK
