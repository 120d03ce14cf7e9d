"""How the tools look: where at, how often, and in which form.

    --json                   one document
    --once, or in a pipe     one plain table
    on a terminal            a table that is drawn again and again until Ctrl-C

Exit codes: 0 shown; 1 nothing is there: no driver, no file; 2 it cannot be read: damaged, cut
short, another version, no permission; 64 wrong command line.
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
from windtunnel.harness.cli.render.table import View, drawn, plain_lines, printable

if TYPE_CHECKING:
    from windtunnel.harness.inspect.driver_state import DriverState

_Command = TypeVar("_Command", bound=Callable[..., Any])
INTERVAL_S = 1.0
NOTICE_S = 0.05
"""Longest time until Ctrl-C is noticed."""

EXIT_CODES = """\b
Exit codes: 0 shown; 1 nothing is there; 2 it is there and cannot be read;
64 wrong command line.
"""


@dataclass(frozen=True)
class How:
    """In which form to show, and how often."""

    as_json: bool
    once: bool
    interval_s: float


def aeron_dir_option(command: _Command) -> _Command:
    """The driver's directory."""
    return click.option(
        "--dir",
        "directory",
        type=click.Path(path_type=Path),
        envvar="AERON_DIR",
        help="The driver's directory.  [default: $AERON_DIR, else /dev/shm/aeron-$USER]",
    )(command)


def json_option(command: _Command) -> _Command:
    """One document instead of a table."""
    return click.option("--json", "as_json", is_flag=True, help="One JSON document for machines.")(
        command
    )


def live_options(command: _Command) -> _Command:
    """Where to look, in which form, how often."""
    once = click.option(
        "--once", is_flag=True, help="Show it once, on a terminal too; a pipe gets it once anyway."
    )
    interval = click.option(
        "--interval",
        "interval_s",
        type=click.FloatRange(min=0.05, max=3600.0),
        default=INTERVAL_S,
        show_default=True,
        help="Seconds between two looks of the live view.",
    )
    return aeron_dir_option(json_option(once(interval(command))))


def directory_or_default(directory: Path | None) -> Path:
    """The directory that was named, or where a driver of this user would be."""
    from windtunnel.harness.inspect.aeron_dir import default_directory

    return directory if directory is not None else default_directory()


def pattern(
    context: click.Context, parameter: click.Parameter, text: str | None
) -> re.Pattern[str] | None:
    """A regular expression of the command line."""
    try:
        return None if text is None else re.compile(text)
    except re.error as error:
        raise click.BadParameter(f"{text!r} is no regular expression: {error}") from error


@contextmanager
def reading() -> Iterator[None]:
    """Errors of reading a driver's files become one line and an exit code."""
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
        text = f"{error.filename}: {error.strerror}" if error.filename else str(error)
        raise Failure(text, exit_code.INCONCLUSIVE) from error


def heading(directory: Path, state: "DriverState") -> str:
    """The first line: when, where, who, and how alive."""
    now = time.strftime("%H:%M:%S")
    age = f"heartbeat {state.heartbeat_age_ms} ms ago"
    how = age if state.is_alive else f"{state.state}, {age}" if state.heartbeat_ms > 0 else ""
    cnc = f"cnc {state.cnc_version}, pid {state.pid}"
    return f"{now}  {directory}  {cnc}, {how or state.state}"


def driver_document(directory: Path, state: "DriverState") -> dict[str, Any]:
    """The driver's part of a JSON document."""
    from dataclasses import asdict

    return {"directory": str(directory), **asdict(state)}


def show(look: Callable[[], View], how: How) -> int:
    """Show a view once, or until Ctrl-C."""
    with reading():
        first = look()
    if how.as_json or how.once or not _can_draw():
        if how.as_json:
            click.echo(json.dumps(first.document))
        else:
            echo_plain(first)
        if first.problem:
            raise Failure(first.problem, exit_code.INCONCLUSIVE)
        return exit_code.OK
    _watch(first, look, how.interval_s)
    return exit_code.OK


def _can_draw() -> bool:
    """Whether the output is a window that can be drawn over."""
    return sys.stdout.isatty() and os.environ.get("TERM", "dumb") not in ("dumb", "unknown")


def echo_plain(view: View) -> None:
    """Print a view as text, in whatever characters the reader can take."""
    for line in plain_lines(view):
        echo_line(line)


def echo_line(line: str) -> None:
    """Print a line; characters that the output's encoding lacks become escapes."""
    encoding = getattr(sys.stdout, "encoding", None) or "utf-8"
    click.echo(line.encode(encoding, "backslashreplace").decode(encoding))


def _watch(first: View, look: Callable[[], View], interval_s: float) -> None:
    """Draw the view again and again; a driver that goes away is waited for."""
    from rich.console import Console
    from rich.live import Live
    from rich.text import Text

    console = Console()
    before = _contents(first)
    picture = drawn(first, set(), console.height)
    with (
        _interruption() as came_within,
        Live(picture, console=console, screen=True, auto_refresh=False) as live,
    ):
        live.refresh()
        while not came_within(interval_s):
            try:
                with reading():
                    view = look()
            except Failure as failure:
                live.update(Text(printable(failure.format_message()), style="red"), refresh=True)
                continue
            now = _contents(view)
            changed = {key for key, row in now.items() if before.get(key, row) != row}
            before = now
            live.update(drawn(view, changed, console.height), refresh=True)


@contextmanager
def _interruption() -> Iterator[Callable[[float], bool]]:
    """Whether Ctrl-C came, or comes within so many seconds.

    The handler only leaves a note: an exception may come where Python drops it, and one that sets
    an event may wait for a lock that the thread it has interrupted holds. Keeping the signal back
    would not do, since any other thread of the process takes it then.
    """
    came = False

    def note(number: int, frame: FrameType | None) -> None:
        nonlocal came
        came = True

    def came_within(within_s: float) -> bool:
        end_s = time.monotonic() + within_s
        while not came and (left_s := end_s - time.monotonic()) > 0:
            time.sleep(min(left_s, NOTICE_S))
        return came

    before = signal.signal(signal.SIGINT, note)
    try:
        yield came_within
    finally:
        signal.signal(signal.SIGINT, before)


def _contents(view: View) -> dict[object, tuple[str, ...]]:
    return dict(zip(view.keys, view.rows, strict=False))
