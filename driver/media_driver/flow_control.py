"""How far a sender may run: the limit that its receivers' status messages allow together.

    MAX      follows the fastest receiver; unicast, and the default of a group
    MIN      waits for the slowest of those that joined
    TAGGED   the same among the receivers whose group tag is the publication's; others do not count

A receiver joins MIN and TAGGED once it is within a window of the slowest, so that a late one does
not stop the others; while it catches up after its SETUP, the limit at that moment is held (the
*latch*), so that the sender does not run away from it. Each publication has one FLOW_CONTROL record
and a row of RECEIVERS_MAX receivers. Source: spec 4.4, Aeron 1.53.
"""

import numpy as np

from driver.base.arith import I64_MAX
from driver.base.jit import kernel
from driver.cnc import counters

MAX = 0
MIN = 1
TAGGED = 2

RECEIVERS_MAX = 1024
"""That hold one publication back. Aeron has no bound; ours keeps forged ids from eating memory and
time. A further receiver is served, but not waited for, until a place is free."""

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
    lowest = _latched_limit(flow, now_ns)
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
    has_place = flow.receivers_count < RECEIVERS_MAX
    is_near = flow.receivers_count == 0 or limit >= lowest - window_length
    if counts and not is_known and not is_done and has_place and is_near:
        rec = receivers[first + flow.receivers_count]
        rec.receiver_id = receiver_id
        rec.last_status_ns = now_ns
        rec.position = position
        rec.limit = limit
        rec.is_done = 0
        lowest = min(lowest, limit)
        flow.receivers_count += 1
        flow.latch_limit = NO_LATCH
        _publish_count(flow, values)
    if flow.receivers_count < flow.group_min_size:
        return sender_limit
    if flow.receivers_count == 0:
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
    lowest = _latched_limit(flow, now_ns)
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
    if count == 0 or count < flow.group_min_size:
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
