"""`windtunnel bench --only recovery`: loss recovery of ours beside that of the real C driver."""

import json
import tempfile
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from windtunnel.harness.cli import exit_code
from windtunnel.harness.cli.bench import bench_alone
from windtunnel.harness.cli.bench.bench_table import number
from windtunnel.harness.cli.failure import Failure, one_line

if TYPE_CHECKING:
    from windtunnel.harness.bench.measure import Reading
    from windtunnel.harness.bench.recovery import RecoveryRow

SCHEMA = "windtunnel-bench-recovery/1"
COLUMNS = ("figure", "unit", "C", "C tuned", "ours", "reached", "floor", "goal", "clock")
UNKNOWN = "-"


def recovery(rounds: int, paths: tuple[str, ...], enforce: bool, json_file: Path | None) -> int:
    """Measure the paths with these names, or all paths."""
    from windtunnel.harness.bench import machine
    from windtunnel.harness.bench.recovery import PATHS, compare
    from windtunnel.harness.bench.recovery_runs import measure
    from windtunnel.harness.orchestrate.cancel import Cancellation, Cancelled

    known = [each.case for each in PATHS]
    for name in paths:
        if name not in known:
            raise click.UsageError(
                f"--only recovery,...: expected one of {', '.join(known)}, found {name!r}"
            )
    seen = machine.read_machine()
    try:
        with (
            one_line(),
            Cancellation(),
            tempfile.TemporaryDirectory(prefix="windtunnel-bench-") as folder,
        ):
            readings = measure(rounds, paths, Path(folder), bench_alone.note)
    except Cancelled as cancelled:
        raise Failure(str(cancelled), cancelled.exit_code) from cancelled
    rows = [each for each in compare(readings) if not paths or each.figure.case in paths]
    document = _document(seen.line, rounds, rows, readings)
    bench_alone.write_json(document, json_file)
    click.echo(json.dumps(document) if str(json_file) == "-" else "\n".join(_lines(rows)))
    if enforce and any(each.holds is not True for each in rows):
        return bench_alone.FLOOR_MISSED
    return exit_code.INCONCLUSIVE if any(each.void for each in readings) else exit_code.OK


def _document(
    machine: str, rounds: int, rows: "list[RecoveryRow]", readings: "list[Reading]"
) -> dict[str, Any]:
    return {
        "schema": SCHEMA,
        "machine": machine,
        "rounds": rounds,
        "figures": [
            {
                "name": each.figure.name,
                **asdict(each),
                "holds": each.holds,
                "reaches_goal": each.reaches_goal,
            }
            for each in rows
        ],
        "readings": [asdict(each) for each in readings],
    }


def _lines(rows: "list[RecoveryRow]") -> list[str]:
    """Return the table, one line for each figure. A star marks medians of incomplete streams."""
    cells = [COLUMNS, *map(_cells, rows)]
    widths = [max(len(row[column]) for row in cells) for column in range(len(COLUMNS))]
    return [
        "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()
        for row in cells
    ]


def _cells(row: "RecoveryRow") -> tuple[str, ...]:
    figure = row.figure
    times = "x" if figure.is_ratio else ""
    sign = ">=" if figure.is_more_better else "<="
    reached = UNKNOWN if row.reached is None else f"{number(row.reached)}{times}"
    mark = {True: "", False: " MISSED", None: ""}[row.holds]
    return (
        figure.name,
        figure.unit,
        *(_median(row, name) for name in ("c", "c-tuned", figure.setup.name)),
        reached + mark,
        f"{sign} {figure.floor:g}{times}",
        f"{figure.goal:g}{times}",
        row.clock,
    )


def _median(row: "RecoveryRow", setup: str) -> str:
    if setup not in row.medians:
        return UNKNOWN
    return number(row.medians[setup]) + ("*" if row.incomplete[setup] else "")
