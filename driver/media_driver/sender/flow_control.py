"""How far a sender may run: the limit that its receivers' status messages allow together.

    MAX      follows the fastest receiver; unicast, and the default of a group
    MIN      waits for the slowest of those that joined
    TAGGED   the same among the receivers whose group tag is the publication's; others do not count

A receiver joins MIN and TAGGED once it is within a window of the slowest, so that a late one does
not stop the others; while it catches up after its SETUP, the limit at that moment is held (the
*latch*), so that the sender does not run away from it. Each publication has one FLOW_CONTROL record
and a row of RECEIVERS_MAX receivers. Source: spec 4.4, Aeron 1.53.

The *overflow* accounts for the receivers that found no free place in the row. It does not tell
them apart; it keeps the lowest limits that any of them reported:

    overflow_limits  | 4096 | 4096 | none | 4096 | none |      one period = receiver timeout / 4
                       newest                    oldest        lowest limit reported in a period

The lowest of them bounds the sender. A limit is kept for at least the receiver timeout, as that of
a receiver with a place, and is dropped at an idle turn at most 5/4 of the timeout after it was
reported. The price is throughput: the sender also waits for the limit that an advancing receiver
reported a timeout ago, so that it sends about one window per 5/4 of the timeout while there is an
overflow. A shorter time would lose data of a receiver that is stopped for less than the timeout.
Several records by receiver id would not help, as one low limit in any of them bounds the sender.
A receiver without a place takes the next free one when it sends a status message.
"""

import numpy as np

from windtunnel.driver.base.arith import I64_MAX
from windtunnel.driver.cnc import counters
from windtunnel.driver.kernels.jit import kernel

MAX = 0
MIN = 1
TAGGED = 2

RECEIVERS_MAX = 1024
"""That one publication waits for one by one. Aeron has no bound; ours keeps forged ids from eating
memory and time. Further receivers belong to the overflow. The counter fc-receivers and the minimum
group size count places only, all of which are taken when the overflow begins."""

OVERFLOW_PERIODS = 4
"""Into which the receiver timeout is divided. With n, a limit is kept at most 1 + 1/n timeouts."""

NO_LATCH = -1
NO_COUNTER = -1

FLOW_CONTROL = np.dtype(
    [
        # Written by the conductor before the hand-over, then constant.
        ("strategy", "i8"),
        ("receiver_timeout_ns", "i8"),
        ("group_tag", "i8"),
        ("group_min_size", "i8"),
        ("receivers_id", "i8"),  # counter id of fc-receivers, or NO_COUNTER
        # The sender's own.
        ("receivers_count", "i8"),
        ("is_setup_wanted", "i8"),  # one that counts asked for a SETUP, which has not left yet
        ("latch_limit", "i8"),  # limit when that SETUP left, or NO_LATCH
        ("latch_ns", "i8"),
        ("overflow_limits", "i8", (OVERFLOW_PERIODS + 1,)),  # newest period first; I64_MAX: none
        ("overflow_window", "i8"),  # longest window of the receivers in the overflow
        ("overflow_ns", "i8"),  # start of the newest period
    ]
)

FLOW_RECEIVER = np.dtype(
    [
        ("receiver_id", "i8"),
        ("last_status_ns", "i8"),
        ("position", "i8"),  # the furthest it reported
        ("limit", "i8"),  # position plus window of its last status message
        ("is_done", "i8"),  # it left or refused the stream; the next idle turn forgets it
    ]
)


def make_flows(publications: int) -> np.recarray:
    """Blank records, FLOW_CONTROL[publications]: all follow the fastest."""
    flows = np.zeros(publications, dtype=FLOW_CONTROL).view(np.recarray)
    flows.latch_limit = NO_LATCH
    flows.receivers_id = NO_COUNTER
    flows.overflow_limits = I64_MAX
    return flows


def make_flow_receivers(publications: int) -> np.recarray:
    """Blank rows, FLOW_RECEIVER[publications * RECEIVERS_MAX]."""
    return np.zeros(publications * RECEIVERS_MAX, dtype=FLOW_RECEIVER).view(np.recarray)


