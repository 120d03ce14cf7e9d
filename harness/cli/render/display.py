"""Progress displays for a running suite.

    terminal    a live line for the compilation of kernels, then one for each run: phase, bytes,
                drops and retransmits so far, elapsed time
    pipe        a line for each run and each quarter of its bytes on stderr; verdicts on stdout

Displays show only what the runner's events contain. They read neither processes nor packets.
"""

import json
import sys
import time
from typing import TYPE_CHECKING, Any, Protocol

import click

from windtunnel.harness.artifact.rate_text import rate_text
from windtunnel.harness.cli.render.table import echo, printable
from windtunnel.harness.cli.render.verdict_text import run_document, run_line

if TYPE_CHECKING:
    from rich.progress import ProgressColumn, Task

    from windtunnel.harness.orchestrate.event import RunEvent

MEGABYTE = 1e6
WIDE_COLUMNS = 110
"""Minimum terminal width, in characters, for a bar and a rate in the live line."""
UNFINISHED = 0.9999
"""The maximum progress shown for a run that has not finished, because the `rich` library stops a
task's clock at 100 %.
"""
COMPILATION = -1
"""The key of the compilation in tables that are indexed by the run."""
SILENCE_MAX_S = 5.0
"""Time in seconds without output after which a plain display prints the next phase."""
COMPILE_SILENCE_MAX_S = 30.0
"""The same for the number of compiled kernels."""


class Display(Protocol):
    """A progress display of a suite. It receives the runner's events, and is a context manager."""

    def __enter__(self) -> "Display": ...
    def __exit__(self, *_: object) -> None: ...
    def on_event(self, event: "RunEvent") -> None: ...


class Verdicts:
    """Formats the verdict line of each finished run, as text or as JSON."""

    def __init__(self, as_json: bool) -> None:
        self.as_json = as_json
        self._started_s: dict[int, float] = {}

    def on_start(self, event: "RunEvent") -> None:
        self._started_s[event.run_index] = time.monotonic()

    def line(self, event: "RunEvent") -> str:
        """Return the verdict line of a finished run."""
        if self.as_json:
            return json.dumps(run_document(event))
        now_s = time.monotonic()
        duration_s = now_s - self._started_s.pop(event.run_index, now_s)
        return run_line(event.outcome, event.scenario, event.seed, event.text, duration_s)


class PlainDisplay:
    """A progress display that prints plain lines: progress and notes on stderr, verdicts on stdout.

    A phase is printed only if nothing was printed for a while.
    """

    def __init__(self, verdicts: Verdicts) -> None:
        self.verdicts = verdicts
        self._quarters: dict[int, int] = {}
        self._printed_s = 0.0

    def __enter__(self) -> "PlainDisplay":
        return self

    def __exit__(self, *_: object) -> None:
        pass

    def on_event(self, event: "RunEvent") -> None:
        if event.kind == "compile":
            quarter = int((event.fraction or 0.0) * 4)
            known = self._quarters.get(COMPILATION, -1)
            if quarter > known or time.monotonic() - self._printed_s >= COMPILE_SILENCE_MAX_S:
                self._quarters[COMPILATION] = max(quarter, known)
                self._printed_s = time.monotonic()
                echo(event.text, err=True)
        elif event.kind == "run":
            self.verdicts.on_start(event)
            self._print(event, f"{event.scenario}  seed {event.seed}")
        elif event.kind == "phase":
            if time.monotonic() - self._printed_s >= SILENCE_MAX_S:
                self._print(event, event.phase)
        elif event.kind == "note":
            self._print(event, event.text)
        elif event.kind == "progress" and event.fraction is not None:
            quarter = int(event.fraction * 4)
            if quarter > self._quarters.get(event.run_index, 0):
                self._quarters[event.run_index] = quarter
                parts = (f"{quarter * 25:>3} %", bytes_text(event), *fault_counts(event))
                self._print(event, "  ".join(part for part in parts if part))
        elif event.kind == "verdict":
            click.echo(self.verdicts.line(event))
            sys.stdout.flush()

    def _print(self, event: "RunEvent", text: str) -> None:
        self._printed_s = time.monotonic()
        echo(f"[{event.run_index + 1}/{event.run_count}] {text}", err=True)


