"""`windtunnel streams`: shows the positions of each stream, like Aeron's StreamStat."""

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
    Column("counter"),
    Column("registration", True),
    Column("value", True),
    Column("channel"),
)


@click.command(short_help="Show the positions of each stream, live.", epilog=EXIT_CODES)
@live_options
def streams(directory: Path | None, as_json: bool, once: bool, interval_s: float) -> int:
    """Show the position counters of each stream of the driver: pub-pos, snd-pos, rcv-hwm and so on.

    If the driver both sends and receives a stream, each end is shown with its channel.

    \b
      windtunnel streams
      windtunnel streams --once | grep rcv-pos
      windtunnel streams --json | jq '.streams[] | {session_id, counters}'
    """
    where = directory_or_default(directory)
    return show(lambda: _view(where), OutputOptions(as_json, once, interval_s))


def _view(directory: Path) -> View:
    from windtunnel.harness.inspect.aeron_dir import read_driver
    from windtunnel.harness.inspect.driver_state import driver_state
    from windtunnel.harness.inspect.streams import streams as grouped

    cnc = read_driver(directory)
    state = driver_state(cnc, time.time_ns() // 1_000_000)
    found = grouped(cnc.counters())
    rows = [(stream, counter) for stream in found for counter in stream.counters]
    return View(
        heading=heading(directory, state),
        columns=COLUMNS,
        rows=[
            (
                str(stream.session_id),
                str(stream.stream_id),
                counter.name,
                str(counter.registration_id),
                f"{counter.value:,}",
                stream.channel,
            )
            for stream, counter in rows
        ],
        document={
            "schema": "windtunnel-streams/1",
            "driver": driver_document(directory, state),
            "streams": [asdict(each) for each in found],
        },
        closing=f"{len(found)} {noun_for(len(found), 'stream')}",
        keys=[(counter.registration_id, counter.name, stream.channel) for stream, counter in rows],
    )
