"""`windtunnel backlog`: how far each end of a stream is behind, as Aeron's BacklogStat shows it."""

import time
from dataclasses import asdict
from pathlib import Path

import click

from windtunnel.harness.cli.inspect.look import (
    EXIT_CODES,
    How,
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


@click.command(short_help="Show how far each end of a stream is behind, live.", epilog=EXIT_CODES)
@live_options
def backlog(directory: Path | None, as_json: bool, once: bool, interval_s: float) -> int:
    """Show how far each end of each stream is behind, in bytes.

    \b
      end         backlog: still to do              window: may do before it waits
      publisher   -                                 to publish before back pressure
      sender      published and not sent            to send before flow control
      receiver    seen behind a gap                 -
      subscriber  received and not read             -

    Counters move while they are read, so figures of a running stream may be a little wrong, even
    negative.

    \b
      windtunnel backlog
      windtunnel backlog --json | jq '.streams[].ends[] | select(.kind == "subscriber")'
    """
    where = directory_or_default(directory)
    return show(lambda: _look(where), How(as_json, once, interval_s))


def _look(directory: Path) -> View:
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
        closing=f"{len(found)} streams",
        keys=[(end.kind, end.registration_id, stream.session_id) for stream, end in rows],
    )


def _number(value: int | None) -> str:
    return "-" if value is None else f"{value:,}"