class LiveDisplay:
    """A progress display with live lines at the bottom of the terminal. Verdict lines scroll past
    above them.
    """

    def __init__(self, verdicts: Verdicts, on_stderr: bool) -> None:
        from rich.console import Console
        from rich.progress import BarColumn, Progress, SpinnerColumn, TimeElapsedColumn

        self.verdicts = verdicts
        self._on_stderr = on_stderr
        self._console = Console(stderr=on_stderr, highlight=False)
        is_wide = self._console.width >= WIDE_COLUMNS
        columns = [
            SpinnerColumn(),
            _column("{task.fields[run]}", is_cut_first=True),
            _column("{task.description}", "bold", is_cut_first=True),
            *([BarColumn(bar_width=20)] if is_wide else []),
            _column("{task.fields[bytes]}"),
            *([_column("{task.fields[rate]}", "cyan")] if is_wide else []),
            _column("{task.fields[faults]}", "dim"),
            TimeElapsedColumn(),
        ]
        self._progress = Progress(*columns, console=self._console, transient=True)
        self._tasks: dict[int, Any] = {}
        self._rates: dict[int, Rate] = {}

    def __enter__(self) -> "LiveDisplay":
        self._progress.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._progress.stop()

    def on_event(self, event: "RunEvent") -> None:
        if event.kind == "compile":
            self._on_compile(event)
        elif event.kind == "run":
            self._end_compilation()
            self._start(event)
        elif event.kind == "phase" and event.run_index in self._tasks:
            self._progress.update(self._tasks[event.run_index], description=event.phase)
        elif event.kind == "progress" and event.run_index in self._tasks:
            self._advance(event)
        elif event.kind == "note":
            self._console.print(printable(event.text), style="dim", markup=False)
        elif event.kind == "verdict":
            self._end(event)

    def _on_compile(self, event: "RunEvent") -> None:
        if COMPILATION not in self._tasks:
            self._tasks[COMPILATION] = self._progress.add_task(
                "", total=1.0, run="", bytes="", rate="", faults=""
            )
        self._progress.update(
            self._tasks[COMPILATION],
            completed=min(event.fraction or 0.0, UNFINISHED),
            description=event.text,
        )

    def _end_compilation(self) -> None:
        task = self._tasks.pop(COMPILATION, None)
        if task is not None:
            self._progress.remove_task(task)

    def _start(self, event: "RunEvent") -> None:
        self.verdicts.on_start(event)
        self._rates[event.run_index] = Rate()
        run = f"{event.run_index + 1}/{event.run_count} {event.scenario}"
        self._tasks[event.run_index] = self._progress.add_task(
            "start", total=1.0, run=printable(run), bytes="", rate="", faults=""
        )

    def _advance(self, event: "RunEvent") -> None:
        meter = self._rates[event.run_index]
        rate = meter.bytes_per_s(event.delivered_bytes, time.monotonic())
        self._progress.update(
            self._tasks[event.run_index],
            completed=min(event.fraction or 0.0, UNFINISHED),
            bytes=bytes_text(event),
            rate="" if rate is None else rate_text(rate),
            faults="  ".join(fault_counts(event)),
        )

    def _end(self, event: "RunEvent") -> None:
        task = self._tasks.pop(event.run_index, None)
        if task is not None:
            self._progress.remove_task(task)
        line = self.verdicts.line(event)
        if self._on_stderr:
            click.echo(line)
        else:
            from rich.text import Text

            self._console.print(Text.from_ansi(line), soft_wrap=True)


class Rate:
    """The average delivery rate, measured from the first delivered bytes."""

    def __init__(self) -> None:
        self._first: tuple[int, float] | None = None

    def bytes_per_s(self, delivered_bytes: int, now_s: float) -> float | None:
        """Return the average rate, or None until it can be computed."""
        if self._first is None:
            self._first = (delivered_bytes, now_s) if delivered_bytes else None
            return None
        first_bytes, first_s = self._first
        elapsed_s = now_s - first_s
        return (delivered_bytes - first_bytes) / elapsed_s if elapsed_s > 0 else None


def bytes_text(event: "RunEvent") -> str:
    """Return the delivered and the total bytes as a string, or an empty string if the total is
    unknown.
    """
    if not event.total_bytes:
        return ""
    return f"{event.delivered_bytes / MEGABYTE:.1f}/{event.total_bytes / MEGABYTE:.1f} MB"


def fault_counts(event: "RunEvent") -> list[str]:
    """Return the numbers of dropped frames and of retransmits so far as strings. Unknown numbers
    are omitted.
    """
    counts = ((event.drop_count, "dropped"), (event.retransmit_count, "retransmits"))
    return [f"{count:,} {name}" for count, name in counts if count is not None]


def _column(template: str, style: str = "", is_cut_first: bool = False) -> "ProgressColumn":
    """Return a text column of the live line. In a narrow terminal the text is cut instead of
    wrapped.

    Columns with `is_cut_first` are cut before all others.
    """
    from rich.progress import ProgressColumn
    from rich.table import Column
    from rich.text import Text

    class CutColumn(ProgressColumn):
        def render(self, task: "Task") -> Text:
            return Text(template.format(task=task), style, no_wrap=True, overflow="ellipsis")

    return CutColumn(table_column=Column(no_wrap=not is_cut_first))


def choose(as_json: bool) -> Display:
    """Return a live display if stdout or stderr is a terminal, else a plain one."""
    verdicts = Verdicts(as_json)
    if sys.stdout.isatty() and not as_json:
        return LiveDisplay(verdicts, on_stderr=False)
    if sys.stderr.isatty() and not sys.stdout.isatty():
        return LiveDisplay(verdicts, on_stderr=True)
    return PlainDisplay(verdicts)
