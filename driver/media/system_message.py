"""The structures of `sendmmsg` and `recvmmsg`: message headers, I/O vectors and control data.

    header  --> name      destination or source address
            --> vector    --> the bytes of one datagram, or of a GSO/GRO packet
            --> control   one ancillary message: the segment length of the packet

A GSO or GRO packet is a series of adjacent datagrams of equal length; the last may be shorter. The
system splits it when sending (UDP_SEGMENT) and may combine datagrams when receiving (UDP_GRO).
Source: Linux udp(7), recvmsg(2), cmsg(3); 64-bit, glibc.
"""

import errno

import numpy as np

from windtunnel.driver.base.atomics import get_i32, get_i64, put_i32, put_i64, put_u16
from windtunnel.driver.kernels.jit import kernel

IOVEC = np.dtype(
    (
        np.record,
        [
            ("address", "u8"),
            ("length", "u8"),
        ],
    )
)

# struct mmsghdr.
MESSAGE = np.dtype(
    (
        np.record,
        [
            ("name", "u8"),  # address of a struct sockaddr
            ("name_length", "u4"),
            ("pad_name", "u4"),
            ("vectors", "u8"),  # address of the iovec array
            ("vector_count", "u8"),
            ("control", "u8"),
            ("control_length", "u8"),
            ("message_flags", "i4"),
            ("pad_flags", "u4"),
            ("length", "u4"),  # bytes sent or received
            ("pad_length", "u4"),
        ],
    )
)
MESSAGE_LENGTH = MESSAGE.itemsize
assert IOVEC.itemsize == 16
assert MESSAGE_LENGTH == 64

# struct cmsghdr: length (u64), level (i32), type (i32), then the value.
CONTROL_LENGTH = 32
"""Length of the buffer for one control message."""
_LEVEL, _TYPE, _VALUE = 8, 12, 16
_SOL_UDP = 17
_UDP_SEGMENT = 103
_UDP_GRO = 104
UDP_GRO_OPTION = (_SOL_UDP, _UDP_GRO)
"""Level and name of the socket option that enables GRO."""

_EAGAIN, _EINTR = errno.EAGAIN, errno.EINTR
_ECONNREFUSED, _ENOBUFS = errno.ECONNREFUSED, errno.ENOBUFS


def make_headers(vectors: np.ndarray) -> np.recarray:
    """Create one message header for each I/O vector."""
    headers = np.zeros(vectors.size, dtype=MESSAGE).view(np.recarray)
    headers.vectors = vectors.ctypes.data + IOVEC.itemsize * np.arange(vectors.size)
    headers.vector_count = 1
    return headers


@kernel
def is_transient(result):
    """Return whether a negative errno reports a transient condition: a full buffer, a signal, or no
    peer yet.
    """
    return (
        result == -_EAGAIN or result == -_EINTR or result == -_ECONNREFUSED or result == -_ENOBUFS
    )


@kernel
def put_segment_length(controls, index, length):
    """Write a GSO packet's segment length as control data. Returns the control data's length."""
    at = index * CONTROL_LENGTH
    put_i64(controls, at, _VALUE + 2)
    put_i32(controls, at + _LEVEL, _SOL_UDP)
    put_i32(controls, at + _TYPE, _UDP_SEGMENT)
    put_u16(controls, at + _VALUE, length)
    return _VALUE + 8


@kernel
def segment_length(controls, index, control_length, message_length):
    """Return the length of each datagram in a received message. The last datagram may be
    shorter.
    """
    at = index * CONTROL_LENGTH
    if control_length < _VALUE + 4 or get_i64(controls, at) < _VALUE + 4:
        return message_length
    if get_i32(controls, at + _LEVEL) != _SOL_UDP or get_i32(controls, at + _TYPE) != _UDP_GRO:
        return message_length
    length = get_i32(controls, at + _VALUE)
    return length if 0 < length < message_length else message_length
