"""Frames that the middlebox holds: a bounded pool of slots, and a heap ordered by due time.

    heap   | slot 3 | slot 0 | slot 7 | ...      smallest (due_ns, order) first
    free   | slot 1 | slot 2 | ...               a stack
    bytes  slot 0 [envelope | frame] ...

A slot records its index in the heap. A frame whose event occurs before it is due can therefore be
removed from the heap.
"""

from typing import Any, NamedTuple

import numpy as np

from windtunnel.driver.kernels.jit import kernel

HELD_FRAME = np.dtype(
    [
        ("due_ns", "<i8"),
        ("order", "<i8"),  # order of arrival, to break ties
        ("link", "<i8"),
        ("index", "<i8"),  # class index of the frame
        ("session", "<i8"),  # index of the session whose event it waits for, or -1
        ("next", "<i8"),  # next slot in that session's list, or -1
        ("envelope_length", "<i8"),
        ("frame_length", "<i8"),
        ("ending", "<i8"),  # the event, one of `rules`
        ("value", "<i8"),  # number of frames left to pass, or the position to be reached
        ("is_released", "<i8"),  # the event has occurred
        ("place", "<i8"),  # index in the heap
    ]
)

HEAP = 0
FREE = 1
ORDER = 2
NONE = -1
NEVER = (1 << 63) - 1


class HeldFrames(NamedTuple):
    """The pool of held frames. `counts` contains the heap length, the number of free slots, and the
    sequence number of the next held frame.
    """

    records: Any
    heap: Any
    free: Any
    buf: Any
    counts: Any


def make_held_frames(slots: int, slot_length: int) -> HeldFrames:
    """Create an empty pool. Each slot holds `slot_length` bytes of packet headers and frames."""
    return HeldFrames(
        records=np.zeros(slots, dtype=HELD_FRAME),
        heap=np.zeros(slots, dtype=np.int64),
        free=np.arange(slots - 1, -1, -1, dtype=np.int64),
        buf=np.zeros((slots, slot_length), dtype=np.uint8),
        counts=np.array([0, slots, 0], dtype=np.int64),
    )


@kernel
def allocate(held: HeldFrames, due_ns: int) -> int:
    """Allocate a slot with a due time, or return NONE if the pool is exhausted."""
    if held.counts[FREE] == 0:
        return NONE
    held.counts[FREE] -= 1
    slot = int(held.free[held.counts[FREE]])
    record = held.records[slot]
    record["due_ns"] = due_ns
    record["order"] = held.counts[ORDER]
    record["session"] = NONE
    record["next"] = NONE
    record["is_released"] = 0
    held.counts[ORDER] += 1
    _push(held, slot)
    return slot


@kernel
def next_due_ns(held: HeldFrames) -> int:
    """Return the time at which the next held frame is due, or NEVER if no frame is held."""
    if held.counts[HEAP] == 0:
        return NEVER
    return int(held.records[held.heap[0]]["due_ns"])


@kernel
def pop(held: HeldFrames) -> int:
    """Remove from the heap the slot with the earliest due time. The caller must return it to the
    pool.
    """
    first = int(held.heap[0])
    remove(held, first)
    return first


@kernel
def remove(held: HeldFrames, slot: int) -> None:
    """Remove a slot from the heap. The caller must return it to the pool."""
    held.counts[HEAP] -= 1
    last = int(held.heap[held.counts[HEAP]])
    if last == slot:
        return
    at = int(held.records[slot]["place"])
    _put(held, at, last)
    _rise(held, at)
    _sink(held, int(held.records[last]["place"]))


@kernel
def free_slot(held: HeldFrames, slot: int) -> None:
    """Return a slot to the pool after its removal from the heap."""
    held.free[held.counts[FREE]] = slot
    held.counts[FREE] += 1


@kernel
def _push(held: HeldFrames, slot: int) -> None:
    at = int(held.counts[HEAP])
    held.counts[HEAP] += 1
    _put(held, at, slot)
    _rise(held, at)


@kernel
def _put(held: HeldFrames, at: int, slot: int) -> None:
    held.heap[at] = slot
    held.records[slot]["place"] = at


@kernel
def _rise(held: HeldFrames, at: int) -> None:
    """Move an entry up the heap until its parent is not due later than the entry."""
    slot = int(held.heap[at])
    while at > 0:
        parent = (at - 1) // 2
        above = int(held.heap[parent])
        if not _before(held.records, slot, above):
            break
        _put(held, at, above)
        at = parent
    _put(held, at, slot)


@kernel
def _sink(held: HeldFrames, at: int) -> None:
    """Move an entry down the heap until its children are not due earlier than the entry."""
    heap, count = held.heap, held.counts[HEAP]
    slot = int(heap[at])
    while 2 * at + 1 < count:
        child = 2 * at + 1
        if child + 1 < count and _before(held.records, heap[child + 1], heap[child]):
            child += 1
        below = int(heap[child])
        if not _before(held.records, below, slot):
            break
        _put(held, at, below)
        at = child
    _put(held, at, slot)


@kernel
def _before(records: Any, left: int, right: int) -> bool:
    if records[left]["due_ns"] != records[right]["due_ns"]:
        return bool(records[left]["due_ns"] < records[right]["due_ns"])
    return bool(records[left]["order"] < records[right]["order"])
