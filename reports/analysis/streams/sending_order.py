"""Sending order of packets, from the identification field of their IPv4 headers.

    identification   7 8 9 . 11 12 10 13 14 14 15      one more for each packet
    order            7 8 9   11 12 10 13 14 14 15      extended beyond 16 bits
                                   ^        ^
                                   late     a copy of the packet before it

A retransmit has a new identification, but a late packet or a copy has the original one. Linux
counts this way for connected sockets, which drivers use except for multi-destination-cast. Other
systems may not, and then only positions are available. Therefore a flow's identifications are used
only while they behave like a counter: they must grow in small steps, and not stay constant while
the stream advances. Source: RFC 6864, Linux's `ip_select_ident`.
"""

from typing import Any

import numpy as np

from windtunnel.driver.kernels.jit import kernel
from windtunnel.harness.dissect.frames.wire_frame import NO_IDENTIFICATION

UNKNOWN = 0
"""The sending order of a packet without a usable identification. All other orders are larger."""

SENDER = np.dtype(
    [
        ("order", "<i8"),  # the highest order so far
        ("start", "<i8"),  # position of the first frame of that packet
        ("packet", "<i8"),  # number of the last packet
        ("packet_order", "<i8"),  # its order
        ("high", "<i8"),  # the highest position
        ("is_known", "<i8"),  # whether the fields above are set
        ("steps", "<i8"),  # number of packets whose identification was slightly higher
        ("odd", "<i8"),  # number of packets that contradict a counter
    ]
)
STEP_MAX = 1_024
"""Largest difference between the identifications of consecutive packets that still fits a counter.
Other packets from the same socket and lost packets cause differences above 1.
"""
LATE_MAX = 1 << 14
"""Maximum number of packets by which a packet may be late: half of the 16-bit range."""
OVERTAKEN_MAX = STEP_MAX
"""Maximum difference by which packets may overtake new bytes, such as retransmits that were sent
while the packet with these bytes was delayed. A larger one indicates a new counter.
"""
DATAGRAM_MAX = 1 << 16
"""Maximum number of stream bytes in a datagram."""
STEPS_MIN = 4
"""Number of small steps required before a sender's identifications are used. One random
identification in 64 is a small step.
"""
ODD_SHARE = 8
"""For each packet that contradicts a counter, there must be at least this many that fit one."""
WEIGHED_MAX = 512
"""Number of evaluated packets after which the weight of earlier packets is halved."""
_NUMBERS = 1 << 16


@kernel
def _step(sender: Any, identification: int) -> int:
    """Return how far an IPv4 identification is ahead of the highest one so far, modulo 2^16. The
    result is negative if it is behind.
    """
    half = _NUMBERS >> 1
    return int((identification - sender["order"] + half) % _NUMBERS - half)


@kernel
def _weigh(sender: Any, identification: int, start: int) -> int:
    """Return a packet's number in the sending order. Also counts whether the packet's
    identification grew like a counter.
    """
    step = _step(sender, identification)
    order = sender["order"] + step
    if step > 0:
        if step <= STEP_MAX:
            sender["steps"] += 1
        else:
            sender["odd"] += 1
        sender["order"], sender["start"] = order, start
    elif step == 0:
        # A middlebox may split the frames of one datagram.
        if abs(start - sender["start"]) >= DATAGRAM_MAX:
            sender["odd"] += 1
    elif step < -LATE_MAX or (start > sender["high"] and step < -OVERTAKEN_MAX):
        # A new counter: the sender was restarted or does not count at all.
        sender["odd"] += 1
        order += _NUMBERS
        sender["order"], sender["start"] = order, start
    if sender["steps"] + sender["odd"] > WEIGHED_MAX:
        sender["steps"], sender["odd"] = sender["steps"] // 2, sender["odd"] // 2
    return int(order)


@kernel
def counts_packets(sender: Any) -> bool:
    """Return whether a sender's IP identifications are known to count its packets."""
    fits_counter = sender["odd"] * ODD_SHARE <= sender["steps"]
    return bool(sender["steps"] >= STEPS_MIN and fits_counter)


@kernel
def put_in_order(
    is_sent: Any, flow_of: Any, identifications: Any, packets: Any, starts: Any, orders: Any,
    is_believed: Any, senders: Any,
) -> None:  # fmt: skip
    """Determine the sending order of a stream's events, which are in capture order.

    Shapes:  is_sent bool[n], frames and heartbeats; flow_of int32[n]; identifications int32[n];
             packets int64[n], the same for frames of one packet; starts int64[n], positions;
             orders int64[n], written: UNKNOWN, or larger for a packet sent later in its flow;
             is_believed bool[n], written: whether the sender is known to count by then;
             senders SENDER[f], which persist between calls
    """
    for index in range(len(flow_of)):
        orders[index], is_believed[index] = UNKNOWN, False
        identification = identifications[index]
        if not is_sent[index] or identification == NO_IDENTIFICATION:
            continue
        sender = senders[flow_of[index]]
        packet, start = packets[index], starts[index]
        if sender["is_known"] == 0:
            sender["is_known"], sender["packet"] = 1, packet
            sender["order"], sender["start"] = _NUMBERS + identification, start
            sender["packet_order"] = sender["order"]
        elif packet != sender["packet"]:
            sender["packet"] = packet
            sender["packet_order"] = _weigh(sender, identification, start)
        sender["high"] = max(sender["high"], start)
        orders[index] = sender["packet_order"]
        is_believed[index] = counts_packets(sender)