@kernel
def has_required_receivers(flows, row):
    """Whether as many receivers joined as the group must have."""
    flow = flows[row]
    return flow.strategy == MAX or flow.receivers_count >= flow.group_min_size


@kernel
def _counts(flow, has_tag, tag):
    """Whether a receiver with this group tag is one of those that are waited for."""
    return flow.strategy == MIN or (has_tag and tag == flow.group_tag)


@kernel
def _publish_count(flow, values):
    if flow.receivers_id >= 0:
        counters.set_release(values, flow.receivers_id, flow.receivers_count)


@kernel
def _latched_limit(flow, now_ns):
    """The limit that is held for a receiver that is about to join, or the highest there is."""
    if flow.latch_limit == NO_LATCH:
        return I64_MAX
    if now_ns - flow.latch_ns > flow.receiver_timeout_ns:
        flow.latch_limit = NO_LATCH
        return I64_MAX
    return flow.latch_limit


@kernel
def _overflow_limit(flow):
    """The lowest limit in the overflow, or I64_MAX when it is empty."""
    lowest = I64_MAX
    for index in range(OVERFLOW_PERIODS + 1):
        lowest = min(lowest, flow.overflow_limits[index])
    return lowest


@kernel
def _join_overflow(flow, limit, window_length):
    """Account for a status message of a receiver without a place."""
    if _overflow_limit(flow) == I64_MAX:
        # The first receiver has certainly just joined. A later status message may come from one
        # that joined before, which must not end the latch for another: the latch times out.
        flow.latch_limit = NO_LATCH
    flow.overflow_limits[0] = min(flow.overflow_limits[0], limit)
    flow.overflow_window = max(flow.overflow_window, window_length)


@kernel
def _age_overflow(flow, now_ns):
    """Start a new period when the newest one is over, and drop the oldest."""
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
    """Take note of a status message. Returns the new sender limit, which never moves back."""
    flow = flows[row]
    limit = position + window_length
    if flow.strategy == MAX:
        return max(sender_limit, limit)
    counts = _counts(flow, has_tag, tag)
    first = row * RECEIVERS_MAX
    overflow_limit = _overflow_limit(flow)
    lowest = min(_latched_limit(flow, now_ns), overflow_limit)
    is_known = False
    for index in range(first, first + flow.receivers_count):
        rec = receivers[index]
        if counts and rec.receiver_id == receiver_id:
            is_known = True
            rec.is_done = int(is_done)
            rec.position = max(rec.position, position)
            rec.limit = limit
            rec.last_status_ns = now_ns
        lowest = min(lowest, rec.limit)
    # A receiver of the overflow must not be dropped because its window shrinks.
    reach = max(window_length, flow.overflow_window)
    is_near = flow.receivers_count == 0 or limit >= lowest - reach
    if counts and not is_known and not is_done and is_near:
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
    """Forget receivers that left or fell silent, after a turn in which nothing was sent.

    Returns: the sender limit, which may move back here when a slower receiver has joined
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
def on_setup_wanted(flows, row, has_tag, tag):
    """Somebody asked for a SETUP."""
    flow = flows[row]
    if flow.strategy != MAX and _counts(flow, has_tag, tag):
        flow.is_setup_wanted = 1


@kernel
def on_setup(flows, row, sender_limit, now_ns):
    """A SETUP that was asked for leaves: hold the limit for whoever asked, if others set it."""
    flow = flows[row]
    if flow.is_setup_wanted and flow.receivers_count > 0:
        flow.latch_ns = now_ns
        flow.latch_limit = sender_limit
    flow.is_setup_wanted = 0


@kernel
def on_error(flows, receivers, row, receiver_id):
    """A receiver refused the stream: it is waited for no longer, whatever its tag."""
    first = row * RECEIVERS_MAX
    for index in range(first, first + flows[row].receivers_count):
        if receivers[index].receiver_id == receiver_id:
            receivers[index].is_done = 1
