"""Evaluates a fault rule's conditions for a frame: link, kind, position, transmission and time.

    links, classes, streams, session, flags       the kind of frame
    place, order, attempt                         the individual frame
    active from `reached` or the first DATA ...   the time

All conditions except time depend on the frame alone, so they have the same result in every run.
"""

from typing import Any, NamedTuple

from windtunnel.driver.kernels.jit import kernel
from windtunnel.harness.artifact.middlebox import frame_class
from windtunnel.harness.artifact.middlebox.decision import NO_POSITION
from windtunnel.harness.middlebox.engine.state import FIRST_DATA_NS, Engine
from windtunnel.harness.middlebox.rules import (
    ANYWHERE,
    CLASSES,
    NOWHERE,
    RANGE,
    RANGES,
    STREAM_END,
    TERM_END,
    TERM_START,
)
from windtunnel.harness.scenario.resolved.fault_case import CountCase

_DATA, _PAD = CLASSES.index(frame_class.DATA), CLASSES.index(frame_class.PAD)
_COUNT_LAST = CountCase().last
"""The last attempt of a rule that does not limit its attempts."""


class FrameProperties(NamedTuple):
    """The properties of a frame that a rule's conditions can refer to."""

    link: int
    kind: int  # class index
    ordinal: int  # index of its stream
    session: int  # index of its session, or -1
    flags: int
    length: int  # length in its datagram
    place: int  # first byte of the range that it refers to, or NO_POSITION
    extent: int  # length of that range, at least 1
    attempt: int  # number of the transmission, 0 if it has none
    order: int  # order of appearance from 1, 0 if it is keyed by position
    now_ns: int


@kernel
def selects(engine: Engine, rule: int, properties: FrameProperties) -> bool:
    """Return whether a frame meets all conditions of a rule."""
    record = engine.rules[rule]
    if record["links"] >> properties.link & record["classes"] >> properties.kind & 1 == 0:
        return False
    if (
        engine.selected_streams[rule, properties.ordinal] == 0
        or properties.length <= record["longer_than"]
    ):
        return False
    if properties.flags & record["flags_mask"] != record["flags_value"]:
        return False
    if record["session"] != 0 and not _is_session(engine, properties.session, record["session"]):
        return False
    if not _is_attempt(record, properties):
        return False
    if properties.order != 0 and not _is_counted(
        properties.order, record["order_first"], record["order_last"], record["order_every"]
    ):
        return False
    if record["place"] != ANYWHERE and not _is_in_place(engine, record, properties):
        return False
    return record["is_timed"] == 0 or _is_active(engine, rule, properties.now_ns)


@kernel
def _is_session(engine: Engine, session: int, number: int) -> bool:
    return session >= 0 and bool(engine.sessions[session]["number"] == number)


@kernel
def _is_attempt(record: Any, properties: FrameProperties) -> bool:
    """Return whether a rule applies to this transmission of a frame, such as the first or the
    second.
    """
    first, every = record["attempt_first"], record["attempt_every"]
    if properties.attempt != 0:
        return _is_counted(properties.attempt, first, record["attempt_last"], every)
    if properties.kind not in (_DATA, _PAD):
        return True
    # The attempt of a frame in an unknown session cannot be determined.
    return bool(first == 1 and every == 1 and record["attempt_last"] == _COUNT_LAST)


@kernel
def _is_counted(count: int, first: int, last: int, every: int) -> bool:
    return first <= count <= last and (count - first) % every == 0


@kernel
def _is_in_place(engine: Engine, record: Any, properties: FrameProperties) -> bool:
    if properties.place == NO_POSITION or properties.session < 0:
        return False
    end = properties.place + properties.extent
    kind = record["place"]
    if kind == RANGE:
        return _overlaps(record, properties.place, end)
    if kind == RANGES:
        return _overlaps_one(
            engine.ranges, record["first_range"], record["ranges"], properties.place, end
        )
    if kind == STREAM_END:
        return bool(end == engine.stream_ends[properties.ordinal])
    term_length = engine.sessions[properties.session]["term_length"]
    if kind == TERM_START:
        return bool(properties.place % term_length == 0)
    assert kind == TERM_END
    return bool(end % term_length == 0)


@kernel
def _overlaps(record: Any, begin: int, end: int) -> bool:
    """Return whether the positions from `begin` to `end` overlap the rule's range or one of its
    repetitions.
    """
    start = record["place_start"]
    length = record["place_length"]
    every = record["place_every"]
    if every == 0:
        return bool(begin < start + length and end > start)
    if end <= start:
        return False
    # Only the first repetition that ends after `begin` matters: it overlaps if it starts before
    # `end`.
    turn = max(0, (begin - start - length) // every + 1)
    return bool(start + turn * every < end)


@kernel
def _overlaps_one(ranges: Any, first: int, count: int, begin: int, end: int) -> bool:
    """Return whether the positions from `begin` to `end` overlap any range in a sorted list.

    Shapes: ranges int64[n, 2]: begin and end
    """
    low, high = first, first + count
    while low < high:
        middle = (low + high) // 2
        if ranges[middle, 1] <= begin:
            low = middle + 1
        else:
            high = middle
    return bool(low < first + count and ranges[low, 0] < end)


@kernel
def _is_active(engine: Engine, rule: int, now_ns: int) -> bool:
    record = engine.rules[rule]
    since_ns = engine.state[FIRST_DATA_NS]
    if record["reached_ordinal"] != NOWHERE:
        since_ns = engine.active_since_ns[rule]
    until = record["until_ordinal"]
    if until != NOWHERE and engine.reached[until] >= record["until_position"]:
        return False
    if since_ns == 0:
        return False
    passed_ns = now_ns - since_ns - record["after_ns"]
    if passed_ns < 0:
        return False
    if record["every_ns"] != 0:
        passed_ns %= record["every_ns"]
    return record["for_ns"] == 0 or bool(passed_ns < record["for_ns"])
