"""`windtunnel errors`: shows a driver's distinct error log, like Aeron's ErrorStat."""

import time
from dataclasses import asdict
from pathlib import Path

import click

from windtunnel.harness.cli.inspect.look import (
    EXIT_CODES,
    OutputOptions,
    directory_or_default,
    driver_document,
    heading,
    live_options,
    show,
)
from windtunnel.harness.cli.render.table import Column, View
from windtunnel.harness.cli.render.time_text import time_text

COLUMNS = (Column("count", True), Column("first"), Column("last"), Column("error"))


@click.command(short_help="Show a driver's distinct errors, live.", epilog=EXIT_CODES)
@live_options
def errors(directory: Path | None, as_json: bool, once: bool, interval_s: float) -> int:
    """Show the driver's distinct errors: count, times of first and last observation, message.

    \b
      windtunnel errors
      windtunnel errors --dir /dev/shm/aeron-prod --json | jq -r '.errors[].text'
    """
    where = directory_or_default(directory)
    return show(lambda: _view(where), OutputOptions(as_json, once, interval_s))


def _view(directory: Path) -> View:
    from windtunnel.harness.inspect.aeron_dir import CNC_FILE, read_driver
    from windtunnel.harness.inspect.driver_state import driver_state

    cnc = read_driver(directory)
    state = driver_state(cnc, time.time_ns() // 1_000_000)
    found, damage = cnc.read_error_log()
    return View(
        heading=heading(directory, state),
        columns=COLUMNS,
        rows=[
            (str(each.count), time_text(each.first_ms), time_text(each.last_ms), each.text)
            for each in found
        ],
        document={
            "schema": "windtunnel-errors/1",
            "driver": driver_document(directory, state),
            "errors": [asdict(each) for each in found],
        },
        closing=f"{len(found)} distinct errors observed",
        problem=f"{directory / CNC_FILE}: the error log is damaged: {damage}" if damage else "",
        keys=[(each.first_ms, each.text) for each in found],
    )
