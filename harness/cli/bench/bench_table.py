"""The table of benchmark results: one row per figure, then the conditions and the void
measurements.
"""

import sys
from dataclasses import replace
from typing import TYPE_CHECKING

from windtunnel.harness.cli.inspect.look import echo_plain
from windtunnel.harness.cli.render.table import Column, View, drawn

if TYPE_CHECKING:
    from windtunnel.harness.bench.figures import Comparison, Spread
    from windtunnel.harness.bench.machine import BenchMachine
    from windtunnel.harness.bench.measure import Reading
    from windtunnel.harness.bench.plan import BenchSettings

COLUMNS = (
    Column("figure"),
    Column("unit"),
    Column("ours", True),
    Column("min .. max", True),
    Column("peer", True),
    Column("min .. max", True),
    Column("ratio", True),
    Column("floor", True),
)
LINES_MAX = 1000
"""Maximum number of lines to print. It is large enough for the whole table, because the terminal's
height must not cut it.
"""


def number(value: float) -> str:
    """Format a number with three significant digits, or as an integer if it is at least 100."""
    if value >= 100:
        return f"{value:,.0f}"
    return f"{value:.1f}" if value >= 10 else f"{value:.2f}"


def view(
    machine: "BenchMachine",
    settings: "BenchSettings",
    readings: list["Reading"],
    comparisons: list["Comparison"],
) -> View:
    """Return the benchmark results as a table (View) for printing."""
    from windtunnel.harness.bench.archive_host import ARCHIVES, archives
    from windtunnel.harness.bench.document import CALLERS, CLIENTS
    from windtunnel.harness.bench.plan import CALLS
    from windtunnel.harness.bench.subject import C, peer_of

    peer = peer_of(settings)
    lines = [
        f"machine  {machine.line}",
        f"client   {CLIENTS[settings.client]}, idle {settings.client_idle}",
        f"drivers  {'each' if peer is C else 'ours'} runs in a Python process, whose startup and "
        "memory are included",
        f"peer     {'the Aeron C driver' if peer is C else peer.title}",
    ]
    if any(each.kind in CALLS for each in settings.chosen()):
        lines.insert(2, f"calls    {CALLERS}")
    available, missing = archives(settings)
    if available:
        lines.append(
            "archive  the peer is Aeron's Java archive; each archive uses a separate driver"
        )
    lines += [f"LEFT OUT {ARCHIVES[name].title}: {reason}" for name, reason in missing.items()]
    voids = [each for each in readings if each.void]
    lines += [
        f"VOID     {each.case} of {each.driver}, round {each.round_index + 1}: {each.void}"
        for each in voids
    ]
    if machine.warning:
        lines.append(f"WARNING  {machine.warning}")
    return View(
        heading=_heading(settings),
        columns=COLUMNS,
        rows=[_row(each) for each in comparisons],
        document={},
        closing="\n".join(lines),
    )


def _heading(settings: "BenchSettings") -> str:
    given = {**settings.both_set, **{f"ours {k}": v for k, v in settings.ours_set.items()}}
    extra = "".join(f", {name}={value}" for name, value in given.items())
    mtu = f", mtu {settings.mtu}" if settings.mtu else ""
    memory = f", memory {settings.memory}" if settings.memory else ""
    return (
        f"{settings.rounds} rounds of {settings.seconds:g} s, {settings.threading_mode}, "
        f"window {settings.window}, term {settings.term_length}{mtu}{memory}{extra}"
    )


def _row(comparison: "Comparison") -> tuple[str, ...]:
    figure, ratio = comparison.figure, comparison.ratio
    missed = " MISSED" if comparison.holds is False else ""
    bound = "at least" if figure.is_more_better else "at most"
    return (
        figure.name,
        figure.unit,
        *_spread_cells(comparison.ours),
        *_spread_cells(comparison.peer),
        "-" if ratio is None else f"{ratio:.2f}",
        "" if comparison.floor is None else f"{bound} {comparison.floor:g}{missed}",
    )


def _spread_cells(spread: "Spread | None") -> tuple[str, str]:
    if spread is None:
        return "-", ""
    return number(spread.median), f"{number(spread.least)} .. {number(spread.most)}"


def show(table: View) -> None:
    """Print the benchmark table, in colour if stdout is a terminal."""
    if not sys.stdout.isatty():
        echo_plain(table)
        return
    from rich.console import Console

    console = Console()
    console.print(drawn(replace(table, closing=""), set(), LINES_MAX))
    console.print(table.closing, markup=False, highlight=False, soft_wrap=True)
