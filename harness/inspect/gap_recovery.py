"""How an image recovers from losses, according to its counters.

    rcv-gaps-open, rcv-oldest-gap                      of images with a row for each gap
    rcv-nak-retries, rcv-repair-time                   if NAKs are sent for all gaps
    rcv-gaps-filled-early                              if gaps are filled on evidence

Only the driver `ours` has these counters, and only for images with one of these modes.
"""

from collections.abc import Iterable
from dataclasses import dataclass

from windtunnel.harness.artifact.host.counter_sample import CounterFacts
from windtunnel.harness.dissect.driver_files import counter_key

_FIELDS = {
    counter_key.GAPS_OPEN: "gaps_open",
    counter_key.OLDEST_GAP: "oldest_gap_ns",
    counter_key.NAK_RETRIES: "nak_retries",
    counter_key.REPAIR_TIME: "repair_ns",
    counter_key.GAPS_FILLED_EARLY: "filled_early",
}


@dataclass(frozen=True)
class GapRecovery:
    """The state of an image's recovery. A value is None if the image has no such counter."""

    gaps_open: int | None = None
    oldest_gap_ns: int | None = None
    nak_retries: int | None = None
    repair_ns: int | None = None
    filled_early: int | None = None


def gap_recoveries(counters: Iterable[CounterFacts]) -> dict[tuple[int, int], GapRecovery]:
    """Return the recovery of the newest image of each session and stream that has such counters."""
    newest: dict[tuple[int, int], int] = {}
    values: dict[tuple[int, int], dict[str, int]] = {}
    for counter in counters:
        if counter.type_id not in _FIELDS:
            continue
        stream, image = counter_key.session_and_stream(counter), counter_key.identity(counter)
        if image > newest.get(stream, -1):
            newest[stream], values[stream] = image, {}
        if image == newest[stream]:
            values[stream][_FIELDS[counter.type_id]] = counter.final_value
    return {stream: GapRecovery(**found) for stream, found in values.items()}
