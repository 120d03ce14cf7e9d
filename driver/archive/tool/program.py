"""The program: every verb, and the one place where an error becomes a line and an exit code."""

import os
import sys
from collections.abc import Sequence

import click

from windtunnel.driver.archive.tool import failure, inspect, recover, repair, run
from windtunnel.driver.archive.tool.command import PROGRAM, archive
from windtunnel.driver.base.errors import DriverError

for verb in (*run.VERBS, *inspect.VERBS, *repair.VERBS, *recover.VERBS):
    archive.add_command(verb)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line and return its exit code; the world's mistakes are one line each."""
    try:
        result = archive.main(arguments, prog_name=PROGRAM, standalone_mode=False)
        sys.stdout.flush()
    except click.UsageError as error:
        path = error.ctx.command_path if error.ctx else PROGRAM
        return _failed(f"{error.format_message()} (see `{path} --help`)", failure.USAGE)
    except click.ClickException as error:
        return _failed(error.format_message(), error.exit_code)
    except (click.Abort, KeyboardInterrupt):
        return _failed("interrupted", failure.INTERRUPTED)
    except BrokenPipeError:
        # Python flushes once more at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return failure.BROKEN_PIPE
    except DriverError as error:
        return _failed(str(error), failure.code_of(error))
    return result if isinstance(result, int) else failure.OK


def _failed(text: str, code: int) -> int:
    click.echo(f"{PROGRAM}: {failure.printable(text)}", err=True)
    return code
