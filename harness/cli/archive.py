"""`windtunnel archive`: the tools of the archive, which are the subject's own.

The harness does not import the subject, so this process becomes them; arguments, output and exit
codes are theirs.
"""

import os
import sys

import click


@click.command(
    short_help="Look into the directory of an archive, and mend it.",
    add_help_option=False,
    context_settings={"ignore_unknown_options": True},
)
@click.argument("arguments", nargs=-1, type=click.UNPROCESSED)
def archive(arguments: tuple[str, ...]) -> None:
    """Look into the directory of an archive, Aeron's or ours, and mend it: `archive --help`."""
    command = [sys.executable, "-P", "-m", "windtunnel.driver.archive", *arguments]
    sys.stdout.flush()
    os.execv(command[0], command)
