"""The relay's impairments, applied to every packet of a direction after the fault rules.

    sealed packet --> lost? duplicated? --> corrupted? --> delay, queue --> held --> due: sent
                         |                                    |
                       loss model                       rate, limit, reordering

This models the kernel's netem, with the same steps in the same order, so either can replace the
other. The loss model steps once per packet, a copy is not copied again, a rate limit queues packets
behind the last one, and a reordered packet leaves at once. Random draws follow the packets' order
of arrival and are keyed by the run's seed. Time is an argument. Packet contents are used only to
count frames.
"""

from typing import Any, NamedTuple

import numpy as np

from windtunnel.driver.kernels.jit import kernel
from windtunnel.harness.artifact.middlebox import frame_class
from windtunnel.harness.dissect.frames.frames import FRAME, FRAME_ALIGNMENT, walk
from windtunnel.harness.middlebox.engine import held_frames
from windtunnel.harness.middlebox.engine.held_frames import HeldFrames, make_held_frames
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
"""Frame class codes, in the order of the indexes in `frames`."""

# Columns of `counts`, one row per link direction; OTHER_* count packets other than Aeron's.
RECEIVED, LOST, OVERFLOWED, DUPLICATED, CORRUPTED, REORDERED, SENT, NO_ROOM, OTHER_LOST = range(9)
# Columns of `frames`, by link direction and frame class.
FRAMES_LOST, FRAMES_DUPLICATED, FRAMES_CORRUPTED = range(3)
# Columns of `state`, one row per link direction.
ORDINAL, CHAIN, LAST_DUE_NS, SINCE, IN_FLIGHT = range(5)

POOL_BYTES_MAX = 256 << 20
POOL_SLOTS_MIN = 4096
LATE_BUCKET_NS = 1_000
LATE_BUCKETS = 20_000
NS_PER_SECOND = 1_000_000_000

_TAG = 0x77 << 24
"""A counter value that separates these draws from those of the fault rules."""
_LOW = 0xFFFFFFFF
_GAP_GOOD, _BURST_GOOD, _BURST_BAD, _GAP_BAD = range(4)


class Impairments(NamedTuple):
    """The impairment settings, state and packet counts of all link directions, and the packets in
    flight.
    """

    settings: Any  # int64[link, SETTINGS]
    jitters: Any  # int64[link, JITTERS]: by a draw's leading bits, the amount to add to the delay
    state: Any  # int64[link, 5]
    counts: Any  # int64[link, 9]
    frames: Any  # int64[link, classes, 3]
    lates: Any  # int64[link, buckets]
    codes: Any  # int64: frame class codes
    rows: Any  # FRAME, scratch
    held: HeldFrames
    seed: Any  # int64[1]
    netem: Any  # int64[port]: 1 if a refused packet was one that netem's queue accepted


