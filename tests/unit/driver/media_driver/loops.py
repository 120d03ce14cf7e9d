"""Kernels that two threads of a test run against each other.

They live outside the test modules: a build kept on disk names its module, and pytest may import a
test module under another name.
"""

from windtunnel.driver.base.atomics import get_i64_acquire, put_i64_release
from windtunnel.driver.cnc import counters
from windtunnel.driver.kernels.jit import kernel
from windtunnel.driver.media_driver.image import publication_image


@kernel
def publish_until(words, slot, count, done):
    """Publish `count` numbers twice; each number is in every word of its block."""
    for number in range(1, count + 1):
        publication_image.publish_status(words, slot, number, number)
        publication_image.publish_loss(words, slot, number, number, number)
    put_i64_release(done, 0, 1)


@kernel
def read_until(words, slot, done):
    """Read until the writer is done. Returns (torn reads accepted, reads, reads during a write)."""
    torn, read, refused = 0, 0, 0
    last_status, last_loss = 0, 0
    is_over = False
    while not is_over:
        is_over = get_i64_acquire(done, 0) == 1
        change, position, window = publication_image.read_status(words, slot)
        if change < 0:
            refused += 1
        else:
            read += 1
            torn += int(change != position or change != window or change < last_status)
            last_status = change
        change, term_id, offset, length = publication_image.read_loss(words, slot)
        if change < 0:
            refused += 1
        else:
            torn += int(
                change != term_id or change != offset or change != length or change < last_loss
            )
            last_loss = change
    return torn, read, refused


@kernel
def count_up(values, counter_id, count, begin, parties):
    """Add one `count` times to a counter, concurrently with others, once all have arrived."""
    counters.add_atomic(begin, 0, 1)
    while get_i64_acquire(begin, 0) < parties:
        pass
    for _ in range(count):
        counters.add_atomic(values, counter_id, 1)
