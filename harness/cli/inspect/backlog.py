"""`windtunnel backlog`: shows the backlog at each end of a stream, like Aeron's BacklogStat."""

import time
from dataclasses import asdict
from pathlib import Path

import click

from windtunnel.harness.artifact.noun_form import noun_for
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

COLUMNS = (
    Column("session", True),
    Column("stream", True),
    Column("end"),
    Column("registration", True),
    Column("position", True),
    Column("backlog", True),
    Column("window", True),
    Column("channel"),
)


@click.command(short_help="Show the backlog of each end of each stream, live.", epilog=EXIT_CODES)
@live_options
def backlog(directory: Path | None, as_json: bool, once: bool, interval_s: float) -> int:
    """Show the backlog at each end of each stream, in bytes.

    \b
      end         backlog                           window
      publisher   -                                 bytes until back pressure
      sender      published but not sent            bytes until flow control stops it
      receiver    received, but after a gap         -
      subscriber  received but not consumed         -

    Counters change while they are read, so the figures of an active stream may be slightly off,
    or even negative.

    \b
      windtunnel backlog
      windtunnel backlog --json | jq '.streams[].ends[] | select(.kind == "subscriber")'
    """
    where = directory_or_default(directory)
    return show(lambda: _view(where), OutputOptions(as_json, once, interval_s))


def _view(directory: Path) -> View:
    from windtunnel.harness.inspect.aeron_dir import read_driver
    from windtunnel.harness.inspect.backlog import backlogs
    from windtunnel.harness.inspect.driver_state import driver_state

    cnc = read_driver(directory)
    state = driver_state(cnc, time.time_ns() // 1_000_000)
    found = backlogs(cnc.counters())
    rows = [(stream, end) for stream in found for end in stream.ends]
    return View(
        heading=heading(directory, state),
        columns=COLUMNS,
        rows=[
            (
                str(stream.session_id),
                str(stream.stream_id),
                end.kind,
                str(end.registration_id),
                _number(end.position),
                _number(end.backlog_bytes),
                _number(end.window_bytes),
                stream.channel,
            )
            for stream, end in rows
        ],
        document={
            "schema": "windtunnel-backlog/1",
            "driver": driver_document(directory, state),
            "streams": [asdict(each) for each in found],
        },
        closing=f"{len(found)} {noun_for(len(found), 'stream')}",
        keys=[(end.kind, end.registration_id, stream.session_id) for stream, end in rows],
    )


def _number(value: int | None) -> str:
    return "-" if value is None else f"{value:,}"