def make_impairments(case: Case, packet_length_max: int) -> Impairments:
    """Create the state of the relay's impairments. Memory for delayed packets is allocated only if
    a link has impairments, and all of it if they may change, since the delays are not known in
    advance. The system provides it when it is first used.
    """
    ours = [each for each in case.impairments if case.backend_of(each.link) == "relay"]
    names = case.link_names
    links = len(names)
    slots = 1
    if ours:
        most = POOL_BYTES_MAX // packet_length_max
        needed = most if case.changes_links else sum(limit(each) for each in ours)
        slots = max(POOL_SLOTS_MIN, min(most, needed))
    return Impairments(
        settings=settings(ours, names),
        jitters=jitters(ours, names),
        state=np.zeros((links, 5), dtype=np.int64),
        counts=np.zeros((links, 9), dtype=np.int64),
        frames=np.zeros((links, len(CLASSES), 3), dtype=np.int64),
        lates=np.zeros((links, LATE_BUCKETS), dtype=np.int64),
        codes=np.array(CLASSES, dtype=np.int64),
        rows=np.zeros(1 + packet_length_max // FRAME_ALIGNMENT, dtype=FRAME),
        held=make_held_frames(slots, packet_length_max if ours else 1),
        seed=np.array([case.seed], dtype=np.int64),
        netem=behind_netem(case),
    )


@kernel
def is_on(impairments: Impairments, link: int) -> bool:
    """Return whether the relay applies impairments to a link direction."""
    return bool(impairments.settings[link, ON])


@kernel
def apply(
    impairments: Impairments,
    link: int,
    buf: Any,
    at: int,
    envelope_length: int,
    length: int,
    now_ns: int,
) -> None:
    """Apply the impairments to one packet with complete headers. Afterwards, the packet is either
    dropped or in flight.

    Shapes: buf uint8[n]: envelope and payload from `at`; `length` is 0 if not Aeron's
    Units:  `now_ns` is the time of arrival, from which a delay is measured
    """
    state = impairments.state[link]
    counts = impairments.counts[link]
    rules = impairments.settings[link]
    ordinal = state[ORDINAL]
    state[ORDINAL] += 1
    replayed_index, move, twice, _ = _draw(impairments, link, ordinal, 0)
    is_lost = _is_lost(rules, state, replayed_index, move)
    is_double = twice < rules[DUPLICATE]
    is_ours = length > 0
    if is_ours:
        counts[RECEIVED] += 1
    if is_lost and not is_double:
        _drop(impairments, link, LOST, buf, at + envelope_length, length)
        return
    if is_double and not is_lost:
        # The copy is impaired independently, but is not copied again.
        replayed_index, move, _, _ = _draw(impairments, link, ordinal, 1)
        if is_ours:
            counts[DUPLICATED] += 1
            _count_frames(impairments, link, FRAMES_DUPLICATED, buf, at + envelope_length, length)
        if _is_lost(rules, state, replayed_index, move):
            _drop(impairments, link, LOST, buf, at + envelope_length, length)
        else:
            _enqueue(impairments, link, buf, at, envelope_length, length, now_ns, ordinal, 1)
    _enqueue(impairments, link, buf, at, envelope_length, length, now_ns, ordinal, 0)


@kernel
def next_slot(impairments: Impairments, link: int, now_ns: int) -> int:
    """Remove the first packet in flight if it is due and belongs to this link direction. Returns
    the packet's buffer slot, or NONE.

    The packet is in `held.buf[slot]` and has the length `frame_length`. The caller must return the
    slot to the pool.
    """
    held = impairments.held
    if held_frames.next_due_ns(held) > now_ns:
        return held_frames.NONE
    if held.records[held.heap[0]]["link"] != link:
        return held_frames.NONE
    slot = held_frames.pop(held)
    impairments.state[link, IN_FLIGHT] -= 1
    due_ns = held.records[slot]["due_ns"]
    late_ns = min(max(now_ns - due_ns, 0), LATE_BUCKETS * LATE_BUCKET_NS - 1)
    if impairments.settings[link, DELAY_NS] and due_ns:
        impairments.lates[link, late_ns // LATE_BUCKET_NS] += 1
    return slot


@kernel
def _is_lost(rules: Any, state: Any, replayed_index: int, move: int) -> bool:
    """Advance the loss model of a link direction by one packet. Returns whether the packet is
    lost.
    """
    model = rules[MODEL]
    chain = state[CHAIN]
    if model == ONE_STATE:
        return bool(replayed_index < rules[GOOD_LOSS])
    if model == TWO_STATES:
        if chain == 0:
            state[CHAIN] = 1 if move < rules[GOOD_TO_BAD] else 0
            return bool(replayed_index < rules[GOOD_LOSS])
        state[CHAIN] = 0 if move < rules[BAD_TO_GOOD] else 1
        return bool(replayed_index < rules[BAD_LOSS])
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


@kernel
def _drop(impairments: Impairments, link: int, why: int, buf: Any, at: int, length: int) -> None:
    if length == 0:
        impairments.counts[link, OTHER_LOST] += 1
        return
    impairments.counts[link, why] += 1
    _count_frames(impairments, link, FRAMES_LOST, buf, at, length)


@kernel
def _count_frames(
    impairments: Impairments, link: int, column: int, buf: Any, at: int, length: int
) -> None:
    """Count a datagram's frames in the same way as the judge counts the frames in a capture."""
    count = min(walk(buf, at, length, impairments.rows, 0), len(impairments.rows))
    for row in range(count):
        code = impairments.rows[row]["frame_type"]
        for place in range(len(impairments.codes)):
            if impairments.codes[place] == code:
                impairments.frames[link, place, column] += 1


@kernel
def _enqueue(
    impairments: Impairments,
    link: int,
    buf: Any,
    at: int,
    envelope_length: int,
    length: int,
    now_ns: int,
    ordinal: int,
    copy: int,
) -> None:
    """Queue one packet, or drop it if the queue is full."""
    state = impairments.state[link]
    counts = impairments.counts[link]
    rules = impairments.settings[link]
    is_ours = length > 0
    if rules[QUEUE] and state[IN_FLIGHT] >= rules[QUEUE]:
        _drop(impairments, link, OVERFLOWED, buf, at + envelope_length, length)
        return
    damage, place, late, order = _draw(impairments, link, ordinal, 2 + copy)
    total = envelope_length + length
    due_ns = _due_ns(impairments, link, total, now_ns, late, order)
    slot = held_frames.NONE
    if total <= impairments.held.buf.shape[1]:
        slot = held_frames.allocate(impairments.held, due_ns)
    if slot == held_frames.NONE:
        counts[NO_ROOM] += 1
        _drop(impairments, link, OVERFLOWED, buf, at + envelope_length, length)
        return
    state[IN_FLIGHT] += 1
    record = impairments.held.records[slot]
    record["link"] = link
    record["envelope_length"] = envelope_length
    record["frame_length"] = total
    kept = impairments.held.buf[slot]
    copy_bytes(kept, 0, buf, at, total)
    if not is_ours:
        return
    counts[SENT] += 1
    if damage < rules[CORRUPT]:
        counts[CORRUPTED] += 1
        _count_frames(impairments, link, FRAMES_CORRUPTED, buf, at + envelope_length, length)
        bit = place % (8 * length)
        kept[envelope_length + bit // 8] ^= 1 << bit % 8


@kernel
def _due_ns(
    impairments: Impairments, link: int, total: int, now_ns: int, late: int, order: int
) -> int:
    """Return a packet's departure time in nanoseconds, or 0 if it overtakes all other packets."""
    state = impairments.state[link]
    rules = impairments.settings[link]
    if rules[GAP]:
        if state[SINCE] >= rules[GAP] - 1 and order < rules[REORDER]:
            state[SINCE] = 0
            impairments.counts[link, REORDERED] += 1
            return 0
        state[SINCE] += 1
    jitter_ns = impairments.jitters[link, late * JITTERS >> 32]
    due_ns = now_ns + max(0, rules[DELAY_NS] + jitter_ns)
    if rules[RATE]:
        behind_ns = max(due_ns, state[LAST_DUE_NS])
        due_ns = behind_ns + total * 8 * NS_PER_SECOND // rules[RATE]
        state[LAST_DUE_NS] = due_ns
    elif jitter_ns == 0:
        due_ns = max(due_ns, state[LAST_DUE_NS])
        state[LAST_DUE_NS] = due_ns
    return int(due_ns)


@kernel
def _draw(
    impairments: Impairments, link: int, ordinal: int, purpose: int
) -> tuple[int, int, int, int]:
    """Draw the four random 32-bit numbers that decide how impairments affect a packet or its
    duplicate.

    `purpose` is 0 for the packet and 1 for its duplicate.
    """
    seed = impairments.seed[0]
    return philox(
        ordinal & _LOW,
        (ordinal >> 32) & _LOW,
        purpose,
        _TAG | link,
        seed & _LOW,
        (seed >> 32) & _LOW,
    )
