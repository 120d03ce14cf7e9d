"""`windtunnel clean`: remove what killed runs left on the machine."""

from functools import partial
from pathlib import Path

import click

from windtunnel.harness.cli import exit_code


@click.command(short_help="Remove what killed runs left on this machine.")
@click.option(
    "--out",
    type=click.Path(file_okay=False, path_type=Path),
    default=Path("runs"),
    help="The folder of the runs whose left-overs to remove.  [default: runs]",
)
def clean(out: Path) -> int:
    """Remove every namespace, container, network and qdisc that a run left behind.

    Only what a dead run of this user left: a run that is alive keeps its own, and what belongs to
    another user is named and left alone. Run folders are kept.
    """
    from windtunnel.harness.orchestrate.lab import LabError
    from windtunnel.harness.orchestrate.teardown.clean import NotAllRemoved, remove_left_overs
    from windtunnel.harness.uml import boot

    removed: list[str] = []
    problems: list[str] = []
    for remove in (partial(remove_left_overs, out), boot.remove_left_overs):
        try:
            removed += remove()
        except NotAllRemoved as error:
            removed += error.removed
            problems += error.problems
        except (LabError, boot.BootError, OSError) as error:
            problems.append(str(error))
    for line in removed:
        click.echo(f"removed {line}")
    for line in problems:
        click.echo(f"Error: not removed: {line}", err=True)
    if problems:
        return exit_code.HARNESS
    click.echo(f"{len(removed)} left-overs removed" if removed else "nothing was left over")
    return exit_code.OK
