"""Tracks the live receivers of each publication by receiver id.

Each publication has a row of RECEIVERS_MAX records. The first `count` records are in use. A
receiver is live until it sends no status message for the connection timeout, or a status message
with EOS. `flow_control` processes the receivers' positions. Source: spec 4.3 and 4.5, Aeron 1.53.
"""

import numpy as np

from windtunnel.driver.base.arith import I64_MAX
from windtunnel.driver.kernels.jit import kernel

RECEIVERS_MAX = 1024
"""Maximum number of receivers of a publication. Aeron has no limit. This one limits memory if
receiver ids are forged. An additional receiver replaces the receiver with the oldest status
message, and thus a publication stays connected while any receiver sends status messages."""
NOT_FOUND = -1

RECEIVER = np.dtype(
    (
        np.record,
        [
            ("receiver_id", "i8"),
            ("last_status_ns", "i8"),
            ("position", "i8"),  # highest position that it reported as consumed
        ],
    )
)


def make_receivers(publications: int) -> np.recarray:
    """Create an array of zeroed receiver records, RECEIVERS_MAX per publication."""
    return np.zeros(publications * RECEIVERS_MAX, dtype=RECEIVER).view(np.recarray)


@kernel
def find(receivers, row, count, receiver_id):
    """Return the index of the live receiver with the given receiver id, or NOT_FOUND."""
    first = row * RECEIVERS_MAX
    for index in range(first, first + count):
        if receivers[index].receiver_id == receiver_id:
            return index
    return NOT_FOUND


@kernel
def _longest_silent(receivers, row):
    first = row * RECEIVERS_MAX
    found = first
    for index in range(first + 1, first + RECEIVERS_MAX):
        if receivers[index].last_status_ns - receivers[found].last_status_ns < 0:
            found = index
    return found


@kernel
def on_receiver_alive(receivers, row, count, receiver_id, position, now_ns):
    """Record that a receiver has sent a status message, and the position that it has consumed.

    Returns: the number of live receivers
    """
    index = find(receivers, row, count, receiver_id)
    if index == NOT_FOUND:
        if count == RECEIVERS_MAX:
            index = _longest_silent(receivers, row)
        else:
            index = row * RECEIVERS_MAX + count
            count += 1
        receivers[index].receiver_id = receiver_id
        receivers[index].position = position
    receivers[index].position = max(receivers[index].position, position)
    receivers[index].last_status_ns = now_ns
    return count


@kernel
def lowest_position(receivers, row, count):
    """Return the lowest position that a live receiver has consumed, or I64_MAX if there is no live
    receiver.
    """
    first = row * RECEIVERS_MAX
    lowest = I64_MAX
    for index in range(first, first + count):
        lowest = min(lowest, receivers[index].position)
    return lowest


@kernel
def on_receiver_done(receivers, row, count, receiver_id):
    """Remove a receiver. Returns the number of remaining live receivers."""
    index = find(receivers, row, count, receiver_id)
    if index == NOT_FOUND:
        return count
    receivers[index] = receivers[row * RECEIVERS_MAX + count - 1]
    return count - 1


@kernel
def expire(receivers, row, count, timeout_ns, now_ns):
    """Remove receivers that timed out. Returns the number of remaining live receivers."""
    first = row * RECEIVERS_MAX
    index = first
    while index < first + count:
        if now_ns - receivers[index].last_status_ns >= timeout_ns:
            count -= 1
            receivers[index] = receivers[first + count]
        else:
            index += 1
    return count
