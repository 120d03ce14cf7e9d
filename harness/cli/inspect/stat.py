"""`windtunnel stat`: shows all counters of a driver, like Aeron's AeronStat."""

import re
import time
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from windtunnel.harness.cli.inspect.look import (
    EXIT_CODES,
    OutputOptions,
    directory_or_default,
    driver_document,
    heading,
    live_options,
    pattern,
    show,
)
from windtunnel.harness.cli.render.table import Column, View

if TYPE_CHECKING:
    from windtunnel.harness.artifact.host.counter_sample import CounterFacts
    from windtunnel.harness.inspect.counter_filter import CounterFilter

COLUMNS = (Column("id", True), Column("value", True), Column("label"))


@click.command(short_help="Show a driver's counters, live.", epilog=EXIT_CODES)
@live_options
@click.option(
    "--type",
    "type_",
    callback=pattern,
    metavar="REGEX",
    help="Show only counters whose type id matches REGEX.",
)
@click.option(
    "--identity",
    callback=pattern,
    metavar="REGEX",
    help="Show only counters whose system counter id or registration id matches REGEX.",
)
@click.option(
    "--session",
    callback=pattern,
    metavar="REGEX",
    help="Show only counters whose session id matches REGEX.",
)
@click.option(
    "--stream",
    callback=pattern,
    metavar="REGEX",
    help="Show only counters whose stream id matches REGEX.",
)
@click.option(
    "--channel",
    callback=pattern,
    metavar="REGEX",
    help="Show only counters whose channel matches REGEX.",
)
@click.option("--nonzero", is_flag=True, help="Omit counters whose value is 0.")
def stat(
    directory: Path | None,
    as_json: bool,
    once: bool,
    interval_s: float,
    type_: re.Pattern[str] | None,
    identity: re.Pattern[str] | None,
    session: re.Pattern[str] | None,
    stream: re.Pattern[str] | None,
    channel: re.Pattern[str] | None,
    nonzero: bool,
) -> int:
    """Show all counters of a driver, either Aeron's or Windtunnel's.

    A REGEX matches anywhere in the value. Anchor it with ^ and $ to match the whole value. As in
    Aeron's AeronStat, a filter does not apply to counters without that attribute: --session keeps
    the system counters, and --type '[1-9]' excludes them.

    \b
      windtunnel stat                                    show counters live, until Ctrl-C
      windtunnel stat --type '^[1-9]' --session '^77$'   show the counters of one session
      windtunnel stat --json | jq '.counters[] | select(.type_id == 5) | .value'
    """
    from windtunnel.harness.inspect.counter_filter import CounterFilter

    where = directory_or_default(directory)
    counter_filter = CounterFilter(type_, identity, session, stream, channel)
    output = OutputOptions(as_json, once, interval_s)
    return show(lambda: _view(where, counter_filter, nonzero), output)


def _view(directory: Path, counter_filter: "CounterFilter", nonzero: bool) -> View:
    from windtunnel.harness.inspect.aeron_dir import read_driver
    from windtunnel.harness.inspect.driver_state import driver_state

    cnc = read_driver(directory)
    state = driver_state(cnc, time.time_ns() // 1_000_000)
    counters = [
        each
        for each in cnc.counters()
        if counter_filter.passes(each) and (each.final_value or not nonzero)
    ]
    return View(
        heading=heading(directory, state),
        columns=COLUMNS,
        rows=[(str(each.counter_id), f"{each.final_value:,}", each.label) for each in counters],
        document={
            "schema": "windtunnel-stat/1",
            "driver": driver_document(directory, state),
            "counters": [_document(each) for each in counters],
        },
        keys=[(each.counter_id, each.registration_id) for each in counters],
    )


def _document(counter: "CounterFacts") -> dict[str, Any]:
    from windtunnel.harness.dissect.driver_files import counter_key

    document = asdict(counter)
    document["value"] = document.pop("final_value")
    if counter.type_id in counter_key.STREAM_TYPES:
        session_id, stream_id = counter_key.session_and_stream(counter)
        document |= {"session_id": session_id, "stream_id": stream_id}
    if counter.type_id in counter_key.STREAM_TYPES | counter_key.ENDPOINT_TYPES:
        document["channel"] = counter_key.channel(counter)
    return document
