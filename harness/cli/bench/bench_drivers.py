"""The usual cases of `windtunnel bench`: drivers and archives, measured alternately in rounds."""

import json
from pathlib import Path
from typing import TYPE_CHECKING

import click

from windtunnel.harness.cli import exit_code
from windtunnel.harness.cli.bench import bench_alone
from windtunnel.harness.cli.bench.bench_table import number, show, view
from windtunnel.harness.cli.failure import Failure, one_line

if TYPE_CHECKING:
    from windtunnel.harness.bench.archive_host import ArchiveSubject
    from windtunnel.harness.bench.measure import Reading
    from windtunnel.harness.bench.plan import BenchSettings
    from windtunnel.harness.bench.subject import DriverSubject

HEADLINES = ("record-messages", "replay-messages")
"""Names of the values to print for a measurement. If it has none of them, its first value is
printed.
"""


def drivers(
    settings: "BenchSettings",
    floor_texts: tuple[str, ...],
    enforce: bool,
    json_file: Path | None,
    report: Path | None,
) -> int:
    """Measure the drivers and archives, and print the figures. Returns the exit code."""
    from windtunnel.harness.bench import archive_host, machine, rounds
    from windtunnel.harness.bench.document import bench_document
    from windtunnel.harness.bench.figures import compare, read_floors
    from windtunnel.harness.orchestrate.cancel import Cancellation, Cancelled
    from windtunnel.reports.measurements.bench_page import write_bench_page

    bench_alone.require_folder(report)
    try:
        floors = read_floors(floor_texts)
    except (ValueError, OSError) as error:
        raise click.UsageError(f"--floor: {error}") from error
    seen = machine.read_machine()
    if seen.warning:
        bench_alone.note(seen.warning)
    with one_line():
        missing = archive_host.archives(settings)[1]
    for name, reason in missing.items():
        bench_alone.note(f"left out: {archive_host.ARCHIVES[name].title}: {reason}")
    try:
        with one_line(), Cancellation():
            readings = rounds.run_rounds(settings, _print_start, _print_reading)
    except Cancelled as cancelled:
        raise Failure(str(cancelled), cancelled.exit_code) from cancelled
    comparisons = compare(readings, floors)
    document = bench_document(seen, settings, readings, comparisons)
    bench_alone.write_json(document, json_file)
    if report is not None:
        with one_line():
            write_bench_page(document, report)
    if str(json_file) == "-":
        click.echo(json.dumps(document))
    else:
        show(view(seen, settings, readings, comparisons))
    if enforce and any(each.holds is False for each in comparisons):
        return bench_alone.FLOOR_MISSED
    return exit_code.INCONCLUSIVE if any(each.void for each in readings) else exit_code.OK


def _print_start(round_index: int, subject: "DriverSubject | ArchiveSubject") -> None:
    label = "warm-up" if round_index < 0 else f"round {round_index + 1}"
    bench_alone.note(f"{label}: {subject.title}")


def _print_reading(reading: "Reading") -> None:
    if reading.void:
        bench_alone.note(f"  {reading.case}: VOID: {reading.void}")
    else:
        shown = [name for name in reading.values if name in HEADLINES]
        shown = shown or list(reading.values)[:1]
        text = ", ".join(f"{name} {number(reading.values[name])}" for name in shown)
        bench_alone.note(f"  {reading.case}: {text}")
