"""Computes for how long fault rules and events interrupt a stream, and compares this with Aeron's
timeouts.

    cut of the status messages   >= 5 s     the publication is disconnected until the next one
    cut of the stream            >= 10 s    the image is closed (`timeouts.image_liveness`)
    silence in a group           >= 5 s     the sender no longer counts the receiver (`t:` of `fc`)

A receiver sends a status message every 200 ms, so the last one before a cut and the first one after
it can be that much further apart. Only rules that drop every frame of a type are considered. A rule
without an end cuts a receiver off for good, and does not count as an interruption.
Source: Aeron 1.53, publication connection timeout, image liveness timeout and flow control.
"""

from collections.abc import Iterable, Sequence

from windtunnel.harness.scenario.resolved.case import Case, TrafficCase
from windtunnel.harness.scenario.resolved.fault_case import CountCase, FaultCase, PlaceCase
from windtunnel.harness.scenario.resolved.impairment_case import ImpairmentCase
from windtunnel.harness.scenario.resolved.unawaited import (
    counted_hosts,
    flow_control,
    required_receivers,
)
from windtunnel.harness.scenario.schema.host_event import EventCase
from windtunnel.harness.scenario.schema.units import BILLION

CONNECTION_NS = 5_000_000_000
"""Aeron's default publication connection timeout."""
STATUS_MESSAGE_NS = 200_000_000
"""Aeron's default status message timeout."""
SILENCE_SLACK_NS = 2 * STATUS_MESSAGE_NS
"""Time by which a silence exceeds its cause: status messages before and after it are this far
apart.
"""
LOSSY = 0.5
"""Loss rate from which all status messages of the connection timeout may be lost."""
CLIENT_LIVENESS_NS = 10_000_000_000
"""Default of the client liveness timeout."""
DRIVER_NS = 10_000_000_000
"""Default of the driver timeout of clients."""
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


def is_cut_off(faults: Sequence[FaultCase], there: str, back: str, ordinal: int) -> bool:
    """Return whether fault rules cut a receiver off for good: they drop all its status messages, or
    everything that is sent to it.

    `there` is the link direction from the sender to the receiver, `back` the opposite one.
    """
    ways = ((back, ("SM",)), (there, (*STREAM, "SETUP")))
    return any(all(_ends(faults, link, name, ordinal) for name in types) for link, types in ways)


def _ends(faults: Sequence[FaultCase], link: str, name: str, ordinal: int) -> bool:
    """Return whether the first rule that applies to a type of frame of a stream drops it for
    good.
    """
    for fault in faults:
        if link in fault.links and name in fault.frame_types:
            if fault.ordinals and ordinal not in fault.ordinals:
                continue
            return drops_all(fault, ordinal) and _duration_ns(fault) == 0
    return False


def _duration_ns(fault: FaultCase) -> int:
    """Return the duration of each of a rule's active periods, or 0 if the rule has no end."""
    if fault.when is None:
        return 0
    if fault.when.for_ns:
        return fault.when.for_ns
    return NO_LIMIT_NS if fault.when.until is not None else 0


def may_disconnect(case: Case, traffic: TrafficCase) -> bool:
    """Return whether the scenario can disconnect a publication temporarily.

    This happens if a rule drops all receivers' status messages for about the connection timeout, an
    event pauses a driver or impairs a link for that long, or too few receivers of a group are left.
    Aeron then returns NOT_CONNECTED, and the publisher has to wait.
    """
    least_ns = CONNECTION_NS - SILENCE_SLACK_NS
    hosts = (*traffic.publishers, *traffic.subscribers)
    for event in case.events:
        if any(_may_silence(each, event.lasts_ns, least_ns) for each in event.impairments):
            return True
        is_long = event.action == "pause" and event.lasts_ns >= least_ns
        if is_long and "driver" in event.roles and event.host in hosts:
            return True
    return may_lack_receivers(case, traffic) or all(
        _silence_ns(case, flow) >= least_ns for flow in traffic.flows
    )


def _may_silence(impairment: ImpairmentCase, lasts_ns: int, least_ns: int) -> bool:
    """Return whether impairments for a while can keep all status messages back for long enough."""
    loss = 0.0 if impairment.loss is None else impairment.loss.rate
    is_slow = impairment.delay_ns + impairment.jitter_ns >= least_ns
    is_long = lasts_ns >= least_ns
    return is_slow or (is_long and bool(impairment.rate_bits_per_s or loss >= LOSSY))


def may_lack_receivers(case: Case, traffic: TrafficCase) -> bool:
    """Return whether the scenario can silence so many receivers of a group that fewer are left than
    its flow control requires.
    """
    for publisher in traffic.publishers:
        sender = traffic.between(publisher, traffic.to_host)
        counted = counted_hosts(sender)
        least_ns = flow_control(sender).timeout_ns - SILENCE_SLACK_NS
        flows = [traffic.between(publisher, host) for host in counted]
        silent = [flow for flow in flows if _silence_ns(case, flow) >= least_ns]
        if len(counted) - len(silent) < required_receivers(sender):
            return True
    return False


def silence_ns(case: Case, event: EventCase) -> int:
    """Return for how long the streams of the processes of an event are silent.

    The clients of a killed driver use the restarted one when they have noticed the death of the
    other.
    """
    if event.action == "kill" and "driver" in event.roles and event.process != "all":
        return max(event.lasts_ns, case.timeouts.driver_ns or DRIVER_NS)
    return event.lasts_ns


def _silence_ns(case: Case, flow: TrafficCase) -> int:
    """Return the longest time without status messages from a subscriber's host."""
    link = case.link_between(flow.to_host, flow.from_host)
    if link < 0:
        return 0
    ends = (flow.from_host, flow.to_host)
    pauses_ns = [
        silence_ns(case, event)
        for event in case.events
        if "driver" in event.roles and event.host in ends
    ]
    return max(cut_ns(case.faults, case.link_names[link], flow.ordinal, ("SM",)), *pauses_ns, 0)
