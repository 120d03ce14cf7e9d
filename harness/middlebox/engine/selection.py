"""Whether a rule looks at a frame: where, what, which transmission, and when.

    links, classes, streams, session, flags       what the frame is
    place, order, attempt                         which one of them
    awake from `reached` or the first DATA ...    when

Everything but the last is a property of the frame, so it is the same in every run.
"""

from typing import Any, NamedTuple

from windtunnel.driver.kernels.jit import allocating_kernel
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
"""Where a rule that names no last passage ends."""


class Met(NamedTuple):
    """What a rule may ask of a frame."""

    link: int
    kind: int  # class index
    ordinal: int  # of its stream
    session: int  # index, or -1
    flags: int
    length: int  # in its datagram
    place: int  # first byte of what it is about, or NO_POSITION
    extent: int  # bytes that it is about, at least 1
    attempt: int  # 0 if it has none
    order: int  # counted from 1, 0 if it is chosen by position
    now_ns: int


@allocating_kernel
def looks_at(engine: Engine, rule: int, met: Met) -> bool:
    """Whether a rule has to decide about a frame."""
    record = engine.rules[rule]
    if record["links"] >> met.link & record["classes"] >> met.kind & 1 == 0:
        return False
    if engine.chosen_streams[rule, met.ordinal] == 0 or met.length <= record["longer_than"]:
        return False
    if met.flags & record["flags_mask"] != record["flags_value"]:
        return False
    if record["session"] != 0 and not _is_session(engine, met.session, record["session"]):
        return False
    if not _is_attempt(record, met):
        return False
    if met.order != 0 and not _is_counted(
        met.order, record["order_first"], record["order_last"], record["order_every"]
    ):
        return False
    if record["place"] != ANYWHERE and not _is_in_place(engine, record, met):
        return False
    return record["is_timed"] == 0 or _is_awake(engine, rule, met.now_ns)


@allocating_kernel
def _is_session(engine: Engine, session: int, number: int) -> bool:
    return session >= 0 and bool(engine.sessions[session]["number"] == number)


@allocating_kernel
def _is_attempt(record: Any, met: Met) -> bool:
    """Whether it is one of the passages of its position that a rule looks at."""
    first, every = record["attempt_first"], record["attempt_every"]
    if met.attempt != 0:
        return _is_counted(met.attempt, first, record["attempt_last"], every)
    if met.kind not in (_DATA, _PAD):
        return True
    # Of a session that is not known yet: no one can tell which passage this is.
    return bool(first == 1 and every == 1 and record["attempt_last"] == _COUNT_LAST)


@allocating_kernel
def _is_counted(count: int, first: int, last: int, every: int) -> bool:
    return first <= count <= last and (count - first) % every == 0


@allocating_kernel
def _is_in_place(engine: Engine, record: Any, met: Met) -> bool:
    if met.place == NO_POSITION or met.session < 0:
        return False
    end = met.place + met.extent
    kind = record["place"]
    if kind == RANGE:
        return _overlaps(record, met.place, end)
    if kind == RANGES:
        return _overlaps_one(engine.ranges, record["first_range"], record["ranges"], met.place, end)
    if kind == STREAM_END:
        return bool(end == engine.stream_ends[met.ordinal])
    term_length = engine.sessions[met.session]["term_length"]
    if kind == TERM_START:
        return bool(met.place % term_length == 0)
    assert kind == TERM_END
    return bool(end % term_length == 0)


@allocating_kernel
def _overlaps(record: Any, begin: int, end: int) -> bool:
    """Whether a range, or one of its repetitions, has a byte from `begin` up to `end`."""
    start = record["place_start"]
    length = record["place_length"]
    every = record["place_every"]
    if every == 0:
        return bool(begin < start + length and end > start)
    if end <= start:
        return False
    # The first repetition that ends behind `begin`: it overlaps if it starts before `end`.
    turn = max(0, (begin - start - length) // every + 1)
    return bool(start + turn * every < end)


@allocating_kernel
def _overlaps_one(ranges: Any, first: int, count: int, begin: int, end: int) -> bool:
    """Whether one of a list of ranges in order has a byte from `begin` up to `end`.

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


@allocating_kernel
def _is_awake(engine: Engine, rule: int, now_ns: int) -> bool:
    record = engine.rules[rule]
    since_ns = engine.state[FIRST_DATA_NS]
    if record["reached_ordinal"] != NOWHERE:
        since_ns = engine.awake_since_ns[rule]
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
