"""Validates fault rules: rejects rules that can never apply.

A scenario with such a rule would pass for the wrong reason, so it is rejected before anything
starts. Each problem contains the path of its value in the file.
"""

from collections.abc import Iterator

from windtunnel.harness.scenario.schema.channel import parse_channel
from windtunnel.harness.scenario.schema.fault import Fault, Reached
from windtunnel.harness.scenario.schema.model import Scenario
from windtunnel.harness.scenario.schema.problem import Path, Problem
from windtunnel.harness.scenario.schema.traffic import Traffic
from windtunnel.harness.scenario.schema.units import BILLION
from windtunnel.harness.scenario.validation.fault_reach import reach_problems
from windtunnel.harness.scenario.validation.link_directions import (
    Direction,
    named_directions,
    unknown_direction,
)
from windtunnel.harness.scenario.validation.loss_model_validation import loss_model_problems

POSITIONAL = frozenset({"DATA", "PAD"})
"""Frame types that occupy bytes of a stream and can be reordered within it."""
PLACED = POSITIONAL | {"HEARTBEAT", "SETUP", "SM", "NAK"}
"""Frame types that contain a position."""
FROM_PUBLISHER = frozenset({"DATA", "PAD", "HEARTBEAT", "SETUP", "RTTM"})
FROM_SUBSCRIBER = frozenset({"SM", "NAK", "RTTM", "ERR", "RSP_SETUP"})
FIELDLESS = {
    "frame-length": frozenset[str](),
    "version": frozenset[str](),
    "flags": frozenset[str](),
    "type": frozenset[str](),
    "session-id": frozenset[str](),
    "stream-id": frozenset[str](),
    "term-offset": frozenset({"RTTM", "ERR", "RSP_SETUP"}),
    "term-id": frozenset({"RTTM", "ERR", "RSP_SETUP"}),
    "reserved": frozenset({"SETUP", "SM", "NAK", "RTTM", "ERR", "RSP_SETUP"}),
    "payload": frozenset({"PAD", "HEARTBEAT", "SETUP", "SM", "NAK", "RTTM", "ERR", "RSP_SETUP"}),
}
"""For each field: the frame types that do not have it."""


def rule_directions(scenario: Scenario, fault: Fault) -> list[Direction]:
    """Return a fault rule's link directions in order, as pairs (sending host, receiving host)."""
    return named_directions(scenario, fault.where.links)


def fault_problems(scenario: Scenario) -> list[Problem]:
    """Return all problems with a scenario's fault rules."""
    found: list[Problem] = []
    for index, fault in enumerate(scenario.faults):
        path: Path = ("faults", index)
        unknown = list(_unknown_link(scenario, fault, path))
        found += unknown or [*_rule(scenario, fault, path), *_shared(scenario, index, path)]
    return found + list(_shadowed(scenario))


def _unknown_link(scenario: Scenario, fault: Fault, path: Path) -> Iterator[Problem]:
    if text := unknown_direction(scenario, rule_directions(scenario, fault)):
        yield Problem((*path, "where", "link"), text)


