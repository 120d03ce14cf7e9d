"""The relay's own weather: what befalls every packet of a direction behind the fault rules.

    sealed packet --> lost? twice? --> damaged? --> delay, line --> waiting room --> due: sent
                         |                              |
                       chain of states            rate, queue, overtaking

Does what the kernel's netem does, in the same order, so that one can stand in for the other: the
loss model moves once a packet, a copy is not copied again, a rate puts packets in line behind the
last one, and what overtakes leaves at once. Packets are drawn for in their order of arrival, keyed
by the run's seed. Pure: time is an argument. Refuses to know what a packet holds, but for the
account of its frames.
"""

from typing import Any, NamedTuple

import numpy as np

from windtunnel.driver.kernels.jit import allocating_kernel
from windtunnel.harness.artifact.middlebox import frame_class
from windtunnel.harness.dissect.frames.frames import FRAME, FRAME_ALIGNMENT, walk
from windtunnel.harness.middlebox.engine import held_frames as wait
from windtunnel.harness.middlebox.engine.held_frames import Waiting, make_waiting
from windtunnel.harness.middlebox.engine.outbox import copy_bytes
from windtunnel.harness.middlebox.engine.prf import philox
from windtunnel.harness.middlebox.impairment.impairment_settings import (
    BAD_LOSS,
    BAD_TO_GOOD,
    CORRUPT,
    DELAY_NS,
    DUPLICATE,
    FOUR_STATES,
    GAP,
    GOOD_LOSS,
    GOOD_TO_BAD,
    MODEL,
    ON,
    ONE_STATE,
    P13,
    P14,
    P23,
    P31,
    P32,
    QUEUE,
    RATE,
    REORDER,
    TWO_STATES,
    behind_netem,
    jitters,
    settings,
)
from windtunnel.harness.netem.render import limit
from windtunnel.harness.scenario.resolved.case import Case
from windtunnel.harness.scenario.schema.jitter import JITTERS

CLASSES: tuple[int, ...] = tuple(sorted(frame_class.NAMES))
"""Frame class codes by their place in `frames`."""

# Columns of `counts`, one row a link direction; OTHER_* are packets that are no datagrams of ours.
RECEIVED, LOST, OVERFLOWED, DUPLICATED, CORRUPTED, REORDERED, SENT, NO_ROOM, OTHER_LOST = range(9)
# Columns of `frames`, by link direction and frame class.
FRAMES_LOST, FRAMES_DUPLICATED, FRAMES_CORRUPTED = range(3)
# Columns of `state`, one row a link direction.
ORDINAL, CHAIN, LAST_DUE_NS, SINCE, UNDER_WAY = range(5)

POOL_BYTES_MAX = 256 << 20
POOL_SLOTS_MIN = 4096
LATE_BUCKET_NS = 1_000
LATE_BUCKETS = 20_000
NS_PER_SECOND = 1_000_000_000

_TAG = 0x77 << 24
"""In the counter of a draw: what no fault rule's draw has there."""
_LOW = 0xFFFFFFFF
_GAP_GOOD, _BURST_GOOD, _BURST_BAD, _GAP_BAD = range(4)


class Weather(NamedTuple):
    """Settings, state and accounts of all directions, and the packets that are under way."""

    settings: Any  # int64[link, SETTINGS]
    jitters: Any  # int64[link, JITTERS]: by a draw's leading bits, what to add to the delay
    state: Any  # int64[link, 5]
    counts: Any  # int64[link, 9]
    frames: Any  # int64[link, classes, 3]
    lates: Any  # int64[link, buckets]
    codes: Any  # int64: frame class codes
    rows: Any  # FRAME, scratch
    waiting: Waiting
    seed: Any  # int64[1]
    netem: Any  # int64[port]: 1 where a refused packet is one that netem's queue took


