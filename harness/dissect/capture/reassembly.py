"""Reassembly of IP fragments from a capture.

    slot  | addresses, identification | record of the first fragment | length | ....payload.... |

A datagram belongs to the record of its first fragment. The other fragments must follow in order
within REACH bytes of the file. Incomplete datagrams are counted. The slot depends only on the
packet's header. The datagrams found in a file therefore do not depend on how it is split among
readers.
"""

from typing import Any

import numpy as np

from windtunnel.driver.kernels.jit import kernel

PENDING = np.dtype(
    [
        ("source_high", "<i8"),
        ("source_low", "<i8"),
        ("destination_high", "<i8"),
        ("destination_low", "<i8"),
        ("identification", "<i8"),
        ("record_at", "<i8"),  # file offset of the first fragment's record
        ("have", "<i8"),  # contiguous bytes of the IP payload so far; 0 if the slot is free
        ("counts", "<i8"),  # 1 if this reader counts the datagram, 0 if another reader does
    ]
)
SLOTS = 256
SLOT_LENGTH = 1 << 16
REACH = 1 << 20
"""Maximum distance in bytes, in the capture file, between the first fragment and the others."""

IGNORED = -1
INCOMPLETE = 0


@kernel
def slot_of(source_low: int, destination_low: int, identification: int) -> int:
    """Return the index of the slot in which the fragments of a packet are reassembled."""
    mixed = (source_low * 31 + destination_low) * 31 + identification
    return int((mixed ^ mixed >> 8 ^ mixed >> 16 ^ mixed >> 24) & (SLOTS - 1))


@kernel
def expire(slot: Any, record_at: int) -> int:
    """Free a slot if its datagram can no longer be completed. Returns the number of incomplete
    datagrams to count, 0 or 1.
    """
    if slot["have"] == 0 or record_at - slot["record_at"] <= REACH:
        return 0
    slot["have"] = 0
    return int(slot["counts"])


@kernel
def store_first(slot: Any, store: Any, buf: Any, at: int, length: int) -> None:
    """Store the first fragment of a datagram. The caller writes the addresses into the slot."""
    slot["have"] = length
    for index in range(length):
        store[index] = buf[at + index]


@kernel
def append_fragment(
    slot: Any, store: Any, buf: Any, at: int, length: int, offset: int, more: int
) -> int:
    """Append another fragment to a partially reassembled datagram.

    Returns: the IP payload's length after the last fragment, INCOMPLETE before, or IGNORED if the
    fragment does not follow the stored bytes
    """
    if offset < slot["have"]:
        return INCOMPLETE
    if offset > slot["have"] or offset + length > SLOT_LENGTH:
        return IGNORED
    for index in range(length):
        store[offset + index] = buf[at + index]
    slot["have"] = offset + length
    return INCOMPLETE if more else offset + length