def _rule(scenario: Scenario, fault: Fault, path: Path) -> Iterator[Problem]:
    what = fault.what
    types = frozenset(what.frame_types)
    if len(set(what.types)) != len(what.types):
        text = f"expected distinct frame types, found {', '.join(what.types)}"
        yield Problem((*path, "what", "type"), text)
    stream_ids = [traffic.stream_id for traffic in scenario.traffic]
    unknown = [each for each in what.streams or () if each not in stream_ids]
    chosen = stream_ids if unknown or what.streams is None else list(what.streams)
    seen = _seen(scenario, fault, chosen)
    absent = [name for name in what.types if name not in ("CONTROL", "ANY") and name not in seen]
    if absent or not types & seen:
        where = ", ".join(fault.where.links)
        sent = "is sent" if len(chosen) == len(stream_ids) else _named_streams(chosen)
        text = f"expected a frame type that {sent} over {where}"
        text = f"{text}, found {', '.join(absent or what.types)}"
        yield Problem((*path, "what", "type"), text)
    for stream_id in unknown:
        yield Problem((*path, "what", "stream"), _unknown_stream(stream_id, stream_ids))
    if what.position is not None:
        yield from _unplaced(types - PLACED, "contains no position", (*path, "what", "position"))
    if what.order is not None:
        yield from _unplaced(
            types & POSITIONAL, "is selected by position, not by order", (*path, "what", "order")
        )
    if fault.attempt is not None:
        yield from _unplaced(types - POSITIONAL, "is never retransmitted", (*path, "attempt"))
    if fault.when is not None:
        for key in ("reached", "until"):
            point: Reached | None = getattr(fault.when, key)
            if point is not None and point.stream_id not in stream_ids:
                text = _unknown_stream(point.stream_id, stream_ids)
                yield Problem((*path, "when", key, "stream"), text)
    yield from _act(fault, types, (*path, "act"))
    if fault.act.readdress is not None:
        yield from _refused(scenario, fault, chosen, (*path, "act", "readdress"))
    yield from reach_problems(scenario, fault, path)


def _act(fault: Fault, types: frozenset[str], path: Path) -> Iterator[Problem]:
    act = fault.act
    path = (*path, act.action)
    is_table = getattr(act, act.action) is not act.loss_model
    yield from loss_model_problems(act.loss_model, (*path, "share") if is_table else path)
    if act.action in ("swap", "displace"):
        text = f"has no position, which {act.action} needs: use hold"
        yield from _unplaced(types - POSITIONAL, text, path)
    for held in (act.hold, act.duplicate):
        if held is not None and held.until is not None:
            text = "has no position, which `until` needs: use `for`"
            yield from _unplaced(types - POSITIONAL, text, (*path, "until"))
    if act.corrupt is not None:
        lacking = types & FIELDLESS[act.corrupt.field]
        yield from _unplaced(lacking, f"has no {act.corrupt.field}", (*path, "field"))
    if act.inject is not None:
        for index, forged in enumerate(act.inject.frames):
            place = forged.place
            moved = place.advance is not None or place.term_end is not None
            if moved and not types <= PLACED:
                text = f"{', '.join(sorted(types - PLACED))} contains no position"
                yield Problem((*path, "frames", index, "place"), text)


def _unplaced(names: frozenset[str], text: str, path: Path) -> Iterator[Problem]:
    if names:
        yield Problem(path, f"{', '.join(sorted(names))} {text}")


def _refused(scenario: Scenario, fault: Fault, chosen: list[int], path: Path) -> Iterator[Problem]:
    """Yield a problem for feedback from a new port to a publication that has an endpoint, or
    dynamic destinations.
    """
    types = [name for name in fault.what.frame_types if name in FROM_SUBSCRIBER]
    for traffic in scenario.traffic if types else ():
        effect = _effect_of_new_port(traffic.channel)
        if traffic.stream_id not in chosen or not effect:
            continue
        for sender, receiver in rule_directions(scenario, fault):
            if sends_over(traffic, receiver, sender):
                text = f"{', '.join(types)} of {traffic.id} on {sender}->{receiver} {effect}"
                yield Problem(path, text)
                return


def _effect_of_new_port(channel: str) -> str:
    """Return what happens to a publication's feedback from a new port, or "" if that is usual."""
    try:
        parsed = parse_channel(channel)
    except ValueError:
        return ""  # Reported for the channel itself.
    if parsed.control_mode == "dynamic":
        text = "would add a destination, to which everything is sent again, and the judge cannot "
        return f"{text}tell that from retransmits: select other frames"
    if parsed.is_group:
        return ""
    text = "would be lost: Aeron connects the socket of a publication to its endpoint, and receives"
    return f"{text} from no other port. Use drop, or select other frames"


