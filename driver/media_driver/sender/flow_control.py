"""Flow control strategies, which compute the sender limit from the receivers' status messages.

    MAX      follows the fastest receiver; for unicast, and the default for a group
    MIN      follows the slowest receiver that joined
    TAGGED   like MIN, but only for receivers with the publication's group tag

MIN and TAGGED include a receiver once it is within a window of the slowest receiver. A late
receiver therefore does not stop the others. When a SETUP is sent to a joining receiver, the current
limit is held (the *latch*) until the receiver has caught up. Each publication has one FLOW_CONTROL
record and a row of RECEIVERS_MAX receivers. Source: spec 4.4, Aeron 1.53.

The *overflow* represents the receivers for which the row has no free entry. It does not distinguish
between them, but stores the lowest limits that they reported:

    overflow_limits  | 4096 | 4096 | none | 4096 | none |      one period = receiver timeout / 4
                       newest                    oldest        lowest limit reported in a period

The lowest of these limits applies to the sender. A limit is kept for at least the receiver timeout,
as for a receiver with an entry, and is dropped in an idle duty cycle at most 5/4 of the timeout
after it was reported. This reduces throughput: the sender also waits for the limit that an
advancing receiver reported a timeout ago, so during an overflow it sends about one window per 5/4
of the timeout. With a shorter time, a receiver that stops for less than the timeout could lose
data. Several records by receiver id would not help, since a low limit in one record would limit the
sender. A receiver without an entry gets the next free entry when it sends a status message.
"""

import numpy as np

from windtunnel.driver.base.arith import I64_MAX
from windtunnel.driver.cnc import counters
from windtunnel.driver.kernels.jit import kernel

MAX = 0
MIN = 1
TAGGED = 2

RECEIVERS_MAX = 1024
"""Maximum number of receivers that one publication tracks individually. Aeron has no limit. This
one limits memory and time if receiver ids are forged. Additional receivers are part of the
overflow. The counter fc-receivers and the minimum group size count only entries, all of which are
in use when the overflow begins."""

OVERFLOW_PERIODS = 4
"""Overflow periods per receiver timeout. With n periods, a limit is kept for at most 1 + 1/n
timeouts."""

NO_LATCH = -1
NO_COUNTER = -1

FLOW_CONTROL = np.dtype(
    (
        np.record,
        [
            # Written by the conductor before the hand-over, then constant.
            ("strategy", "i8"),
            ("receiver_timeout_ns", "i8"),
            ("group_tag", "i8"),
            ("group_min_size", "i8"),
            ("receivers_id", "i8"),  # counter id of fc-receivers, or NO_COUNTER
            # Owned by the sender.
            ("receivers_count", "i8"),
            ("is_setup_elicited", "i8"),  # a member elicited a SETUP that is not sent yet
            ("latch_limit", "i8"),  # limit when that SETUP was sent, or NO_LATCH
            ("latch_ns", "i8"),
            ("overflow_limits", "i8", (OVERFLOW_PERIODS + 1,)),  # newest first; I64_MAX: none
            ("overflow_window", "i8"),  # longest window of the receivers in the overflow
            ("overflow_ns", "i8"),  # start of the newest period
        ],
    )
)

FLOW_RECEIVER = np.dtype(
    (
        np.record,
        [
            ("receiver_id", "i8"),
            ("last_status_ns", "i8"),
            ("position", "i8"),  # highest position reported
            ("limit", "i8"),  # position plus window of the last status message
            ("is_done", "i8"),  # left or rejected the stream; removed in the next idle duty cycle
        ],
    )
)


def make_flows(publications: int) -> np.recarray:
    """Create an array of flow control records with strategy MAX, one per publication."""
    flows = np.zeros(publications, dtype=FLOW_CONTROL).view(np.recarray)
    flows.latch_limit = NO_LATCH
    flows.receivers_id = NO_COUNTER
    flows.overflow_limits = I64_MAX
    return flows


def make_flow_receivers(publications: int) -> np.recarray:
    """Create an array of zeroed receiver records, RECEIVERS_MAX per publication."""
    return np.zeros(publications * RECEIVERS_MAX, dtype=FLOW_RECEIVER).view(np.recarray)


@kernel
def has_required_receivers(flows, row):
    """Return whether a publication has at least the minimum group size of receivers."""
    flow = flows[row]
    return flow.strategy == MAX or flow.receivers_count >= flow.group_min_size


@kernel
def _is_member(flow, has_tag, tag):
    """Return whether a publication's flow control includes a receiver with this group tag."""
    return flow.strategy == MIN or (has_tag and tag == flow.group_tag)


@kernel
def _publish_count(flow, values):
    if flow.receivers_id >= 0:
        counters.set_release(values, flow.receivers_id, flow.receivers_count)


@kernel
def _latched_limit(flow, now_ns):
    """Return the limit at which the sender is held while a receiver joins, or I64_MAX if it is not
    held.
    """
    if flow.latch_limit == NO_LATCH:
        return I64_MAX
    if now_ns - flow.latch_ns > flow.receiver_timeout_ns:
        flow.latch_limit = NO_LATCH
        return I64_MAX
    return flow.latch_limit


@kernel
def _overflow_limit(flow):
    """Return the lowest limit reported by receivers that have no record of their own, or I64_MAX if
    there is no report.
    """
    lowest = I64_MAX
    for index in range(OVERFLOW_PERIODS + 1):
        lowest = min(lowest, flow.overflow_limits[index])
    return lowest


