"""`windtunnel loss`: shows a driver's loss report, like Aeron's LossStat."""

import time
from dataclasses import asdict
from pathlib import Path

import click

from windtunnel.harness.cli.inspect.look import (
    EXIT_CODES,
    OutputOptions,
    directory_or_default,
    live_options,
    show,
)
from windtunnel.harness.cli.render.table import Column, View
from windtunnel.harness.cli.render.time_text import time_text

COLUMNS = (
    Column("observations", True),
    Column("bytes lost", True),
    Column("first"),
    Column("last"),
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

    \b
      windtunnel loss
      windtunnel loss --json | jq '[.losses[].bytes_lost] | add'
    """
    where = directory_or_default(directory)
    return show(lambda: _view(where), OutputOptions(as_json, once, interval_s))


def _view(directory: Path) -> View:
    from windtunnel.harness.inspect.aeron_dir import LOSS_REPORT_FILE, read_losses

    path = directory / LOSS_REPORT_FILE
    report = read_losses(directory)
    return View(
        heading=f"{time.strftime('%H:%M:%S')}  {path}",
        columns=COLUMNS,
        rows=[
            (
                str(each.observation_count),
                f"{each.bytes_lost:,}",
                time_text(each.first_ms),
                time_text(each.last_ms),
                str(each.session_id),
                str(each.stream_id),
                each.source,
                each.channel,
            )
            for each in report.losses
        ],
        document={
            "schema": "windtunnel-loss/1",
            "directory": str(directory),
            "losses": [asdict(each) for each in report.losses],
        },
        closing=f"{len(report.losses)} loss entries",
        problem=f"{path}: {report.problem}" if report.problem else "",
        keys=[(each.session_id, each.stream_id, each.first_ms) for each in report.losses],
    )