def _seen(scenario: Scenario, fault: Fault, chosen: list[int]) -> set[str]:
    """Return the types of the frames that pass over a fault rule's links for the chosen streams."""
    types: set[str] = set()
    traffics = [each for each in scenario.traffic if each.stream_id in chosen]
    for sender, receiver in rule_directions(scenario, fault):
        for traffic in traffics:
            if sends_over(traffic, sender, receiver):
                types |= FROM_PUBLISHER
            if sends_over(traffic, receiver, sender):
                types |= FROM_SUBSCRIBER
    return types


def sends_over(traffic: Traffic, sender: str, receiver: str) -> bool:
    """Return whether a host sends a stream, or its replicated recording, to another host."""
    if (sender, receiver) == (traffic.recorded, traffic.replicated):
        return True
    return sender in traffic.from_hosts and receiver in traffic.to_hosts


def _shared(scenario: Scenario, index: int, path: Path) -> Iterator[Problem]:
    """Yield the problems with a rule that acts before a multicast packet is copied to its links."""
    fault, path = scenario.faults[index], (*path, "where", "shared")
    if not fault.where.shared:
        return
    directions = rule_directions(scenario, fault)
    senders = list(dict.fromkeys(sender for sender, _ in directions))
    if len(senders) > 1 or len(directions) < 2:
        found = ", ".join("->".join(each) for each in directions)
        text = "expected several directions from one sender, such as `link: pub->*`"
        yield Problem(path, f"{text}, found {found}")
    for traffic in scenario.traffic:
        chosen = fault.what.streams is None or traffic.stream_id in fault.what.streams
        sent = [host for host in senders if chosen and host in traffic.from_hosts]
        if any(not _is_multicast(traffic.channels.get(host, traffic.channel)) for host in sent):
            text = f"expected multicast streams, but {traffic.id} sends a packet to each receiver"
            yield Problem(path, f"{text}: select others with `stream`")
    for earlier in scenario.faults[:index]:
        taken = {*rule_directions(scenario, earlier)} & {*directions}
        if taken and not earlier.where.shared:
            text = f"expected shared rules before rules for single links, found {earlier.id!r}"
            yield Problem(path, f"{text} before it: move that rule down")


def _is_multicast(text: str) -> bool:
    try:
        return parse_channel(text).is_multicast
    except ValueError:
        return True  # Reported for the channel itself.


def _named_streams(stream_ids: list[int]) -> str:
    """Format stream ids as the beginning of a sentence, for example "stream 1001 sends"."""
    if len(stream_ids) == 1:
        return f"stream {stream_ids[0]} sends"
    return f"streams {', '.join(map(str, stream_ids))} send"


def _shadowed(scenario: Scenario) -> Iterator[Problem]:
    """Yield a problem for each fault rule that can never apply because an earlier rule always
    applies first.
    """
    for later_index, later in enumerate(scenario.faults):
        matched = _matched(scenario, later)
        for earlier in scenario.faults[:later_index]:
            takes_all = earlier.act.share_ppb == BILLION and _looks_at_all(earlier)
            if takes_all and matched <= _matched(scenario, earlier):
                text = f"can never apply: rule {earlier.id!r} applies to all these frames first"
                yield Problem(("faults", later_index), text)
                break


def _looks_at_all(fault: Fault) -> bool:
    """Return whether a fault rule has no conditions other than frame type and link."""
    chosen = fault.what.model_fields_set - {"types"}
    return not chosen and fault.when is None and fault.attempt is None


def _matched(scenario: Scenario, fault: Fault) -> set[tuple[Direction, str]]:
    directions = rule_directions(scenario, fault)
    return {(direction, name) for direction in directions for name in fault.what.frame_types}


def _unknown_stream(stream_id: int, stream_ids: list[int]) -> str:
    known = ", ".join(map(str, sorted(stream_ids)))
    return f"expected one of the streams {known}, found {stream_id}"