@kernel
def _join_overflow(flow, limit, window_length):
    """Record a status message from a receiver that has no record of its own, because all receiver
    records of the publication are in use.
    """
    if _overflow_limit(flow) == I64_MAX:
        # The first such receiver has certainly just joined. Later status messages may be from
        # receivers that joined before, and must not release a latch held for another receiver. That
        # latch times out.
        flow.latch_limit = NO_LATCH
    flow.overflow_limits[0] = min(flow.overflow_limits[0], limit)
    flow.overflow_window = max(flow.overflow_window, window_length)


@kernel
def _age_overflow(flow, now_ns):
    """Discard the oldest limits reported by receivers that have no record of their own, once per
    quarter of the receiver timeout.
    """
    period_ns = (flow.receiver_timeout_ns + OVERFLOW_PERIODS - 1) // OVERFLOW_PERIODS
    if now_ns - flow.overflow_ns <= period_ns:
        return
    for index in range(OVERFLOW_PERIODS, 0, -1):
        flow.overflow_limits[index] = flow.overflow_limits[index - 1]
    flow.overflow_limits[0] = I64_MAX
    flow.overflow_ns = now_ns
    if _overflow_limit(flow) == I64_MAX:
        flow.overflow_window = 0


@kernel
def on_status(
    flows,
    receivers,
    row,
    values,
    sender_limit,
    position,
    window_length,
    receiver_id,
    is_done,
    has_tag,
    tag,
    now_ns,
):
    """Process a status message. Returns the new sender limit, which is never lower than the current
    one.
    """
    flow = flows[row]
    limit = position + window_length
    if flow.strategy == MAX:
        return max(sender_limit, limit)
    is_member = _is_member(flow, has_tag, tag)
    first = row * RECEIVERS_MAX
    overflow_limit = _overflow_limit(flow)
    lowest = min(_latched_limit(flow, now_ns), overflow_limit)
    is_known = False
    for index in range(first, first + flow.receivers_count):
        rec = receivers[index]
        if is_member and rec.receiver_id == receiver_id:
            is_known = True
            rec.is_done = int(is_done)
            rec.position = max(rec.position, position)
            rec.limit = limit
            rec.last_status_ns = now_ns
        lowest = min(lowest, rec.limit)
    # Use the longest window. Otherwise a receiver in the overflow would be dropped if its window
    # shrinks.
    reach = max(window_length, flow.overflow_window)
    is_near = flow.receivers_count == 0 or limit >= lowest - reach
    if is_member and not is_known and not is_done and is_near:
        lowest = min(lowest, limit)
        if flow.receivers_count == RECEIVERS_MAX:
            _join_overflow(flow, limit, window_length)
        else:
            rec = receivers[first + flow.receivers_count]
            rec.receiver_id = receiver_id
            rec.last_status_ns = now_ns
            rec.position = position
            rec.limit = limit
            rec.is_done = 0
            flow.receivers_count += 1
            flow.latch_limit = NO_LATCH
            _publish_count(flow, values)
    if flow.receivers_count < flow.group_min_size:
        return sender_limit
    if flow.receivers_count == 0 and overflow_limit == I64_MAX:
        return max(sender_limit, limit)
    return max(sender_limit, lowest)


@kernel
def on_idle(flows, receivers, row, values, sender_limit, now_ns):
    """Remove receivers that left or timed out. Called in a duty cycle that sent nothing.

    Returns: the sender limit, which may decrease if a slower receiver has joined
    """
    flow = flows[row]
    if flow.strategy == MAX:
        return sender_limit
    first = row * RECEIVERS_MAX
    count = flow.receivers_count
    _age_overflow(flow, now_ns)
    overflow_limit = _overflow_limit(flow)
    lowest = min(_latched_limit(flow, now_ns), overflow_limit)
    index = first
    while index < first + count:
        rec = receivers[index]
        if rec.is_done or now_ns - rec.last_status_ns > flow.receiver_timeout_ns:
            count -= 1
            receivers[index] = receivers[first + count]
        else:
            lowest = min(lowest, rec.limit)
            index += 1
    if count != flow.receivers_count:
        flow.receivers_count = count
        _publish_count(flow, values)
    is_empty = count == 0 and overflow_limit == I64_MAX
    if is_empty or count < flow.group_min_size:
        return sender_limit
    return lowest


@kernel
def on_setup_elicited(flows, row, has_tag, tag):
    """Record that a receiver elicited a SETUP, if flow control includes the receiver."""
    flow = flows[row]
    if flow.strategy != MAX and _is_member(flow, has_tag, tag):
        flow.is_setup_elicited = 1


@kernel
def on_setup(flows, row, sender_limit, now_ns):
    """Hold the sender at its current limit when a SETUP is sent to a joining receiver, if there are
    other receivers.
    """
    flow = flows[row]
    if flow.is_setup_elicited and flow.receivers_count > 0:
        flow.latch_ns = now_ns
        flow.latch_limit = sender_limit
    flow.is_setup_elicited = 0


@kernel
def on_error(flows, receivers, row, receiver_id):
    """Mark a receiver for removal because it rejected the stream, whatever its group tag is."""
    first = row * RECEIVERS_MAX
    for index in range(first, first + flows[row].receivers_count):
        if receivers[index].receiver_id == receiver_id:
            receivers[index].is_done = 1
