"""Computes for how long fault rules interrupt a stream, and compares this with Aeron's timeouts.

    cut of the status messages   >= 5 s     the publication is disconnected until the next one
    cut of the stream            >= 10 s    the image is closed (`timeouts.image_liveness`)

A receiver sends a status message every 200 ms, so the last one before a cut and the first one after
it can be that much further apart. Only rules that drop every frame of a type are considered. A rule
without an end cuts a receiver off for good, and does not count as an interruption.
Source: Aeron 1.53, publication connection timeout and image liveness timeout.
"""

from collections.abc import Iterable

from windtunnel.harness.scenario.resolved.case import Case, TrafficCase
from windtunnel.harness.scenario.resolved.fault_case import CountCase, FaultCase, PlaceCase
from windtunnel.harness.scenario.schema.units import BILLION

CONNECTION_NS = 5_000_000_000
"""Aeron's default publication connection timeout."""
STATUS_MESSAGE_NS = 200_000_000
"""Aeron's default status message timeout."""
NO_LIMIT_NS = 1 << 62
"""Length assumed for a cut that ends at a stream position: its duration is unknown."""
STREAM = ("DATA", "PAD", "HEARTBEAT")
"""Frame types that keep an image alive."""


def cut_ns(faults: Iterable[FaultCase], link: str, ordinal: int, types: Iterable[str]) -> int:
    """Return the longest time for which fault rules drop all frames of the given types in a link
    direction.

    Rules for different types are taken to apply at the same time. The result is 0 without a cut.
    """
    rules = [each for each in faults if link in each.links and drops_all(each, ordinal)]
    return min(
        max((_duration_ns(each) for each in rules if name in each.frame_types), default=0)
        for name in types
    )


def drops_all(fault: FaultCase, ordinal: int) -> bool:
    """Return whether a rule drops every frame of its types on a stream while it is active."""
    everything = (
        fault.session == fault.flags_mask == 0
        and fault.place == PlaceCase()
        and fault.order == fault.attempt == CountCase()
        and (not fault.ordinals or ordinal in fault.ordinals)
    )
    return everything and fault.action == "drop" and fault.share_ppb == BILLION


def _duration_ns(fault: FaultCase) -> int:
    """Return the duration of each of a rule's active periods, or 0 if the rule has no end."""
    if fault.when is None:
        return 0
    if fault.when.for_ns:
        return fault.when.for_ns
    return NO_LIMIT_NS if fault.when.until is not None else 0


def may_disconnect(case: Case, traffic: TrafficCase) -> bool:
    """Return whether the scenario can disconnect a publication temporarily.

    This happens if a rule drops all receivers' status messages for about the connection timeout, or
    an event pauses a driver for that long. Aeron then returns NOT_CONNECTED, and the publisher has
    to wait.
    """
    least_ns = CONNECTION_NS - 2 * STATUS_MESSAGE_NS
    hosts = (*traffic.publishers, *traffic.subscribers)
    for event in case.events:
        is_long = event.action == "pause" and event.lasts_ns >= least_ns
        if is_long and "driver" in event.roles and event.host in hosts:
            return True
    return all(_silence_ns(case, flow) >= least_ns for flow in traffic.flows)


def _silence_ns(case: Case, flow: TrafficCase) -> int:
    """Return the longest time without status messages from a subscriber's host."""
    link = case.link_between(flow.to_host, flow.from_host)
    if link < 0:
        return 0
    return cut_ns(case.faults, case.link_names[link], flow.ordinal, ("SM",))
