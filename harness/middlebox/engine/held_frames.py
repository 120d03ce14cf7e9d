"""Frames that must not leave yet: a bounded pool of slots and a heap of their due times.

    heap   | slot 3 | slot 0 | slot 7 | ...      smallest (due_ns, order) first
    free   | slot 1 | slot 2 | ...               a stack
    bytes  slot 0 [envelope | frame] ...

A slot knows its place in the heap, so one whose frame leaves before it is due (since the event came
that it waited for) is taken out there, and is free again. Knows no rule and no stream.
"""

from typing import Any, NamedTuple

import numpy as np

from windtunnel.driver.kernels.jit import allocating_kernel

WAITER = np.dtype(
    [
        ("due_ns", "<i8"),
        ("order", "<i8"),  # of arrival, to break ties
        ("link", "<i8"),
        ("index", "<i8"),  # class index of the frame
        ("session", "<i8"),  # on whose list it waits for an event, or -1
        ("next", "<i8"),  # in that list, or -1
        ("envelope_length", "<i8"),
        ("frame_length", "<i8"),
        ("ending", "<i8"),  # the event, one of `rules`
        ("value", "<i8"),  # frames still to pass, or the position that must be reached
        ("is_freed", "<i8"),  # the event has come
        ("place", "<i8"),  # in the heap
    ]
)

HEAP = 0
FREE = 1
ORDER = 2
NONE = -1
NEVER = (1 << 63) - 1


class Waiting(NamedTuple):
    """The pool; `counts` holds the lengths of heap and free stack, and the next order."""

    waiters: Any
    heap: Any
    free: Any
    buf: Any
    counts: Any


def make_waiting(slots: int, slot_length: int) -> Waiting:
    """An empty pool; a slot takes an envelope and frames of `slot_length` bytes together."""
    return Waiting(
        waiters=np.zeros(slots, dtype=WAITER),
        heap=np.zeros(slots, dtype=np.int64),
        free=np.arange(slots - 1, -1, -1, dtype=np.int64),
        buf=np.zeros((slots, slot_length), dtype=np.uint8),
        counts=np.array([0, slots, 0], dtype=np.int64),
    )


@allocating_kernel
def take(waiting: Waiting, due_ns: int) -> int:
    """A slot that is due at a time, or NONE when the pool is exhausted."""
    if waiting.counts[FREE] == 0:
        return NONE
    waiting.counts[FREE] -= 1
    slot = int(waiting.free[waiting.counts[FREE]])
    waiter = waiting.waiters[slot]
    waiter["due_ns"] = due_ns
    waiter["order"] = waiting.counts[ORDER]
    waiter["session"] = NONE
    waiter["next"] = NONE
    waiter["is_freed"] = 0
    waiting.counts[ORDER] += 1
    _push(waiting, slot)
    return slot


@allocating_kernel
def next_due_ns(waiting: Waiting) -> int:
    """When the next slot is due, or NEVER."""
    if waiting.counts[HEAP] == 0:
        return NEVER
    return int(waiting.waiters[waiting.heap[0]]["due_ns"])


@allocating_kernel
def pop(waiting: Waiting) -> int:
    """Take the slot that is due first off the heap; the caller gives it back when it is done."""
    first = int(waiting.heap[0])
    remove(waiting, first)
    return first


@allocating_kernel
def remove(waiting: Waiting, slot: int) -> None:
    """Take any slot off the heap; the caller gives it back when it is done."""
    waiting.counts[HEAP] -= 1
    last = int(waiting.heap[waiting.counts[HEAP]])
    if last == slot:
        return
    at = int(waiting.waiters[slot]["place"])
    _put(waiting, at, last)
    _rise(waiting, at)
    _sink(waiting, int(waiting.waiters[last]["place"]))


@allocating_kernel
def give_back(waiting: Waiting, slot: int) -> None:
    """Return a slot that was taken off the heap to the pool."""
    waiting.free[waiting.counts[FREE]] = slot
    waiting.counts[FREE] += 1


@allocating_kernel
def _push(waiting: Waiting, slot: int) -> None:
    at = int(waiting.counts[HEAP])
    waiting.counts[HEAP] += 1
    _put(waiting, at, slot)
    _rise(waiting, at)


@allocating_kernel
def _put(waiting: Waiting, at: int, slot: int) -> None:
    waiting.heap[at] = slot
    waiting.waiters[slot]["place"] = at


@allocating_kernel
def _rise(waiting: Waiting, at: int) -> None:
    """Exchange what is at a place with those above it until none of them is due later."""
    slot = int(waiting.heap[at])
    while at > 0:
        parent = (at - 1) // 2
        above = int(waiting.heap[parent])
        if not _before(waiting.waiters, slot, above):
            break
        _put(waiting, at, above)
        at = parent
    _put(waiting, at, slot)


@allocating_kernel
def _sink(waiting: Waiting, at: int) -> None:
    """Exchange what is at a place with those below it until none of them is due sooner."""
    heap, count = waiting.heap, waiting.counts[HEAP]
    slot = int(heap[at])
    while 2 * at + 1 < count:
        child = 2 * at + 1
        if child + 1 < count and _before(waiting.waiters, heap[child + 1], heap[child]):
            child += 1
        below = int(heap[child])
        if not _before(waiting.waiters, below, slot):
            break
        _put(waiting, at, below)
        at = child
    _put(waiting, at, slot)


@allocating_kernel
def _before(waiters: Any, left: int, right: int) -> bool:
    if waiters[left]["due_ns"] != waiters[right]["due_ns"]:
        return bool(waiters[left]["due_ns"] < waiters[right]["due_ns"])
    return bool(waiters[left]["order"] < waiters[right]["order"])