def make_weather(case: Case, packet_length_max: int) -> Weather:
    """The weather of a case, not yet begun; without any, no memory is taken for it."""
    ours = [each for each in case.weather if case.backend_of(each.link) == "relay"]
    names = case.link_names
    links = len(names)
    slots = 1
    if ours:
        most = POOL_BYTES_MAX // packet_length_max
        slots = max(POOL_SLOTS_MIN, min(most, sum(limit(each) for each in ours)))
    return Weather(
        settings=settings(ours, names),
        jitters=jitters(ours, names),
        state=np.zeros((links, 5), dtype=np.int64),
        counts=np.zeros((links, 9), dtype=np.int64),
        frames=np.zeros((links, len(CLASSES), 3), dtype=np.int64),
        lates=np.zeros((links, LATE_BUCKETS), dtype=np.int64),
        codes=np.array(CLASSES, dtype=np.int64),
        rows=np.zeros(1 + packet_length_max // FRAME_ALIGNMENT, dtype=FRAME),
        waiting=make_waiting(slots, packet_length_max if ours else 1),
        seed=np.array([case.seed], dtype=np.int64),
        netem=behind_netem(case),
    )


@allocating_kernel
def is_on(weather: Weather, link: int) -> bool:
    """Whether a direction has weather made by the relay."""
    return bool(weather.settings[link, ON])


@allocating_kernel
def take(
    weather: Weather, link: int, buf: Any, at: int, envelope_length: int, length: int, now_ns: int
) -> None:
    """Let the weather befall one sealed packet; what is left of it is under way from now on.

    Shapes: buf uint8[n]: envelope and payload from `at`; `length` is 0 for a packet of others
    Units:  now_ns is the time of arrival, from which a delay counts
    """
    state = weather.state[link]
    counts = weather.counts[link]
    rules = weather.settings[link]
    ordinal = state[ORDINAL]
    state[ORDINAL] += 1
    fate, move, twice, _ = _draw(weather, link, ordinal, 0)
    is_lost = _loses(rules, state, fate, move)
    is_double = twice < rules[DUPLICATE]
    is_ours = length > 0
    if is_ours:
        counts[RECEIVED] += 1
    if is_lost and not is_double:
        _lose(weather, link, LOST, buf, at + envelope_length, length)
        return
    if is_double and not is_lost:
        # The copy goes through the weather by itself, but is not copied again.
        fate, move, _, _ = _draw(weather, link, ordinal, 1)
        if is_ours:
            counts[DUPLICATED] += 1
            _account(weather, link, FRAMES_DUPLICATED, buf, at + envelope_length, length)
        if _loses(rules, state, fate, move):
            _lose(weather, link, LOST, buf, at + envelope_length, length)
        else:
            _enqueue(weather, link, buf, at, envelope_length, length, now_ns, ordinal, 1)
    _enqueue(weather, link, buf, at, envelope_length, length, now_ns, ordinal, 0)


@allocating_kernel
def next_slot(weather: Weather, link: int, now_ns: int) -> int:
    """Take the next packet of a direction that is due from the waiting room, or NONE.

    The packet is `waiting.buf[slot]`, its length `frame_length`; the caller gives the slot back.
    """
    waiting = weather.waiting
    if wait.next_due_ns(waiting) > now_ns:
        return wait.NONE
    if waiting.waiters[waiting.heap[0]]["link"] != link:
        return wait.NONE
    slot = wait.pop(waiting)
    weather.state[link, UNDER_WAY] -= 1
    due_ns = waiting.waiters[slot]["due_ns"]
    late_ns = min(max(now_ns - due_ns, 0), LATE_BUCKETS * LATE_BUCKET_NS - 1)
    if weather.settings[link, DELAY_NS] and due_ns:
        weather.lates[link, late_ns // LATE_BUCKET_NS] += 1
    return slot


@allocating_kernel
def _loses(rules: Any, state: Any, fate: int, move: int) -> bool:
    """Whether the loss model takes a packet; its state moves by one."""
    model = rules[MODEL]
    chain = state[CHAIN]
    if model == ONE_STATE:
        return bool(fate < rules[GOOD_LOSS])
    if model == TWO_STATES:
        if chain == 0:
            state[CHAIN] = 1 if move < rules[GOOD_TO_BAD] else 0
            return bool(fate < rules[GOOD_LOSS])
        state[CHAIN] = 0 if move < rules[BAD_TO_GOOD] else 1
        return bool(fate < rules[BAD_LOSS])
    if model != FOUR_STATES:
        return False
    if chain == _GAP_GOOD:
        if move < rules[P14]:
            chain = _GAP_BAD
        elif move < rules[P14] + rules[P13]:
            chain = _BURST_BAD
    elif chain == _BURST_GOOD:
        if move < rules[P23]:
            chain = _BURST_BAD
    elif chain == _BURST_BAD:
        if move < rules[P32]:
            chain = _BURST_GOOD
        elif move < rules[P32] + rules[P31]:
            chain = _GAP_GOOD
    else:
        chain = _GAP_GOOD
    state[CHAIN] = chain
    return chain in (_BURST_BAD, _GAP_BAD)


@allocating_kernel
def _lose(weather: Weather, link: int, why: int, buf: Any, at: int, length: int) -> None:
    if length == 0:
        weather.counts[link, OTHER_LOST] += 1
        return
    weather.counts[link, why] += 1
    _account(weather, link, FRAMES_LOST, buf, at, length)


@allocating_kernel
def _account(weather: Weather, link: int, column: int, buf: Any, at: int, length: int) -> None:
    """Count the frames of a datagram as the judge will count those of a capture."""
    count = min(walk(buf, at, length, weather.rows, 0), len(weather.rows))
    for row in range(count):
        code = weather.rows[row]["frame_type"]
        for place in range(len(weather.codes)):
            if weather.codes[place] == code:
                weather.frames[link, place, column] += 1


@allocating_kernel
def _enqueue(
    weather: Weather,
    link: int,
    buf: Any,
    at: int,
    envelope_length: int,
    length: int,
    now_ns: int,
    ordinal: int,
    copy: int,
) -> None:
    """Put one packet on its way."""
    state = weather.state[link]
    counts = weather.counts[link]
    rules = weather.settings[link]
    is_ours = length > 0
    if rules[QUEUE] and state[UNDER_WAY] >= rules[QUEUE]:
        _lose(weather, link, OVERFLOWED, buf, at + envelope_length, length)
        return
    damage, place, late, order = _draw(weather, link, ordinal, 2 + copy)
    total = envelope_length + length
    due_ns = _due_ns(weather, link, total, now_ns, late, order)
    slot = wait.NONE
    if total <= weather.waiting.buf.shape[1]:
        slot = wait.take(weather.waiting, due_ns)
    if slot == wait.NONE:
        counts[NO_ROOM] += 1
        _lose(weather, link, OVERFLOWED, buf, at + envelope_length, length)
        return
    state[UNDER_WAY] += 1
    waiter = weather.waiting.waiters[slot]
    waiter["link"] = link
    waiter["envelope_length"] = envelope_length
    waiter["frame_length"] = total
    kept = weather.waiting.buf[slot]
    copy_bytes(kept, 0, buf, at, total)
    if not is_ours:
        return
    counts[SENT] += 1
    if damage < rules[CORRUPT]:
        counts[CORRUPTED] += 1
        _account(weather, link, FRAMES_CORRUPTED, buf, at + envelope_length, length)
        bit = place % (8 * length)
        kept[envelope_length + bit // 8] ^= 1 << bit % 8


@allocating_kernel
def _due_ns(weather: Weather, link: int, total: int, now_ns: int, late: int, order: int) -> int:
    """When a packet leaves; 0 for one that overtakes all."""
    state = weather.state[link]
    rules = weather.settings[link]
    if rules[GAP]:
        if state[SINCE] >= rules[GAP] - 1 and order < rules[REORDER]:
            state[SINCE] = 0
            weather.counts[link, REORDERED] += 1
            return 0
        state[SINCE] += 1
    jitter_ns = weather.jitters[link, late * JITTERS >> 32]
    due_ns = now_ns + max(0, rules[DELAY_NS] + jitter_ns)
    if rules[RATE]:
        behind_ns = max(due_ns, state[LAST_DUE_NS])
        due_ns = behind_ns + total * 8 * NS_PER_SECOND // rules[RATE]
        state[LAST_DUE_NS] = due_ns
    elif jitter_ns == 0:
        due_ns = max(due_ns, state[LAST_DUE_NS])
        state[LAST_DUE_NS] = due_ns
    return int(due_ns)


@allocating_kernel
def _draw(weather: Weather, link: int, ordinal: int, purpose: int) -> tuple[int, int, int, int]:
    """Four numbers of 32 bits for one packet and one purpose."""
    seed = weather.seed[0]
    return philox(
        ordinal & _LOW,
        (ordinal >> 32) & _LOW,
        purpose,
        _TAG | link,
        seed & _LOW,
        (seed >> 32) & _LOW,
    )
