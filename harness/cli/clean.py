"""`windtunnel clean`: removes namespaces, containers and other resources of killed runs."""

from functools import partial
from pathlib import Path

import click

from windtunnel.harness.cli import exit_code


@click.command(short_help="Remove namespaces, containers and files left behind by killed runs.")
@click.option(
    "--out",
    type=click.Path(file_okay=False, path_type=Path),
    default=Path("runs"),
    help="Folder that contains the runs to clean up after.  [default: runs]",
)
def clean(out: Path) -> int:
    """Remove every namespace, container, network and qdisc left behind by killed runs.

    Resources of a live run are kept, and so are run folders. Resources of another user are reported
    and kept.
    """
    from windtunnel.harness.orchestrate.lab import LabError
    from windtunnel.harness.orchestrate.labs import containers
    from windtunnel.harness.orchestrate.teardown.clean import NotAllRemoved, remove_leftovers
    from windtunnel.harness.uml import boot

    removed: list[str] = []
    problems: list[str] = []
    for remove in (
        partial(remove_leftovers, out),
        containers.remove_leftovers,
        boot.remove_leftovers,
    ):
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
    click.echo(f"{len(removed)} left-overs removed" if removed else "nothing to remove")
    return exit_code.OK
