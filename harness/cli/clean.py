"""`windtunnel clean`: removes what killed runs left behind on this machine, or removes old run
folders.
"""

from functools import partial
from pathlib import Path

import click

from windtunnel.harness.artifact.noun_form import noun_for
from windtunnel.harness.cli import exit_code
from windtunnel.harness.cli.options import out_option
from windtunnel.harness.cli.render.table import echo

KEEP_DEFAULT = 10


@click.command(short_help="Remove what killed runs left behind, or old run folders.")
@out_option("Folder that contains the runs.")
@click.option(
    "--runs",
    "of_runs",
    is_flag=True,
    help="Remove old suite and matrix folders instead of what killed runs left behind.",
)
@click.option(
    "--keep",
    type=click.IntRange(min=0),
    help=f"With --runs: how many of the newest suites to keep.  [default: {KEEP_DEFAULT}]",
)
@click.option("--dry-run", is_flag=True, help="With --runs: print what would be removed.")
def clean(out: Path, of_runs: bool, keep: int | None, dry_run: bool) -> int:
    """Remove every namespace, container, network and qdisc left behind by killed runs.

    Resources of a live run are kept, and so are run folders. Other users' resources are reported
    and kept.

    With --runs, remove old suite and matrix folders from the runs folder instead, oldest first.
    Other folders, links and suites that may still be running are kept.

    \b
      windtunnel clean --runs --keep 3 --dry-run
      windtunnel clean --runs --keep 3
    """
    if of_runs:
        return _clean_runs(out, KEEP_DEFAULT if keep is None else keep, dry_run)
    if keep is not None or dry_run:
        raise click.UsageError("--keep and --dry-run need --runs")
    return _clean_machine(out)


def _clean_runs(out: Path, keep: int, dry_run: bool) -> int:
    """Remove all but the newest suites from a runs folder. Prints each removed suite with its
    size.
    """
    from windtunnel.harness.orchestrate.lab import LabError
    from windtunnel.harness.orchestrate.teardown import old_suites

    suites = old_suites.find_suites(out)
    selected = old_suites.select(suites, keep)
    freed_bytes, problems = 0, []
    for each in selected:
        try:
            if not dry_run:
                old_suites.remove_suite(each)
        except LabError as error:
            problems.append(str(error))
            continue
        freed_bytes += each.size_bytes
        verb = "would remove" if dry_run else "removed"
        echo(f"{verb} {each.path}  {_size_text(each.size_bytes)}")
    for line in problems:
        echo(f"Error: not removed: {line}", err=True)
    done = len(selected) - len(problems)
    verb = "would be removed" if dry_run else "removed"
    click.echo(
        f"{done} of {len(suites)} suites {verb}, {_size_text(freed_bytes)}; {len(suites) - done} "
        f"{'would be ' if dry_run else ''}kept in {out}"
    )
    return exit_code.HARNESS if problems else exit_code.OK


def _size_text(size_bytes: int) -> str:
    return f"{size_bytes:,} bytes"


def _clean_machine(out: Path) -> int:
    """Remove what killed runs left behind on this machine, and print a line for each removal."""
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
        echo(f"removed {line}")
    for line in problems:
        echo(f"Error: not removed: {line}", err=True)
    if problems:
        return exit_code.HARNESS
    leftovers = noun_for(len(removed), "leftover")
    click.echo(f"{len(removed)} {leftovers} removed" if removed else "nothing to remove")
    return exit_code.OK
