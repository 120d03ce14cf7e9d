"""The relay's state outside the engine: packet buffers, message headers that point to them, and
counts.

port 0   received[0], headers[0], controls[0]     a batch that recvmmsg fills
port 1   received[1], ...
all      sent_headers, sent_iovecs                a batch that sendmmsg sends from the outbox
"""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from windtunnel.harness.middlebox.engine.readdress import RewrittenPorts
from windtunnel.harness.middlebox.engine.state import BATCH_MAX
from windtunnel.harness.middlebox.impairment.impairment import Impairments
from windtunnel.harness.middlebox.relay.libc import IOVEC, MMSGHDR, POLLFD, POLLIN, POLLOUT

# Columns of `counts`, one row per port. UNLINKED counts packets for a host without a link, COPIES
# the additional copies of multicast packets.
RECEIVED, STRAYS, UNLINKED, COPIES, FRAGMENTS, OVERSIZE, ERROR = range(7)
# Columns of `link_counts`, one row per link direction.
FOREIGN, SEND_FAILURES, LAG_MAX = range(3)
NO_LINK = -1

SEND_BATCH = 128
LAG_BUCKET_NS = 1_000
LAG_BUCKETS = 20_000
"""Number of buckets for lags. The last bucket also counts all longer lags."""
CONTROL_LENGTH = 64
"""Length of a packet's control data (the arrival time)."""
_CONTROL_WORDS = CONTROL_LENGTH // 8


class Relay(NamedTuple):
    """The complete state of the relay's main loop."""

    fds: Any  # int64[port]
    hosts: Any  # int64[port, 2]: halves of each host's address
    macs: Any  # uint8[port, 12]: the host's address, then the relay's address
    routes: Any  # int64[port, port]: link direction from the first to the second, or NO_LINK
    targets: Any  # int64[link]: port that a direction leads to
    ports: Any  # int64: the case's UDP ports
    received: Any  # uint8[port, batch, length]
    received_headers: Any  # MMSGHDR[port, batch]
    received_iovecs: Any  # IOVEC[port, batch]
    controls: Any  # int64[port, batch, words]: ancillary data, which is the arrival time
    sent_headers: Any  # MMSGHDR[batch]
    sent_iovecs: Any  # IOVEC[batch]
    sent_links: Any  # int64[batch]: the link of each packet to send
    pollfds: Any  # POLLFD[port + 1]: all for reading, one for writing
    timespec: Any  # int64[2], scratch
    lags: Any  # int64[link, buckets]
    counts: Any  # int64[port, 7]
    link_counts: Any  # int64[link, 3]
    rewritten_ports: RewrittenPorts
    impairments: Impairments


def make_relay(
    fds: Sequence[int],
    hosts: NDArray[np.int64],
    macs: NDArray[np.uint8],
    routes: NDArray[np.int64],
    ports: NDArray[np.int64],
    packet_length_max: int,
    rewritten_ports: RewrittenPorts,
    impairments: Impairments,
) -> Relay:
    """Create the relay's state for open sockets.

    Shapes: hosts int64[port, 2]; macs uint8[port, 12]; routes int64[port, port]; ports int64[p]
    """
    length = packet_length_max + -packet_length_max % 64
    count, links = len(fds), int(routes.max()) + 1
    received = np.zeros((count, BATCH_MAX, length), dtype=np.uint8)
    controls = np.zeros((count, BATCH_MAX, _CONTROL_WORDS), dtype=np.int64)
    iovecs = np.zeros((count, BATCH_MAX), dtype=IOVEC)
    iovecs["base"] = _addresses(received, length)
    iovecs["length"] = length
    headers = np.zeros((count, BATCH_MAX), dtype=MMSGHDR)
    headers["iov"] = _addresses(iovecs, IOVEC.itemsize)
    headers["iov_length"] = 1
    headers["control"] = _addresses(controls, CONTROL_LENGTH)
    headers["control_length"] = CONTROL_LENGTH
    sent_iovecs = np.zeros(SEND_BATCH, dtype=IOVEC)
    sent_headers = np.zeros(SEND_BATCH, dtype=MMSGHDR)
    sent_headers["iov"] = sent_iovecs.ctypes.data + np.arange(SEND_BATCH) * IOVEC.itemsize
    sent_headers["iov_length"] = 1
    pollfds = np.zeros(count + 1, dtype=POLLFD)
    pollfds["fd"][:count] = fds
    pollfds["events"] = [POLLIN] * count + [POLLOUT]
    targets = np.zeros(links, dtype=np.int64)
    for near, far in np.argwhere(routes != NO_LINK):
        targets[routes[near, far]] = far
    return Relay(
        fds=np.array(fds, dtype=np.int64),
        hosts=hosts,
        macs=macs,
        routes=routes,
        targets=targets,
        ports=ports,
        received=received,
        received_headers=headers,
        received_iovecs=iovecs,
        controls=controls,
        sent_headers=sent_headers,
        sent_iovecs=sent_iovecs,
        sent_links=np.zeros(SEND_BATCH, dtype=np.int64),
        pollfds=pollfds,
        timespec=np.zeros(2, dtype=np.int64),
        lags=np.zeros((links, LAG_BUCKETS), dtype=np.int64),
        counts=np.zeros((count, 7), dtype=np.int64),
        link_counts=np.zeros((links, 3), dtype=np.int64),
        rewritten_ports=rewritten_ports,
        impairments=impairments,
    )


def _addresses(array: NDArray[Any], stride: int) -> NDArray[Any]:
    """Return the memory address of each packet's element in an array, for use in message
    headers.
    """
    count = len(array) * BATCH_MAX
    return (array.ctypes.data + np.arange(count) * stride).reshape(len(array), BATCH_MAX)
