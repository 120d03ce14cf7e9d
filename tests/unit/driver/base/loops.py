"""Kernels that two threads of a test run against each other.

They live outside the test modules: a build kept on disk names its module, and pytest may import a
test module under another name.
"""

from windtunnel.driver.base import atomics, handoff
from windtunnel.driver.kernels.jit import kernel


@kernel
def double_first_byte(address, length):
    buf = atomics.bytes_at(address, length)
    atomics.put_u8(buf, 0, 2 * atomics.get_u8(buf, 0))
    atomics.full_fence()
    return buf.size


@kernel
def meet(buf, at, parties):
    """Wait until all threads are here. Otherwise a loop may end before the next thread
    has started.
    """
    atomics.add_i64(buf, at, 1)
    while atomics.get_i64_acquire(buf, at) < parties:
        pass


@kernel
def add_many(buf, at, count, parties):
    meet(buf, 32, parties)
    for _ in range(count):
        atomics.add_i64(buf, at, 1)


@kernel
def increment_by_compare_and_set(buf, at, count, parties):
    meet(buf, 32, parties)
    for _ in range(count):
        while True:
            seen = atomics.get_i64_acquire(buf, at)
            if atomics.cas_i64(buf, at, seen, seen + 1):
                break


@kernel
def produce(buf, rounds):
    """Fill a message, then release its number. The consumer responds with the same number."""
    for number in range(1, rounds + 1):
        for word in range(4):
            atomics.put_i64(buf, 128 + 8 * word, number * (word + 1))
        atomics.put_i64_release(buf, 0, number)
        while atomics.get_i64_acquire(buf, 64) != number:
            pass


@kernel
def consume(buf, rounds):
    torn = 0
    for number in range(1, rounds + 1):
        while atomics.get_i64_acquire(buf, 0) != number:
            pass
        for word in range(4):
            if atomics.get_i64(buf, 128 + 8 * word) != number * (word + 1):
                torn += 1
        atomics.put_i64_release(buf, 64, number)
    return torn


@kernel
def put_all(queue, record, count):
    for number in range(count):
        record[0] = number
        record[23] = -number
        while not handoff.put(queue, record):
            pass


@kernel
def take_all(queue, record, count):
    wrong = 0
    for number in range(count):
        while not handoff.take(queue, record):
            pass
        if record[0] != number or record[23] != -number:
            wrong += 1
    return wrong
