"""Fault rules that are well-formed and yet cannot happen.

A rule that can never fire would let a scenario pass for the wrong reason, so it is refused before
anything starts. Each finding names the place in the file by a path of keys and indices.
"""

from collections.abc import Iterator

from windtunnel.harness.scenario.schema.fault import Fault, Reached
from windtunnel.harness.scenario.schema.model import Scenario
from windtunnel.harness.scenario.schema.problem import Path, Problem
from windtunnel.harness.scenario.schema.units import BILLION
from windtunnel.harness.scenario.validation.loss_model_validation import chance_problems

Direction = tuple[str, str]
"""Sending and receiving host."""

ANY_HOST = "*"
POSITIONAL = frozenset({"DATA", "PAD"})
"""Frame types that have a place in a stream, and so a neighbour to be swapped with."""
PLACED = POSITIONAL | {"HEARTBEAT", "SETUP", "SM", "NAK"}
"""Frame types that tell a position."""
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
"""The types that lack each field."""


def rule_directions(scenario: Scenario, fault: Fault) -> list[Direction]:
    """The directions that a rule names, as (sending host, receiving host), in their order."""
    found = [each for name in fault.where.links for each in _named(scenario, name)]
    return list(dict.fromkeys(found))


def _named(scenario: Scenario, name: str) -> list[Direction]:
    """The directions that one name stands for; one that there is not stands for itself."""
    known = list(_all_directions(scenario))
    if name == "both":
        return known
    sender, _, receiver = name.partition("->")
    if ANY_HOST not in (sender, receiver):
        return [(sender, receiver)]
    matches = [
        each for each in known if sender in (ANY_HOST, each[0]) and receiver in (ANY_HOST, each[1])
    ]
    return matches or [(sender, receiver)]


def _all_directions(scenario: Scenario) -> Iterator[Direction]:
    for link in scenario.network.all_links:
        yield link.between
        yield link.between[1], link.between[0]


def fault_problems(scenario: Scenario) -> list[Problem]:
    """All that is wrong with the rules of a scenario."""
    found: list[Problem] = []
    for index, fault in enumerate(scenario.faults):
        path: Path = ("faults", index)
        unknown = list(_unknown_link(scenario, fault, path))
        found += unknown or _rule(scenario, fault, path)
    return found + list(_shadowed(scenario))


def _unknown_link(scenario: Scenario, fault: Fault, path: Path) -> Iterator[Problem]:
    known = list(_all_directions(scenario))
    for direction in rule_directions(scenario, fault):
        if direction not in known:
            names = ", ".join("->".join(each) for each in known)
            text = f"no link {'->'.join(direction)!r}: expected {names} or both"
            yield Problem((*path, "where", "link"), text)
            return


def _rule(scenario: Scenario, fault: Fault, path: Path) -> Iterator[Problem]:
    what = fault.what
    types = frozenset(what.frame_types)
    if len(set(what.types)) != len(what.types):
        yield Problem((*path, "what", "type"), "a frame type is named twice")
    seen = _seen(scenario, fault)
    absent = [name for name in what.types if name not in ("CONTROL", "ANY") and name not in seen]
    if absent or not types & seen:
        where = ", ".join(fault.where.links)
        text = f"no traffic sends {', '.join(absent or what.types)} over {where}"
        yield Problem((*path, "what", "type"), text)
    stream_ids = [traffic.stream_id for traffic in scenario.traffic]
    for stream_id in what.streams or ():
        if stream_id not in stream_ids:
            yield Problem((*path, "what", "stream"), _unknown_stream(stream_id, stream_ids))
    if what.position is not None:
        yield from _unplaced(types - PLACED, "tells no position", (*path, "what", "position"))
    if what.order is not None:
        yield from _unplaced(
            types & POSITIONAL, "is chosen by position, not by order", (*path, "what", "order")
        )
    if fault.attempt is not None:
        yield from _unplaced(types - POSITIONAL, "is never sent again", (*path, "attempt"))
    if fault.when is not None:
        for key in ("reached", "until"):
            point: Reached | None = getattr(fault.when, key)
            if point is not None and point.stream_id not in stream_ids:
                text = _unknown_stream(point.stream_id, stream_ids)
                yield Problem((*path, "when", key, "stream"), text)
    yield from _act(fault, types, (*path, "act"))


def _act(fault: Fault, types: frozenset[str], path: Path) -> Iterator[Problem]:
    act = fault.act
    path = (*path, act.action)
    is_table = getattr(act, act.action) is not act.amount
    yield from chance_problems(act.amount, (*path, "share") if is_table else path)
    if act.action in ("swap", "displace"):
        text = f"has no position, so no neighbour to {act.action} with: use hold"
        yield from _unplaced(types - POSITIONAL, text, path)
    for held in (act.hold, act.duplicate):
        if held is not None and held.until is not None:
            text = "has no position to wait for: use `for`"
            yield from _unplaced(types - POSITIONAL, text, (*path, "until"))
    if act.corrupt is not None:
        lacking = types & FIELDLESS[act.corrupt.field]
        yield from _unplaced(lacking, f"has no {act.corrupt.field}", (*path, "field"))
    if act.inject is not None:
        for index, forged in enumerate(act.inject.frames):
            place = forged.place
            moved = place.advance is not None or place.term_end is not None
            if moved and not types <= PLACED:
                text = f"{', '.join(sorted(types - PLACED))} tells no position to count from"
                yield Problem((*path, "frames", index, "place"), text)


def _unplaced(names: frozenset[str], text: str, path: Path) -> Iterator[Problem]:
    if names:
        yield Problem(path, f"{', '.join(sorted(names))} {text}")


def _seen(scenario: Scenario, fault: Fault) -> set[str]:
    """The frame types that the scenario's traffic can send where a rule looks."""
    types: set[str] = set()
    for sender, receiver in rule_directions(scenario, fault):
        for traffic in scenario.traffic:
            if sender in traffic.from_hosts and receiver in traffic.to_hosts:
                types |= FROM_PUBLISHER
            if sender in traffic.to_hosts and receiver in traffic.from_hosts:
                types |= FROM_SUBSCRIBER
    return types


def _shadowed(scenario: Scenario) -> Iterator[Problem]:
    """Rules that can never fire since an earlier one takes all that they match."""
    for later_index, later in enumerate(scenario.faults):
        matched = _matched(scenario, later)
        for earlier in scenario.faults[:later_index]:
            takes_all = earlier.act.share_ppb == BILLION and _looks_at_all(earlier)
            if takes_all and matched <= _matched(scenario, earlier):
                text = f"can never fire: rule {earlier.id!r} takes all these frames before"
                yield Problem(("faults", later_index), text)
                break


def _looks_at_all(fault: Fault) -> bool:
    """Whether a rule chooses by nothing but type and link."""
    chosen = fault.what.model_fields_set - {"types"}
    return not chosen and fault.when is None and fault.attempt is None


def _matched(scenario: Scenario, fault: Fault) -> set[tuple[Direction, str]]:
    directions = rule_directions(scenario, fault)
    return {(direction, name) for direction in directions for name in fault.what.frame_types}


def _unknown_stream(stream_id: int, stream_ids: list[int]) -> str:
    return f"no stream {stream_id}: the streams are {', '.join(map(str, sorted(stream_ids)))}"
