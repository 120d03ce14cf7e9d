"""Progress displays for a running suite.

    terminal    a live line for each run: phase, bar, percent, MB/s, drops and NAKs so far
    pipe        a plain line for each phase on stderr; only verdicts on stdout

Displays show only what the runner's events contain. They read neither processes nor packets.
"""

import json
import sys
import time
from typing import TYPE_CHECKING, Any, Protocol

import click

from windtunnel.harness.cli.render.table import echo, printable
from windtunnel.harness.cli.render.verdict_text import run_document, run_line

if TYPE_CHECKING:
    from windtunnel.harness.orchestrate.event import RunEvent

MEGABYTE = 1e6


class Display(Protocol):
    """A progress display: receives the runner's events, and is a context manager around the
    suite."""

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
            return json.dumps(run_document(event.outcome, event.scenario, event.seed, event.text))
        now_s = time.monotonic()
        duration_s = now_s - self._started_s.pop(event.run_index, now_s)
        return run_line(event.outcome, event.scenario, event.seed, event.text, duration_s)


class PlainDisplay:
    """A progress display of plain lines: phases and notes on stderr, verdicts on stdout."""

    def __init__(self, verdicts: Verdicts) -> None:
        self.verdicts = verdicts
        self._quarters: dict[int, int] = {}

    def __enter__(self) -> "PlainDisplay":
        return self

    def __exit__(self, *_: object) -> None:
        pass

    def on_event(self, event: "RunEvent") -> None:
        run = f"[{event.run_index + 1}/{event.run_count}] {event.scenario} seed {event.seed}"
        if event.kind == "run":
            self.verdicts.on_start(event)
        elif event.kind == "phase":
            echo(f"{run}: {event.phase}{f' ({event.text})' if event.text else ''}", err=True)
        elif event.kind == "note":
            echo(f"{run}: {event.text}", err=True)
        elif event.kind == "progress" and event.fraction is not None:
            quarter = int(event.fraction * 4)
            if quarter > self._quarters.get(event.run_index, 0):
                self._quarters[event.run_index] = quarter
                click.echo(f"{run}: {quarter * 25} %", err=True)
        elif event.kind == "verdict":
            click.echo(self.verdicts.line(event))
            sys.stdout.flush()


class LiveDisplay:
    """A progress display with live lines at the bottom of the terminal. Verdict lines scroll above
    them."""

    def __init__(self, verdicts: Verdicts, on_stderr: bool) -> None:
        from rich.console import Console
        from rich.progress import BarColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

        self.verdicts = verdicts
        self._on_stderr = on_stderr
        self._console = Console(stderr=on_stderr, highlight=False)
        self._progress = Progress(
            SpinnerColumn(),
            TextColumn("{task.fields[run]}"),
            TextColumn("[bold]{task.description}"),
            BarColumn(bar_width=28),
            TextColumn("{task.percentage:>3.0f}%"),
            TextColumn("[cyan]{task.fields[rate]}"),
            TextColumn("[dim]{task.fields[faults]}"),
            TimeElapsedColumn(),
            console=self._console,
            transient=True,
        )
        self._tasks: dict[int, Any] = {}
        self._rates: dict[int, Rate] = {}

    def __enter__(self) -> "LiveDisplay":
        self._progress.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._progress.stop()

    def on_event(self, event: "RunEvent") -> None:
        if event.kind == "run":
            self._start(event)
        elif event.kind == "phase" and event.run_index in self._tasks:
            self._progress.update(self._tasks[event.run_index], description=event.phase)
        elif event.kind == "progress" and event.run_index in self._tasks:
            self._advance(event)
        elif event.kind == "note":
            self._console.print(printable(event.text), style="dim", markup=False)
        elif event.kind == "verdict":
            self._end(event)

    def _start(self, event: "RunEvent") -> None:
        self.verdicts.on_start(event)
        self._rates[event.run_index] = Rate()
        run = f"{event.run_index + 1}/{event.run_count} {event.scenario}"
        self._tasks[event.run_index] = self._progress.add_task(
            "start", total=1.0, run=run, rate="", faults=""
        )

    def _advance(self, event: "RunEvent") -> None:
        meter = self._rates[event.run_index]
        rate = meter.megabytes_per_s(event.delivered_bytes, time.monotonic())
        self._progress.update(
            self._tasks[event.run_index],
            completed=event.fraction or 0.0,
            rate="" if rate is None else f"{rate:.1f} MB/s",
            faults=fault_counts(event),
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
    """The average delivery rate since the first bytes were delivered."""

    def __init__(self) -> None:
        self._first: tuple[int, float] | None = None

    def megabytes_per_s(self, delivered_bytes: int, now_s: float) -> float | None:
        """Return the average rate, or None until it can be computed."""
        if self._first is None:
            self._first = (delivered_bytes, now_s) if delivered_bytes else None
            return None
        first_bytes, first_s = self._first
        elapsed_s = now_s - first_s
        return (delivered_bytes - first_bytes) / elapsed_s / MEGABYTE if elapsed_s > 0 else None


def fault_counts(event: "RunEvent") -> str:
    """Return the numbers of drops and NAKs so far as text, or an empty string if the event has
    none."""
    counts = (("drops", getattr(event, "drop_count", 0)), ("NAKs", getattr(event, "nak_count", 0)))
    return "  ".join(f"{count} {name}" for name, count in counts if count)


def choose(as_json: bool) -> Display:
    """Return a live display if stdout or stderr is a terminal, else a plain one."""
    verdicts = Verdicts(as_json)
    if sys.stdout.isatty() and not as_json:
        return LiveDisplay(verdicts, on_stderr=False)
    if sys.stderr.isatty() and not sys.stdout.isatty():
        return LiveDisplay(verdicts, on_stderr=True)
    return PlainDisplay(verdicts)
