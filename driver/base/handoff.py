"""A queue between two threads of one process: one puts, one takes, nobody waits.

    0        64        128       192             192 + i * 192
    +--------+---------+---------+---------------+--------------
    | head   | tail    | (pad)   | record 0      | record 1 ...
    +--------+---------+---------+---------------+--------------

Head and tail count records for ever and sit on cache lines of their own. A record is 24 words of
64 bits; word 0 says what it is about and the two ends agree on the rest. The conductor hands its
agents their work through such queues, and they report back through others.
"""

import numpy as np

from windtunnel.driver.base.atomics import get_i64, get_i64_acquire, put_i64, put_i64_release
from windtunnel.driver.kernels.jit import kernel

WORDS = 24
RECORD_LENGTH = WORDS * 8
_HEAD = 0
_TAIL = 64
_FIRST = 192


def make_queue(capacity: int = 1024) -> np.ndarray:
    """An empty queue of `capacity` records, as uint8[192 + capacity * 192]."""
    return np.zeros(_FIRST + capacity * RECORD_LENGTH, dtype=np.uint8)


def make_record() -> np.ndarray:
    """A blank record, int64[24], to fill for `put` or to receive from `take`."""
    return np.zeros(WORDS, dtype=np.int64)


@kernel
def put(queue, record):
    """Append a copy of `record` (int64[24]); only the one producer may call this.

    Memory:  the release of the tail publishes the record
    Returns: False when the queue is full
    """
    capacity = (queue.size - _FIRST) // RECORD_LENGTH
    tail = get_i64(queue, _TAIL)
    if tail - get_i64_acquire(queue, _HEAD) >= capacity:
        return False
    at = _FIRST + (tail % capacity) * RECORD_LENGTH
    for word in range(WORDS):
        put_i64(queue, at + 8 * word, record[word])
    put_i64_release(queue, _TAIL, tail + 1)
    return True


@kernel
def take(queue, record):
    """Move the oldest record into `record`; only the one consumer may call this.

    Memory:  the acquire of the tail makes the record visible
    Returns: False when the queue is empty
    """
    head = get_i64(queue, _HEAD)
    if head >= get_i64_acquire(queue, _TAIL):
        return False
    capacity = (queue.size - _FIRST) // RECORD_LENGTH
    at = _FIRST + (head % capacity) * RECORD_LENGTH
    for word in range(WORDS):
        record[word] = get_i64(queue, at + 8 * word)
    put_i64_release(queue, _HEAD, head + 1)
    return True


@kernel
def room(queue):
    """How many records the producer can put without waiting, at least."""
    capacity = (queue.size - _FIRST) // RECORD_LENGTH
    return capacity - (get_i64(queue, _TAIL) - get_i64_acquire(queue, _HEAD))


@kernel
def is_empty(queue):
    """Whether nothing waits; cheap enough for every turn of a run loop."""
    return get_i64_acquire(queue, _HEAD) >= get_i64_acquire(queue, _TAIL)
