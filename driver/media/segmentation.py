"""Generic segmentation offload (GSO): sends adjacent datagrams of equal length as one packet.

    entries   | 1408 | 1408 | 1408 | 640 |   | 1408 | 96 |         a gap, or a longer entry after a
              +-------- packet 0 --------+   +-packet 1--+         shorter one, starts a new packet

The operating system splits each packet into its datagrams (segments). One system call per packet
makes small datagrams cheap. Disable GSO where a link drops or delays single datagrams, because such
a link sees the packet as one datagram. Source: Linux udp(7), UDP_SEGMENT.
"""

import errno
from typing import NamedTuple

import numpy as np

from windtunnel.driver.base import system
from windtunnel.driver.kernels.jit import kernel
from windtunnel.driver.media.system_message import (
    CONTROL_LENGTH,
    IOVEC,
    MESSAGE_LENGTH,
    make_headers,
    put_segment_length,
)

GSO_SEGMENTS_MAX = 64
"""Maximum number of datagrams per packet (Linux UDP_MAX_SEGMENTS; later kernels allow more)."""
GSO_LENGTH_MAX = 65_000
"""Maximum number of payload bytes per packet, so they and the headers fit into an IP packet."""


_EINVAL, _EIO, _EMSGSIZE = errno.EINVAL, errno.EIO, errno.EMSGSIZE


class GsoBatch(NamedTuple):
    """GSO packets to send in one system call."""

    headers: np.ndarray  # MESSAGE[n]
    vectors: np.ndarray  # IOVEC[n]
    controls: np.ndarray  # uint8[n * CONTROL_LENGTH]
    ends: np.ndarray  # int64[n], index after the last entry of each packet


def make_gso_batch(count: int) -> GsoBatch:
    """Create a batch of up to `count` GSO packets for one system call."""
    vectors = np.zeros(count, dtype=IOVEC).view(np.recarray)
    headers = make_headers(vectors)
    controls = np.zeros(count * CONTROL_LENGTH, dtype=np.uint8)
    headers.control = controls.ctypes.data + CONTROL_LENGTH * np.arange(count)
    return GsoBatch(headers, vectors, controls, np.zeros(count, dtype=np.int64))


@kernel
def datagrams_per_packet(length):
    """Return how many datagrams of `length` bytes (at least one) a GSO packet can contain."""
    return max(1, min(GSO_SEGMENTS_MAX, GSO_LENGTH_MAX // length))


@kernel
def gather_gso_packets(packets, vectors, first, count):
    """Combine batch entries `first` to `first + count - 1` into GSO packets. Returns the number of
    packets.
    """
    packet_count = 0
    index = first
    while index < first + count:
        begin = index
        segment = int(vectors[begin].length)
        total = segment
        index += 1
        is_open = True
        while is_open and index < first + count and index - begin < GSO_SEGMENTS_MAX:
            length = int(vectors[index].length)
            is_adjacent = int(vectors[index].address) == int(vectors[begin].address) + total
            if not is_adjacent or length > segment or total + length > GSO_LENGTH_MAX:
                break
            total += length
            index += 1
            is_open = length == segment
        header = packets.headers[packet_count]
        # The operating system ignores the control address if the length is 0.
        header.control_length = 0
        if index - begin > 1:
            header.control_length = put_segment_length(packets.controls, packet_count, segment)
        packets.vectors[packet_count].address = vectors[begin].address
        packets.vectors[packet_count].length = total
        packets.ends[packet_count] = index
        packet_count += 1
    return packet_count


@kernel
def send_gso_packets(fd, packets, vectors, first, count, name_address, name_length):
    """Send batch entries `first` to `first + count - 1` as GSO packets.

    Returns: the number of entries sent, in order from `first`; or -errno
    """
    packet_count = gather_gso_packets(packets, vectors, first, count)
    for index in range(packet_count):
        header = packets.headers[index]
        header.name = name_address
        header.name_length = name_length

    result = system.sendmmsg(fd, packets.headers.ctypes.data, packet_count, system.MSG_DONTWAIT)
    if result <= 0:
        return result
    return packets.ends[result - 1] - first


@kernel
def is_refusal(result):
    """Return whether a `send_gso_packets` result means that the route does not support GSO."""
    return result == -_EINVAL or result == -_EIO or result == -_EMSGSIZE


assert MESSAGE_LENGTH == 64
