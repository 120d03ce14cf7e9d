"""`windtunnel archive`: runs the archive's own command line, `python -m windtunnel.driver.archive`.

The harness must not import the driver's code, so this process replaces itself by that program.
Arguments, output and exit codes are that program's.
"""

import os
import sys

import click


@click.command(
    short_help="Run an archive, or inspect or repair an archive directory.",
    add_help_option=False,
    context_settings={"ignore_unknown_options": True},
)
@click.argument("arguments", nargs=-1, type=click.UNPROCESSED)
def archive(arguments: tuple[str, ...]) -> None:
    """Run an archive, or inspect or repair the directory of an Aeron or Windtunnel archive."""
    command = [sys.executable, "-P", "-m", "windtunnel.driver.archive", *arguments]
    sys.stdout.flush()
    os.execv(command[0], command)
