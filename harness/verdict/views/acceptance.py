"""Which arrived datagrams a receiver accepts.

    acknowledged    |- - - - - half a term - - - - -|
    datagram                              | DATA |PAD - -|        rejected: an over-run

A PAD needs window only for its header, so a correct sender may send a datagram that an image
rejects. Its frames are lost although no link lost them.
"""

import numpy as np
from numpy.typing import NDArray

from windtunnel.harness.dissect.frames.flow import positions
from windtunnel.harness.dissect.frames.observed_flows import END_OF_TIME_NS
from windtunnel.harness.verdict.core.wire import Wire, status_messages
from windtunnel.harness.verdict.views.series import known_at


def certainly_accepted(wire: Wire, start: int) -> NDArray[np.bool_]:
    """Return a mask of the arrived frames that every correct receiver inserts into its log.

    A receiver accepts a datagram by its first frame, and only if it ends within half a term of its
    last status message. If it already has the first frame, it ignores the rest of the datagram.
    """
    frames = wire.arrived.frames
    if len(frames) == 0:
        return np.zeros(0, dtype=np.bool_)
    heads = np.flatnonzero(np.diff(frames["datagram"], prepend=-1))
    sizes = np.diff(np.append(heads, len(frames)))
    head_of = np.repeat(heads, sizes)
    tail_ends = np.repeat(wire.arrived.ends[np.append(heads[1:], len(frames)) - 1], sizes)
    taken = tail_ends <= _accepted_up_to(wire, frames["time_ns"].astype(np.int64), start)
    _, first_index = np.unique(wire.arrived.starts, return_index=True)
    fresh = np.zeros(len(frames), dtype=np.bool_)
    fresh[first_index] = True
    is_head = head_of == np.arange(len(frames))
    accepted: NDArray[np.bool_] = taken & (is_head | fresh[head_of])
    return accepted


def _accepted_up_to(wire: Wire, times_ns: NDArray[np.int64], start: int) -> NDArray[np.int64]:
    """Return the position up to which an image accepted what arrived at each time."""
    messages = status_messages(wire.feedback_sent)
    consumed = positions(messages, wire.facts.initial_term_id, wire.facts.term_length)
    consumed = np.maximum.accumulate(consumed) if len(consumed) else consumed
    # A status message with the same timestamp may have left after the datagram was read.
    acknowledged_ns = messages["time_ns"].astype(np.int64)
    last_acknowledged = known_at(acknowledged_ns, consumed, times_ns - 1, start)
    return last_acknowledged + wire.facts.term_length // 2


def certain_heartbeats(wire: Wire, start: int) -> NDArray[np.bool_]:
    """Return a mask of the arrived heartbeats that every correct receiver accepts: while its image
    certainly exists, and at most half a term beyond its last status message.
    """
    times_ns = wire.heartbeat_times_ns
    first_ns = status_messages(wire.feedback_sent)["time_ns"].min(initial=END_OF_TIME_NS)
    found: NDArray[np.bool_] = wire.heartbeat_positions <= _accepted_up_to(wire, times_ns, start)
    return found & (times_ns >= int(first_ns))


def while_received(wire: Wire) -> NDArray[np.bool_]:
    """Return a mask of the arrived frames that arrived while the image certainly existed and
    received at their port.

    Before the first status message, the image may not have existed. If the session was sent to
    several ports, to which subscriptions may have been added later and removed earlier, only what
    arrived at a port between status messages or NAKs from that port counts.
    """
    arrived_ns = wire.arrived.frames["time_ns"].astype(np.int64)
    ports, port_of = np.unique(wire.arrived.frames["destination_port"], return_inverse=True)
    messages = status_messages(wire.feedback_of_image)
    messages = np.concatenate([messages, wire.naks(wire.feedback_of_image)])
    first_ns, last_ns = [], []
    for port in ports.tolist():
        own = messages if len(ports) == 1 else messages[messages["source_port"] == port]
        times_ns = own["time_ns"].astype(np.int64)
        first_ns.append(int(times_ns.min(initial=END_OF_TIME_NS)))
        last_ns.append(END_OF_TIME_NS if len(ports) == 1 else int(times_ns.max(initial=0)))
    found: NDArray[np.bool_] = arrived_ns >= np.array(first_ns, dtype=np.int64)[port_of]
    return found & (arrived_ns <= np.array(last_ns, dtype=np.int64)[port_of])


def rejected_positions(wire: Wire, start: int) -> NDArray[np.int64]:
    """Return the positions of the frames that a receiver may have rejected when they first arrived,
    or for which it may not have had an image, in ascending order.
    """
    arrived, first = np.unique(wire.arrived.starts, return_index=True)
    is_accepted = certainly_accepted(wire, start) & while_received(wire)
    found: NDArray[np.int64] = arrived[~is_accepted[first]]
    return found
