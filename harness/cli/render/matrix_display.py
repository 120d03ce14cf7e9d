"""The progress display of `windtunnel matrix`: a line per finished cell and, on a terminal, a live
line.

terminal    4/12 cells  1 failing  17/60 runs  loss/x, ours to pyaeron, seed 3    (live)
pipe        a line for each finished cell
"""

import sys
from typing import TYPE_CHECKING, Any

import click

from windtunnel.harness.cli.render.table import printable
from windtunnel.harness.cli.render.verdict_text import outcome_mark

if TYPE_CHECKING:
    from windtunnel.harness.artifact.run.matrix import MatrixCell
    from windtunnel.harness.orchestrate.event import RunEvent

NOT_FAILING = ("PASS", "UNSUPPORTED", "CANCELLED")


def cell_line(cell: "MatrixCell") -> str:
    """Return the output line of a matrix cell: outcome, scenario, driver pair, number of passed
    runs, reason.
    """
    passes = f"  {cell.pass_count}/{len(cell.runs)}" if cell.outcome != "UNSUPPORTED" else ""
    reason = " ".join(cell.reason.split())
    text = f"{cell.scenario}  {cell.publisher} to {cell.subscriber}{passes}  {reason}"
    return f"{outcome_mark(cell.outcome)}  {printable(text)}"


class MatrixDisplay:
    """Prints a line for each finished cell and, if stderr is a terminal, a live line."""

    def __init__(self, *, lines_on_stderr: bool) -> None:
        self._lines_on_stderr = lines_on_stderr
        self._cells_done = 0
        self._cells = 0
        self._failing = 0
        self._runs_done = 0
        self._runs = 0
        self._now = ""
        self._live: Any = None
        self._task: Any = None

    def __enter__(self) -> "MatrixDisplay":
        if sys.stderr.isatty():
            from rich.console import Console
            from rich.progress import BarColumn, Progress, SpinnerColumn, TextColumn

            self._live = Progress(
                SpinnerColumn(),
                BarColumn(bar_width=20),
                TextColumn("{task.description}"),
                console=Console(stderr=True, highlight=False),
                transient=True,
            )
            self._task = self._live.add_task("starting", total=None)
            self._live.start()
        return self

    def __exit__(self, *_: object) -> None:
        if self._live is not None:
            self._live.stop()

    def on_event(self, event: "RunEvent") -> None:
        self._runs = event.run_count
        if event.kind == "compile":
            self._now = event.text
        if event.kind == "run":
            self._now = f"{event.scenario}, {event.pair}, seed {event.seed}"
        if event.kind == "verdict":
            self._runs_done += 1
        if event.kind in ("compile", "run", "verdict"):
            self._draw()

    def on_cell(self, cell: "MatrixCell", done_count: int, count: int) -> None:
        self._cells_done, self._cells = done_count, count
        self._failing += cell.outcome not in NOT_FAILING
        self._draw()
        if self._live is None:
            click.echo(cell_line(cell), err=self._lines_on_stderr)
            return
        # The live line occupies the terminal's last row. The `rich` library moves it out of the way
        # only for text that is printed through its own console.
        from rich.text import Text

        self._live.console.print(Text.from_ansi(cell_line(cell)), soft_wrap=True)
        if not sys.stdout.isatty() and not self._lines_on_stderr:
            click.echo(cell_line(cell))

    def _draw(self) -> None:
        if self._live is not None:
            self._live.update(
                self._task, description=self.text(), total=self._runs, completed=self._runs_done
            )

    def text(self) -> str:
        """Return the live line's text."""
        return (
            f"{self._cells_done}/{self._cells or '?'} cells  {self._failing} failing  "
            f"{self._runs_done}/{self._runs} runs  {self._now}"
        )
