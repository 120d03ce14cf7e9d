"""`windtunnel loss`: shows a driver's loss report, like Aeron's LossStat."""

import time
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

import click

from windtunnel.harness.artifact.noun_form import noun_for
from windtunnel.harness.cli.inspect.look import (
    EXIT_CODES,
    OutputOptions,
    directory_or_default,
    live_options,
    show,
)
from windtunnel.harness.cli.render.table import Column, View
from windtunnel.harness.cli.render.time_text import time_text

if TYPE_CHECKING:
    from windtunnel.harness.inspect.gap_recovery import GapRecovery

COLUMNS = (
    Column("observations", True),
    Column("bytes lost", True),
    Column("first"),
    Column("last"),
    Column("gaps open", True),
    Column("oldest gap", True),
    Column("NAK retries", True),
    Column("repair time", True),
    Column("filled early", True),
    Column("session", True),
    Column("stream", True),
    Column("source"),
    Column("channel"),
)


@click.command(short_help="Show the loss of each image of a driver, live.", epilog=EXIT_CODES)
@live_options
def loss(directory: Path | None, as_json: bool, once: bool, interval_s: float) -> int:
    """Show the driver's loss report. It has one entry for each image that lost data.

    Lost bytes are counted when a gap is detected, whether or not they are retransmitted later.
    The columns from "gaps open" to "filled early" come from counters of images that send NAKs for
    all gaps, or that fill gaps on evidence; others show "-".

    \b
      windtunnel loss
      windtunnel loss --json | jq '[.losses[].bytes_lost] | add'
    """
    where = directory_or_default(directory)
    return show(lambda: _view(where), OutputOptions(as_json, once, interval_s))


def _recoveries(directory: Path) -> "dict[tuple[int, int], GapRecovery]":
    """Return the recovery of each stream, or nothing if the driver's counters cannot be read."""
    from windtunnel.harness.dissect.driver_files.cnc_file import CncFileError
    from windtunnel.harness.inspect.aeron_dir import NothingThereError, read_driver
    from windtunnel.harness.inspect.gap_recovery import gap_recoveries

    try:
        return gap_recoveries(read_driver(directory).counters())
    except (NothingThereError, CncFileError):
        return {}


def _recovery_cells(recovery: "GapRecovery | None") -> tuple[str, ...]:
    """Return the cells of an image's recovery."""
    if recovery is None:
        return ("-",) * 5
    counts = (recovery.gaps_open, recovery.nak_retries, recovery.filled_early)
    is_open, retries, early = ("-" if each is None else f"{each:,}" for each in counts)
    times = (recovery.oldest_gap_ns, recovery.repair_ns)
    oldest, repair = ("-" if each is None else f"{each / 1e6:,.1f} ms" for each in times)
    return is_open, oldest, retries, repair, early


def _view(directory: Path) -> View:
    from windtunnel.harness.inspect.aeron_dir import LOSS_REPORT_FILE, read_losses

    path = directory / LOSS_REPORT_FILE
    report = read_losses(directory)
    recoveries = _recoveries(directory)
    found = [recoveries.get((each.session_id, each.stream_id)) for each in report.losses]
    return View(
        heading=f"{time.strftime('%H:%M:%S')}  {path}",
        columns=COLUMNS,
        rows=[
            (
                str(each.observation_count),
                f"{each.bytes_lost:,}",
                time_text(each.first_ms),
                time_text(each.last_ms),
                *_recovery_cells(recovery),
                str(each.session_id),
                str(each.stream_id),
                each.source,
                each.channel,
            )
            for each, recovery in zip(report.losses, found, strict=True)
        ],
        document={
            "schema": "windtunnel-loss/1",
            "directory": str(directory),
            "losses": [
                asdict(each) | {"recovery": recovery and asdict(recovery)}
                for each, recovery in zip(report.losses, found, strict=True)
            ],
        },
        closing=f"{len(found)} loss {noun_for(len(found), 'entry', 'entries')}",
        problem=f"{path}: {report.problem}" if report.problem else "",
        keys=[(each.session_id, each.stream_id, each.first_ms) for each in report.losses],
    )
