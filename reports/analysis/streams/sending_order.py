"""In which order a sender sent what came by: told by the numbers that it gave its packets.

    identification   7 8 9 . 11 12 10 13 14 14 15      of the IPv4 header, one more for each packet
    order            7 8 9   11 12 10 13 14 14 15      and on beyond 16 bits
                                   ^        ^
                                   old      old: the very packet that came just before, once more

A packet sent again has a number of its own; one that is late, or a copy, has its first. Linux
counts so for connected sockets, which drivers use but for multi-destination-cast; others may not,
and then positions are all that there is. So the numbers of a flow are believed only when they have
shown themselves, and for as long: they go up by little, and never stand while the stream goes on.
Source: RFC 6864, Linux's `ip_select_ident`.
"""

from typing import Any

import numpy as np

from windtunnel.driver.kernels.jit import allocating_kernel
from windtunnel.harness.dissect.frames.wire_frame import NO_IDENTIFICATION

UNKNOWN = 0
"""The order of what nothing tells it of; all others are larger."""

SENDER = np.dtype(
    [
        ("order", "<i8"),  # the highest so far
        ("start", "<i8"),  # position of the first frame of the packet that had it
        ("packet", "<i8"),  # that came by last
        ("packet_order", "<i8"),
        ("high", "<i8"),  # the highest position of all
        ("is_known", "<i8"),  # whether those are
        ("steps", "<i8"),  # packets that were one of the next in turn
        ("odd", "<i8"),  # packets that do not fit a sender that counts
    ]
)
STEP_MAX = 1_024
"""That packets of a sender in turn are apart where it counts, others of its socket and lost ones
between them."""
LATE_MAX = 1 << 14
"""Packets that a late one may be behind: half of what 16 bits can tell, the rest is doubtful."""
OVERTAKEN_MAX = 64
"""Packets that may overtake new bytes of the stream; an older number is of another count."""
DATAGRAM_MAX = 1 << 16
"""Bytes of the stream that one datagram may hold, at most."""
STEPS_MIN = 16
"""Before numbers are believed."""
ODD_SHARE = 8
"""One in so many may not fit."""
WEIGHED_MAX = 512
"""So many packets are weighed; of more, those before count half."""
_NUMBERS = 1 << 16


@allocating_kernel
def _step(sender: Any, identification: int) -> int:
    """How far a number is from the highest, the shorter way round."""
    half = _NUMBERS >> 1
    return int((identification - sender["order"] + half) % _NUMBERS - half)


@allocating_kernel
def _weigh(sender: Any, identification: int, start: int) -> int:
    """The order of a packet; learns from it whether the sender counts."""
    step = _step(sender, identification)
    order = sender["order"] + step
    if step > 0:
        if step <= STEP_MAX:
            sender["steps"] += 1
        else:
            sender["odd"] += 1
        sender["order"], sender["start"] = order, start
    elif step == 0:
        # A middlebox may send frames of one datagram apart from each other.
        if abs(start - sender["start"]) >= DATAGRAM_MAX:
            sender["odd"] += 1
    elif step < -LATE_MAX or (start > sender["high"] and step < -OVERTAKEN_MAX):
        # A new count: a sender that began anew, or one that does not count at all.
        sender["odd"] += 1
        order += _NUMBERS
        sender["order"], sender["start"] = order, start
    if sender["steps"] + sender["odd"] > WEIGHED_MAX:
        sender["steps"], sender["odd"] = sender["steps"] // 2, sender["odd"] // 2
    return int(order)


@allocating_kernel
def put_in_order(
    is_sent: Any, flow_of: Any, identifications: Any, packets: Any, starts: Any, orders: Any,
    is_believed: Any, senders: Any,
) -> None:  # fmt: skip
    """Tell of each event of a stream, in the order of capture, when it was sent.

    Shapes:  is_sent bool[n], of frames and heartbeats; flow_of int32[n]; identifications int32[n];
             packets int64[n], the same for frames of one packet; starts int64[n], positions;
             orders int64[n], written: UNKNOWN, or larger for what was sent later in its flow;
             is_believed bool[n], written: whether the sender has shown by then that it counts;
             senders SENDER[f], kept from call to call
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
        is_in_turn = sender["odd"] * ODD_SHARE <= sender["steps"]
        is_believed[index] = sender["steps"] >= STEPS_MIN and is_in_turn
