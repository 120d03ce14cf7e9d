"""A wait-free single-producer single-consumer queue between two threads of one process.

    0        64        128       192             192 + i * 192
    +--------+---------+---------+---------------+--------------
    | head   | tail    | (pad)   | record 0      | record 1 ...
    +--------+---------+---------+---------------+--------------

Head and tail are total record counts on separate cache lines. A record consists of 24 words of 64
bits. Word 0 is the operation or event type, which determines the meaning of the other words. The
conductor sends commands to each agent through one queue, and the agent returns events through
another.
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
    """Create an empty queue of `capacity` records, as uint8[192 + capacity * 192]."""
    return np.zeros(_FIRST + capacity * RECORD_LENGTH, dtype=np.uint8)


def make_record() -> np.ndarray:
    """Create a zeroed record, int64[24], for `put` or `take`."""
    return np.zeros(WORDS, dtype=np.int64)


@kernel
def put(queue, record):
    """Append a copy of `record` (int64[24]) to the queue. Only the producer may call this function.

    Memory:  the release of the tail publishes the record
    Returns: False if the queue is full
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
    """Move the queue's oldest record into `record`. Only the consumer may call this function.

    Memory:  the acquire of the tail makes the record visible
    Returns: False if the queue is empty
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
def free_record_count(queue):
    """Return how many records the producer can put now. The consumer can increase the number at any
    time.
    """
    capacity = (queue.size - _FIRST) // RECORD_LENGTH
    return capacity - (get_i64(queue, _TAIL) - get_i64_acquire(queue, _HEAD))


@kernel
def is_empty(queue):
    """Return whether the queue is empty. The check is cheap enough for every duty cycle."""
    return get_i64_acquire(queue, _HEAD) >= get_i64_acquire(queue, _TAIL)
