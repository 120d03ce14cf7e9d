"""Datagrams that IP fragmented, put together again.

    slot  | who, which packet | first piece's record | bytes so far | ......payload...... |

A datagram belongs to the record of its first piece. Its further pieces must come in their order
and within REACH bytes of the file behind it; one that does not become whole is counted. A slot is
chosen by what the packet says of itself alone, so that it never matters for one datagram whether
others were seen, and a file gives the same datagrams however it is split among readers.
"""

from typing import Any

import numpy as np

from windtunnel.driver.kernels.jit import allocating_kernel

PENDING = np.dtype(
    [
        ("source_high", "<i8"),
        ("source_low", "<i8"),
        ("destination_high", "<i8"),
        ("destination_low", "<i8"),
        ("identification", "<i8"),
        ("record_at", "<i8"),  # offset in the file of the first piece's record
        ("have", "<i8"),  # contiguous bytes of the IP payload so far; 0 of a free slot
        ("counts", "<i8"),  # 1 when this reader answers for the datagram
    ]
)
SLOTS = 256
SLOT_LENGTH = 1 << 16
REACH = 1 << 20
"""Bytes of the file within which all pieces must lie."""

IGNORED = -1
INCOMPLETE = 0


@allocating_kernel
def slot_of(source_low: int, destination_low: int, identification: int) -> int:
    """The only slot that this packet may use."""
    mixed = (source_low * 31 + destination_low) * 31 + identification
    return int((mixed ^ mixed >> 8 ^ mixed >> 16 ^ mixed >> 24) & (SLOTS - 1))


@allocating_kernel
def expire(slot: Any, record_at: int) -> int:
    """Free a slot whose datagram can no longer become whole; returns 1 if one is lost by that."""
    if slot["have"] == 0 or record_at - slot["record_at"] <= REACH:
        return 0
    slot["have"] = 0
    return int(slot["counts"])


@allocating_kernel
def begin(slot: Any, store: Any, buf: Any, at: int, length: int) -> None:
    """Keep the first piece; the caller writes who it is from into the slot."""
    slot["have"] = length
    for index in range(length):
        store[index] = buf[at + index]


@allocating_kernel
def go_on(slot: Any, store: Any, buf: Any, at: int, length: int, offset: int, more: int) -> int:
    """Add a further piece.

    Returns: length of the whole IP payload when this was the last piece, INCOMPLETE when more are
             awaited, IGNORED when it does not follow what is there
    """
    if offset < slot["have"]:
        return INCOMPLETE
    if offset > slot["have"] or offset + length > SLOT_LENGTH:
        return IGNORED
    for index in range(length):
        store[offset + index] = buf[at + index]
    slot["have"] = offset + length
    return INCOMPLETE if more else offset + length
