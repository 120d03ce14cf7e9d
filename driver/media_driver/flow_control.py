"""How far a sender may run: receivers as a stream's flow control sees them, and the limit they
allow.

Each publication has a row of RECEIVERS_MAX records. A receiver is known by the id it put into its
status messages; it is alive until no status message came for the connection time-out, or it said
that it is done. The strategy decides how their limits combine; `MAX` (unicast, and the default of a
group) follows the fastest. Source: spec of Aeron 1.53's flow control strategies.
"""

import numpy as np

from driver.base.jit import kernel

MAX = 0

RECEIVERS_MAX = 64
"""Receivers remembered for one publication; a further one moves the limit, but not liveness."""

RECEIVER = np.dtype(
    [
        ("receiver_id", "i8"),
        ("last_status_ns", "i8"),
        ("position", "i8"),  # of its last status message
        ("limit", "i8"),  # that position plus the window it offered
    ]
)


def make_receivers(publications: int) -> np.recarray:
    """Blank rows, RECEIVER[publications * RECEIVERS_MAX]."""
    return np.zeros(publications * RECEIVERS_MAX, dtype=RECEIVER).view(np.recarray)


@kernel
def on_receiver_alive(receivers, row, count, receiver_id, position, limit, now_ns):
    """Note a status message. Returns the number of live receivers."""
    first = row * RECEIVERS_MAX
    for index in range(first, first + count):
        if receivers[index].receiver_id == receiver_id:
            receivers[index].last_status_ns = now_ns
            receivers[index].position = position
            receivers[index].limit = limit
            return count
    if count == RECEIVERS_MAX:
        return count
    rec = receivers[first + count]
    rec.receiver_id = receiver_id
    rec.last_status_ns = now_ns
    rec.position = position
    rec.limit = limit
    return count + 1


@kernel
def on_receiver_done(receivers, row, count, receiver_id):
    """Forget a receiver that left. Returns the number of live receivers."""
    first = row * RECEIVERS_MAX
    for index in range(first, first + count):
        if receivers[index].receiver_id == receiver_id:
            receivers[index] = receivers[first + count - 1]
            return count - 1
    return count


@kernel
def expire(receivers, row, count, timeout_ns, now_ns):
    """Forget receivers that have been silent for too long. Returns the number of live receivers."""
    first = row * RECEIVERS_MAX
    index = first
    while index < first + count:
        if now_ns - receivers[index].last_status_ns >= timeout_ns:
            count -= 1
            receivers[index] = receivers[first + count]
        else:
            index += 1
    return count


@kernel
def limit_after_status(strategy, sender_limit, status_limit):
    """The sender limit once a status message allowed `status_limit`."""
    return max(sender_limit, status_limit)


@kernel
def limit_when_idle(strategy, sender_limit):
    """The sender limit after a turn in which the stream had nothing to send."""
    return sender_limit
