"""The program with all commands, which converts errors to messages and exit codes."""

import os
import sys
from collections.abc import Sequence
from contextlib import suppress

import click

from windtunnel.driver.archive.tool import failure, inspect, recover, repair, run
from windtunnel.driver.archive.tool.command import PROGRAM, archive
from windtunnel.driver.base.errors import DriverError
from windtunnel.driver.kernels import cache_error

for each in (*run.COMMANDS, *inspect.COMMANDS, *repair.COMMANDS, *recover.COMMANDS):
    archive.add_command(each)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line and return its exit code. An expected error prints one line to
    stderr.
    """
    try:
        result = archive.main(arguments, prog_name=PROGRAM, standalone_mode=False)
        sys.stdout.flush()
    except click.UsageError as error:
        path = error.ctx.command_path if error.ctx else PROGRAM
        return _report(f"{error.format_message()} (see `{path} --help`)", failure.USAGE)
    except click.ClickException as error:
        return _report(error.format_message(), error.exit_code)
    except (click.Abort, KeyboardInterrupt) as error:
        if isinstance(error.__context__, EOFError):
            text = "expected an answer on stdin, found its end; answer with --yes (delete-orphans)"
            return _report(f"{text}, or with --truncate or --keep (verify)", failure.INTERRUPTED)
        return _report("interrupted", failure.INTERRUPTED)
    except (BrokenPipeError, SystemExit):
        # click raises SystemExit(1) for a closed pipe, which would mean that there is no archive.
        _discard_stdout()
        return failure.BROKEN_PIPE
    except DriverError as error:
        text = f"{error}{cache_error.advice(error.__cause__)}"
        return _report(text, failure.code_of(error))
    except OSError as error:
        if error.filename is None and error.strerror is not None:
            _discard_stdout()
            text = f"stdout: {error.strerror}"
            return _report(text + cache_error.advice(error), failure.DAMAGED)
        text = f"{error.filename}: {error.strerror}" if error.filename else str(error)
        return _report(text + cache_error.advice(error), failure.DAMAGED)
    except MemoryError as error:
        reason = f": {error}" if str(error) else ""
        return _report(f"not enough memory (see `ulimit -v`){reason}", failure.DAMAGED)
    return result if isinstance(result, int) else failure.OK


def _discard_stdout() -> None:
    """Discard what is left in stdout: Python would write it again at exit, and fail again."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _report(text: str, code: int) -> int:
    # Without a place for the message there is still the exit code.
    with suppress(OSError):
        click.echo(f"{PROGRAM}: {failure.printable(text)}", err=True)
    return code
