"""What a person sees while a suite works.

    terminal    a live line a run: phase, bar, percent, MB/s, faults and NAKs so far
    pipe        a plain line a phase on stderr; verdicts alone on stdout

The display draws what the runner tells it; it never looks at a process or a packet itself.
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
    """Takes the runner's events; used as a context around the suite."""

    def __enter__(self) -> "Display": ...
    def __exit__(self, *_: object) -> None: ...
    def on_event(self, event: "RunEvent") -> None: ...


class Verdicts:
    """Writes the line of each run that has ended to stdout, as text or as JSON."""

    def __init__(self, as_json: bool) -> None:
        self.as_json = as_json
        self._started_s: dict[int, float] = {}

    def on_start(self, event: "RunEvent") -> None:
        self._started_s[event.run_index] = time.monotonic()

    def line(self, event: "RunEvent") -> str:
        """The line of a run's verdict."""
        if self.as_json:
            return json.dumps(run_document(event.outcome, event.scenario, event.seed, event.text))
        now_s = time.monotonic()
        lasted_s = now_s - self._started_s.pop(event.run_index, now_s)
        return run_line(event.outcome, event.scenario, event.seed, event.text, lasted_s)


class PlainDisplay:
    """Plain lines: phases and notes on stderr, verdicts on stdout."""

    def __init__(self, verdicts: Verdicts) -> None:
        self.verdicts = verdicts
        self._quarters: dict[int, int] = {}

    def __enter__(self) -> "PlainDisplay":
        return self

    def __exit__(self, *_: object) -> None:
        pass

    def on_event(self, event: "RunEvent") -> None:
        place = f"[{event.run_index + 1}/{event.run_count}] {event.scenario} seed {event.seed}"
        if event.kind == "run":
            self.verdicts.on_start(event)
        elif event.kind == "phase":
            echo(f"{place}: {event.phase}{f' ({event.text})' if event.text else ''}", err=True)
        elif event.kind == "note":
            echo(f"{place}: {event.text}", err=True)
        elif event.kind == "progress" and event.fraction is not None:
            quarter = int(event.fraction * 4)
            if quarter > self._quarters.get(event.run_index, 0):
                self._quarters[event.run_index] = quarter
                click.echo(f"{place}: {quarter * 25} %", err=True)
        elif event.kind == "verdict":
            click.echo(self.verdicts.line(event))
            sys.stdout.flush()


class LiveDisplay:
    """A live line on the terminal; verdict lines scroll away above it."""

    def __init__(self, verdicts: Verdicts, on_stderr: bool) -> None:
        from rich.console import Console
        from rich.progress import BarColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

        self.verdicts = verdicts
        self._on_stderr = on_stderr
        self._console = Console(stderr=on_stderr, highlight=False)
        self._progress = Progress(
            SpinnerColumn(),
            TextColumn("{task.fields[place]}"),
            TextColumn("[bold]{task.description}"),
            BarColumn(bar_width=28),
            TextColumn("{task.percentage:>3.0f}%"),
            TextColumn("[cyan]{task.fields[rate]}"),
            TextColumn("[dim]{task.fields[weather]}"),
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
        place = f"{event.run_index + 1}/{event.run_count} {event.scenario}"
        self._tasks[event.run_index] = self._progress.add_task(
            "start", total=1.0, place=place, rate="", weather=""
        )

    def _advance(self, event: "RunEvent") -> None:
        measured = self._rates[event.run_index]
        rate = measured.megabytes_per_s(event.delivered_bytes, time.monotonic())
        self._progress.update(
            self._tasks[event.run_index],
            completed=event.fraction or 0.0,
            rate="" if rate is None else f"{rate:.1f} MB/s",
            weather=weather(event),
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
    """Delivered bytes a second, over the time since the first of them was seen."""

    def __init__(self) -> None:
        self._first: tuple[int, float] | None = None

    def megabytes_per_s(self, delivered_bytes: int, now_s: float) -> float | None:
        """The rate up to now, or None before it can be told."""
        if self._first is None:
            self._first = (delivered_bytes, now_s) if delivered_bytes else None
            return None
        first_bytes, first_s = self._first
        lasted_s = now_s - first_s
        return (delivered_bytes - first_bytes) / lasted_s / MEGABYTE if lasted_s > 0 else None


def weather(event: "RunEvent") -> str:
    """Faults and NAKs so far, where the runner tells them."""
    told = (("drops", getattr(event, "drop_count", 0)), ("NAKs", getattr(event, "nak_count", 0)))
    return "  ".join(f"{count} {name}" for name, count in told if count)


def choose(as_json: bool) -> Display:
    """A live display where a person looks on, plain lines elsewhere."""
    verdicts = Verdicts(as_json)
    if sys.stdout.isatty() and not as_json:
        return LiveDisplay(verdicts, on_stderr=False)
    if sys.stderr.isatty() and not sys.stdout.isatty():
        return LiveDisplay(verdicts, on_stderr=True)
    return PlainDisplay(verdicts)
