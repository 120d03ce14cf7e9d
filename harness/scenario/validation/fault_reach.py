"""Validates fault rules: rejects conditions that no frame in the scenario can meet.

    positions    after the end of the log, or before its start
    attempts     retransmissions of a stream that retransmits nothing
    sessions     more sessions than the publisher has
    times        after the end of the run
    lengths      frames longer than the MTU

Only what certainly cannot happen is rejected, since forged and damaged frames can cause almost
anything.
"""

from collections.abc import Iterator

from windtunnel.harness.scenario.schema.channel import parse_channel
from windtunnel.harness.scenario.schema.fault import Fault, PositionFilter
from windtunnel.harness.scenario.schema.model import Scenario
from windtunnel.harness.scenario.schema.problem import Path, Problem
from windtunnel.harness.scenario.schema.traffic import Traffic
from windtunnel.harness.scenario.schema.units import format_bytes, format_duration
from windtunnel.harness.scenario.validation.stream_extent import StreamExtent, extent_of

OWN_LOG = frozenset({"DATA", "PAD"})
"""Frame types that are part of the log."""
FROM_LOG = OWN_LOG | {"HEARTBEAT", "SETUP"}
"""Frame types whose position is in the log, whatever the receiver sends."""
BOUNDED = FROM_LOG | {"SM", "NAK"}
"""Frame types that are no longer than the MTU."""
REACHES = "expected a position that the stream reaches: its log"


def reach_problems(scenario: Scenario, fault: Fault, path: Path) -> Iterator[Problem]:
    """Yield a problem for each condition of a fault rule that no frame can meet. `path` is the
    rule's path.
    """
    chosen = _streams(scenario, fault)
    found = [extent_of(scenario, each) for each in chosen]
    extents = [each for each in found if each is not None]
    if chosen and len(extents) == len(chosen):
        yield from _positions(scenario, fault, extents, path)
        yield from _truncation(fault, extents, path)
    if chosen:
        yield from _attempts(scenario, fault, chosen, path)
        yield from _sessions(scenario, fault, chosen, path)
    yield from _times(scenario, fault, path)


def _streams(scenario: Scenario, fault: Fault) -> list[Traffic]:
    chosen = fault.what.streams
    return [each for each in scenario.traffic if chosen is None or each.stream_id in chosen]


def _can_deceive(scenario: Scenario) -> bool:
    """Return whether a fault rule forges or damages frames, which can cause unusual driver
    behaviour.
    """
    return any(each.act.inject or each.act.corrupt for each in scenario.faults)


def _positions(
    scenario: Scenario, fault: Fault, extents: list[StreamExtent], path: Path
) -> Iterator[Problem]:
    position, types = fault.what.position, frozenset(fault.what.frame_types)
    if position is None or (_can_deceive(scenario) and not types <= FROM_LOG):
        return
    at: Path = (*path, "what", "position")
    end_max = max(each.end_max for each in extents)
    begin = position.ranges[0].start if position.ranges else position.start or 0
    if position.at is not None:
        if types <= OWN_LOG and not any(_has_place(each, position.at) for each in extents):
            term = format_bytes(max(each.term_length for each in extents))
            text = f"expected a stream that reaches the end of a term of {term}, "
            yield Problem((*at, "at"), f"{text}but the stream ends before")
    elif begin > end_max:
        key = "ranges" if position.ranges else "from"
        text = f"{REACHES} ends before {_rounded(end_max)}, found {format_bytes(begin)}"
        yield Problem((*at, key), text)
    elif types <= OWN_LOG and position.every is None:
        end, start = _end(position), min(each.start for each in extents)
        if end <= start:
            text = f"{REACHES} starts at {format_bytes(start)}, found a range that ends at "
            yield Problem(at, f"{text}{format_bytes(end)}")


def _has_place(extent: StreamExtent, place: str) -> bool:
    """Return whether a log can contain a frame at a given place: the start or end of a term, or the
    end of the stream.
    """
    starts_term = place == "term-start" and extent.start % extent.term_length == 0
    return place == "stream-end" or starts_term or extent.crosses_term


def _end(position: PositionFilter) -> int:
    if position.ranges:
        return position.ranges[-1].start + position.ranges[-1].length
    return (position.start or 0) + (position.length or 1)


def _rounded(length_bytes: int) -> str:
    """Format a number of bytes, rounded up to whole KiB."""
    return format_bytes(-(-length_bytes // 1024) * 1024)


def _truncation(fault: Fault, extents: list[StreamExtent], path: Path) -> Iterator[Problem]:
    truncate, mtu = fault.act.truncate, max(each.mtu for each in extents)
    if truncate and set(fault.what.frame_types) <= BOUNDED and truncate.to >= mtu:
        text = f"expected less than the MTU of {mtu}B, found {truncate.to}B: no frame is longer"
        yield Problem((*path, "act", "truncate", "to"), text)


def _attempts(
    scenario: Scenario, fault: Fault, chosen: list[Traffic], path: Path
) -> Iterator[Problem]:
    if fault.attempt is None or fault.attempt.first == 1 or _can_deceive(scenario):
        return
    if not any(_may_repeat(scenario, each) for each in chosen):
        text = "expected a reliable stream: an unreliable stream retransmits nothing"
        yield Problem((*path, "attempt"), text)


def _may_repeat(scenario: Scenario, traffic: Traffic) -> bool:
    """Return whether a stream can send the data at one position over a link more than once.

    Two destinations can be on one host, and a restarted publisher or an archive can send the data
    again.
    """
    if len(traffic.from_hosts) > 1 or traffic.archived or traffic.replays or scenario.events:
        return True
    try:
        channel = parse_channel(traffic.channels.get(traffic.from_host, traffic.channel))
        receives = [traffic.receives.get(host, traffic.receive) for host in traffic.to_hosts]
        return channel.is_group or any(parse_channel(each).reliable for each in receives)
    except ValueError:
        return True  # Reported for the channel itself.


def _sessions(
    scenario: Scenario, fault: Fault, chosen: list[Traffic], path: Path
) -> Iterator[Problem]:
    session = fault.what.session
    if session is None or any(each.archived or each.replays for each in chosen):
        return
    senders = {host for each in chosen for host in each.from_hosts}
    most = 1 + sum(each.whom.host in senders for each in scenario.events)
    if session > most:
        text = f"expected at most {most} (the stream's sessions), found {session}"
        text = f"{text}: a new session needs an event on the publisher's host"
        yield Problem((*path, "what", "session"), text)


def _times(scenario: Scenario, fault: Fault, path: Path) -> Iterator[Problem]:
    if fault.when is None:
        return
    wall_ns, after_ns = scenario.budget.wall_ns, fault.when.after_ns
    if after_ns >= wall_ns:
        text = f"expected less than budget.wall ({format_duration(wall_ns)})"
        yield Problem((*path, "when", "after"), f"{text}, found {format_duration(after_ns)}")
    reached = fault.when.reached
    waited = [each for each in scenario.traffic if reached and each.stream_id == reached.stream_id]
    for traffic in waited:
        extent = extent_of(scenario, traffic)
        if reached is not None and extent is not None and reached.position > extent.end_max:
            text = f"{REACHES} ends before {_rounded(extent.end_max)}"
            text = f"{text}, found {format_bytes(reached.position)}"
            yield Problem((*path, "when", "reached", "position"), text)
