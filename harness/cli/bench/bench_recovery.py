"""`windtunnel bench --only recovery`: compares loss recovery with that of the real C driver."""

import json
import tempfile
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from windtunnel.harness.artifact.noun_form import noun_for
from windtunnel.harness.cli import exit_code
from windtunnel.harness.cli.bench import bench_alone
from windtunnel.harness.cli.bench.bench_table import number
from windtunnel.harness.cli.failure import Failure, one_line

if TYPE_CHECKING:
    from windtunnel.harness.artifact.run_dir import RunDir
    from windtunnel.harness.bench.measure import Reading
    from windtunnel.harness.bench.recovery.figures import RecoveryPath, RecoveryRow, Setup

SCHEMA = "windtunnel-bench-recovery/1"
COLUMNS = ("figure", "unit", "C", "C tuned", "ours", "reached", "floor", "goal", "clock")
UNKNOWN = "-"


def recovery(
    rounds: int,
    paths: tuple[str, ...],
    enforce: bool,
    json_file: Path | None,
    report: Path | None = None,
    readings_file: Path | None = None,
) -> int:
    """Measure the paths with these names, or all paths, but for the readings in a file."""
    from windtunnel.harness.bench import machine
    from windtunnel.harness.bench.recovery.figures import PATHS, compare
    from windtunnel.harness.bench.recovery.runs import measure
    from windtunnel.harness.bench.recovery.saved_readings import ReadingsError, SavedReadings
    from windtunnel.harness.orchestrate.cancel import Cancellation, Cancelled
    from windtunnel.reports.measurements.recovery_page import RecoveryPage

    bench_alone.require_folder(report)
    known = [each.case for each in PATHS]
    for name in paths:
        if name not in known:
            raise click.UsageError(
                f"--only recovery,...: expected one of {', '.join(known)}, found {name!r}"
            )
    try:
        with one_line():
            saved = SavedReadings(readings_file)
    except ReadingsError as error:
        raise click.UsageError(f"--readings: {error}") from error
    seen = machine.read_machine()
    page = RecoveryPage([seen.line, f"{rounds} {noun_for(rounds, 'round')}"])

    def add_run(path: "RecoveryPath", setup: "Setup", run: "RunDir") -> None:
        if report is not None:
            page.add_run(path.case, _about(path), setup.title, run)

    try:
        with (
            one_line(),
            Cancellation(),
            tempfile.TemporaryDirectory(prefix="windtunnel-bench-") as folder,
        ):
            readings = measure(rounds, paths, Path(folder), bench_alone.note, add_run, saved)
    except Cancelled as cancelled:
        raise Failure(str(cancelled), cancelled.exit_code) from cancelled
    rows = [each for each in compare(readings) if not paths or each.figure.case in paths]
    document = _document(seen.line, rounds, rows, readings)
    bench_alone.write_json(document, json_file)
    if report is not None:
        with one_line():
            page.write(report, _outcome(rows), COLUMNS, _by_path(rows), _commands())
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


def _about(path: "RecoveryPath") -> str:
    """Return what the scenario of a path says of itself."""
    from windtunnel.harness.bench.recovery.runs import scenario_file
    from windtunnel.harness.scenario.loader import load_scenario

    return load_scenario(scenario_file(path)).about


def _outcome(rows: "list[RecoveryRow]") -> str:
    if any(each.holds is False for each in rows):
        return "FAIL"
    return "PASS" if all(each.holds for each in rows) else "INCONCLUSIVE"


def _by_path(rows: "list[RecoveryRow]") -> dict[str, list[tuple[str, ...]]]:
    """Return the rows of a page by path."""
    by_path: dict[str, list[tuple[str, ...]]] = {}
    for row in rows:
        _, *cells = _cells(row, " (incomplete)")
        by_path.setdefault(row.figure.case, []).append((row.figure.title, *cells))
    return by_path


def _commands() -> dict[str, str]:
    """Return the command that repeats the first run of each path with our driver."""
    from windtunnel.harness.bench.recovery.figures import PATHS

    return {
        each.case: f"windtunnel run recovery/{each.name} --fidelity {each.fidelity}"
        for each in PATHS
    }


def _lines(rows: "list[RecoveryRow]") -> list[str]:
    """Return the table, one line for each figure. A star marks medians of incomplete streams."""
    cells = [COLUMNS, *map(_cells, rows)]
    widths = [max(len(row[column]) for row in cells) for column in range(len(COLUMNS))]
    return [
        "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()
        for row in cells
    ]


def _cells(row: "RecoveryRow", incomplete: str = "*") -> tuple[str, ...]:
    figure = row.figure
    times = "x" if figure.is_ratio else ""
    sign = ">=" if figure.is_more_better else "<="
    reached = UNKNOWN if row.reached is None else f"{number(row.reached)}{times}"
    mark = {True: "", False: " MISSED", None: ""}[row.holds]
    if row.void_count:
        mark = f" ({row.void_count} VOID)"
    return (
        figure.name,
        figure.unit,
        *(_median(row, name, incomplete) for name in ("c", "c-tuned", figure.setup.name)),
        reached + mark,
        f"{sign} {figure.floor:g}{times}",
        f"{figure.goal:g}{times}",
        row.clock,
    )


def _median(row: "RecoveryRow", setup: str, incomplete: str) -> str:
    if setup not in row.medians:
        return UNKNOWN
    is_marked = row.figure.needs_all and row.incomplete[setup]
    return number(row.medians[setup]) + (incomplete if is_marked else "")
