"""Options and output loop shared by the inspection tools.

    --json                   one document
    --once, or in a pipe     one plain table
    on a terminal            a table that is updated until Ctrl-C

Exit codes: 0 shown; 1 not found: no driver, no file; 2 not readable: damaged, truncated,
unsupported version, no permission; 64 invalid command line.
"""

import json
import os
import re
import signal
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING, Any, TypeVar

import click

from windtunnel.harness.cli import exit_code
from windtunnel.harness.cli.failure import Failure
from windtunnel.harness.cli.options import NumberRange
from windtunnel.harness.cli.render.table import View, drawn, plain_lines, printable
from windtunnel.harness.cli.standard_streams import STDOUT

if TYPE_CHECKING:
    from windtunnel.harness.inspect.driver_state import DriverState

_Command = TypeVar("_Command", bound=Callable[..., Any])
INTERVAL_S = 1.0
INTERRUPT_LATENCY_S = 0.05
"""Maximum delay between Ctrl-C and the end of the live view."""

EXIT_CODES = """\b
Exit codes: 0 shown; 1 not found; 2 not readable; 64 invalid command line.
"""


@dataclass(frozen=True)
class OutputOptions:
    """An inspection command's output format, and the interval at which its live view is updated."""

    as_json: bool
    once: bool
    interval_s: float


def aeron_dir_option(command: _Command) -> _Command:
    """Add --dir, the driver's directory, to a command."""
    return click.option(
        "--dir",
        "directory",
        type=click.Path(path_type=Path),
        envvar="AERON_DIR",
        help="The driver's directory.  [default: $AERON_DIR, else /dev/shm/aeron-$USER]",
    )(command)


def json_option(command: _Command) -> _Command:
    """Add --json to a command."""
    return click.option("--json", "as_json", is_flag=True, help="Print one JSON document.")(command)


def live_options(command: _Command) -> _Command:
    """Add the options of a live view to a command: --dir, --json, --once, --interval."""
    once = click.option(
        "--once",
        is_flag=True,
        help="Print once and exit. This is the default if stdout is not a terminal.",
    )
    interval = click.option(
        "--interval",
        "interval_s",
        type=NumberRange(min=0.05, max=3600.0),
        default=INTERVAL_S,
        show_default=True,
        help="Seconds between updates of the live view.",
    )
    return aeron_dir_option(json_option(once(interval(command))))


def directory_or_default(directory: Path | None) -> Path:
    """Return the given directory, or the default driver directory of this user."""
    from windtunnel.harness.inspect.aeron_dir import default_directory

    return directory if directory is not None else default_directory()


def pattern(
    context: click.Context, parameter: click.Parameter, text: str | None
) -> re.Pattern[str] | None:
    """Compile a regular expression from the command line (click callback)."""
    try:
        return None if text is None else re.compile(text)
    except re.error as error:
        raise click.BadParameter(f"{text!r} is not a regular expression: {error}") from error


@contextmanager
def reading() -> Iterator[None]:
    """Context manager that converts errors from reading a driver's files to Failure. Those from
    writing to stdout propagate.
    """
    from windtunnel.harness.dissect.driver_files.cnc_file import CncFileError
    from windtunnel.harness.dissect.driver_files.log_buffer import LogBufferError
    from windtunnel.harness.inspect.aeron_dir import NothingThereError

    try:
        yield
    except NothingThereError as error:
        raise Failure(str(error), exit_code.NOTHING) from error
    except (CncFileError, LogBufferError) as error:
        raise Failure(str(error), exit_code.INCONCLUSIVE) from error
    except OSError as error:
        if error.filename == STDOUT:
            raise
        text = f"{error.filename}: {error.strerror}" if error.filename else str(error)
        raise Failure(text, exit_code.INCONCLUSIVE) from error


def heading(directory: Path, state: "DriverState") -> str:
    """Return a view's first line: time, directory, cnc version, process id, liveness."""
    now = time.strftime("%H:%M:%S")
    age = f"heartbeat {state.heartbeat_age_ms} ms ago"
    liveness = age if state.is_alive else f"{state.state}, {age}" if state.heartbeat_ms > 0 else ""
    cnc = f"cnc {state.cnc_version}, pid {state.pid}"
    return f"{now}  {directory}  {cnc}, {liveness or state.state}"


def driver_document(directory: Path, state: "DriverState") -> dict[str, Any]:
    """Return the part of a JSON document that describes the driver."""
    from dataclasses import asdict

    return {"directory": str(directory), **asdict(state)}


def show(read: Callable[[], View], output: OutputOptions) -> int:
    """Print the View that `read` returns, or show a live view on the terminal that is updated until
    Ctrl-C.
    """
    with reading():
        first = read()
    if output.as_json or output.once or not _can_draw():
        if output.as_json:
            click.echo(json.dumps(first.document))
        else:
            echo_plain(first)
        if first.problem:
            raise Failure(first.problem, exit_code.INCONCLUSIVE)
        return exit_code.OK
    _watch(first, read, output.interval_s)
    return exit_code.OK


def _can_draw() -> bool:
    """Return whether stdout is a terminal that supports a live view."""
    return sys.stdout.isatty() and os.environ.get("TERM", "dumb") not in ("dumb", "unknown")


def echo_plain(view: View) -> None:
    """Print a View as plain text in stdout's encoding."""
    for line in plain_lines(view):
        echo_line(line)


def echo_line(line: str) -> None:
    """Print a line. Characters that stdout's encoding lacks are escaped."""
    encoding = getattr(sys.stdout, "encoding", None) or "utf-8"
    click.echo(line.encode(encoding, "backslashreplace").decode(encoding))


def _watch(first: View, read: Callable[[], View], interval_s: float) -> None:
    """Update the live view until Ctrl-C. While the driver's files cannot be read, show the error
    and retry.
    """
    from rich.console import Console
    from rich.live import Live
    from rich.text import Text

    console = Console()
    before = _contents(first)
    rendered = drawn(first, set(), console.height)
    with (
        _interruption() as interrupted_within,
        Live(rendered, console=console, screen=True, auto_refresh=False) as live,
    ):
        live.refresh()
        while not interrupted_within(interval_s):
            try:
                with reading():
                    view = read()
            except Failure as failure:
                live.update(Text(printable(failure.format_message()), style="red"), refresh=True)
                continue
            now = _contents(view)
            changed = {key for key, row in now.items() if before.get(key, row) != row}
            before = now
            live.update(drawn(view, changed, console.height), refresh=True)


@contextmanager
def _interruption() -> Iterator[Callable[[float], bool]]:
    """Context manager that handles Ctrl-C. It yields a function that sleeps for a given time, and
    returns True as soon as Ctrl-C was pressed.

    The signal handler only sets a flag. An exception could be raised where Python discards it, and
    setting a threading.Event could deadlock on a lock that the interrupted thread holds. Blocking
    the signal does not work, because another thread of the process would then receive it.
    """
    is_interrupted = False

    def on_signal(number: int, frame: FrameType | None) -> None:
        nonlocal is_interrupted
        is_interrupted = True

    def interrupted_within(timeout_s: float) -> bool:
        end_s = time.monotonic() + timeout_s
        while not is_interrupted and (left_s := end_s - time.monotonic()) > 0:
            time.sleep(min(left_s, INTERRUPT_LATENCY_S))
        return is_interrupted

    before = signal.signal(signal.SIGINT, on_signal)
    try:
        yield interrupted_within
    finally:
        signal.signal(signal.SIGINT, before)


def _contents(view: View) -> dict[object, tuple[str, ...]]:
    return dict(zip(view.keys, view.rows, strict=False))
