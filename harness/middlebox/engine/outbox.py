"""Outgoing datagrams, packed into one buffer, each with its packet headers (envelope).

    buf   | envelope | frames ... | envelope | frames ... |        OUT[i].at -> envelope

An envelope is opaque here. It holds the bytes that preceded the datagram's frames and that the
sender needs, such as the Ethernet, IP and UDP headers for the relay. The sender empties the whole
outbox at once.
"""

from typing import Any, NamedTuple

import numpy as np

from windtunnel.driver.kernels.jit import kernel

OUT = np.dtype(
    [
        ("at", "<i8"),  # offset of the envelope in `buf`
        ("envelope_length", "<i8"),
        ("length", "<i8"),  # length of the frames after it
        ("link", "<i8"),
        ("arrived_ns", "<i8"),  # arrival time of the original datagram; 0 if it was held on purpose
        ("foreign", "<i8"),  # 1: a packet that is all envelope, to be sent unchanged
        ("is_changed", "<i8"),  # 1: its frames differ from those that its checksum covers
        ("source_port", "<i8"),  # source port to set, or 0 to keep it
    ]
)

COUNT = 0
USED = 1
_ALIGNMENT = 64


class Outbox(NamedTuple):
    """Datagrams to send. `counts` holds the number of datagrams and of bytes used."""

    datagrams: Any
    buf: Any
    counts: Any


def make_outbox(datagrams: int, length: int) -> Outbox:
    """Create an empty outbox with room for `datagrams` datagrams and `length` bytes in total."""
    return Outbox(
        datagrams=np.zeros(datagrams, dtype=OUT),
        buf=np.zeros(length, dtype=np.uint8),
        counts=np.zeros(2, dtype=np.int64),
    )


@kernel
def copy_bytes(target: Any, target_at: int, source: Any, source_at: int, length: int) -> None:
    """Copy bytes between two arrays without the allocation that a slice assignment would cause.

    A slice assignment allocates in case the arrays overlap. Indexes into a view cannot be negative,
    so the compiler can vectorize the copy.
    """
    to, came = target[target_at : target_at + length], source[source_at : source_at + length]
    for index in range(length):
        to[index] = came[index]


@kernel
def has_room(outbox: Outbox, datagrams: int, length: int) -> bool:
    """Return whether the outbox has room for this many datagrams and bytes."""
    if outbox.counts[COUNT] + datagrams > len(outbox.datagrams):
        return False
    return bool(outbox.counts[USED] + length + datagrams * _ALIGNMENT <= len(outbox.buf))


@kernel
def put(
    outbox: Outbox,
    link: int,
    arrived_ns: int,
    envelope_buf: Any,
    envelope_at: int,
    envelope_length: int,
    buf: Any,
    at: int,
    length: int,
) -> None:
    """Add a datagram to the outbox. Its packet headers (envelope) and its frames come from separate
    buffers.
    """
    assert outbox.counts[COUNT] < len(outbox.datagrams)
    datagram = outbox.datagrams[outbox.counts[COUNT]]
    start = outbox.counts[USED]
    middle = start + envelope_length
    assert middle + length <= len(outbox.buf)
    datagram["at"] = start
    datagram["envelope_length"] = envelope_length
    datagram["length"] = length
    datagram["link"] = link
    datagram["arrived_ns"] = arrived_ns
    datagram["foreign"] = 0
    datagram["is_changed"] = 0
    datagram["source_port"] = 0
    copy_bytes(outbox.buf, start, envelope_buf, envelope_at, envelope_length)
    copy_bytes(outbox.buf, middle, buf, at, length)
    used = middle + length
    outbox.counts[USED] = used + -used % _ALIGNMENT
    outbox.counts[COUNT] += 1


@kernel
def put_foreign(outbox: Outbox, link: int, arrived_ns: int, buf: Any, at: int, length: int) -> None:
    """Add a packet that is not an Aeron datagram, to be sent unchanged."""
    put(outbox, link, arrived_ns, buf, at, length, buf, at, 0)
    outbox.datagrams[outbox.counts[COUNT] - 1]["foreign"] = 1


@kernel
def empty(outbox: Outbox) -> None:
    """Remove all datagrams from the outbox."""
    outbox.counts[:] = 0
