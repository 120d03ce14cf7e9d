"""The loop between the interfaces: receive, classify, route, offer to the engine, seal, send.

    port 0 (host a) --recvmmsg--> [a->b] engine --outbox--> sendmmsg--> port 1 (host b)
                    `-----------> [a->c] engine --outbox--> sendmmsg--> port 2 (host c)

A star: each host has a port of its own, and a packet from one host to another passes the engine
with the code of that link direction. What goes to a multicast group passes once for each link of
its sender. One thread serves all directions in batches and sleeps in ppoll when there is nothing to
do; it never spins. Arrival times are the kernel's, so waiting in a receive buffer counts as lag and
delays are counted from the true arrival.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from harness.dissect.bytes_at import u16_be
from harness.kernel import kernel
from harness.middlebox import engine as rules_engine
from harness.middlebox import outbox as out
from harness.middlebox import waiting as wait
from harness.middlebox import weather as skies
from harness.middlebox.libc import (
    EAGAIN,
    EINTR,
    ENOBUFS,
    IOVEC,
    MMSGHDR,
    MSG_TRUNC,
    NS_PER_SECOND,
    POLLFD,
    POLLIN,
    POLLOUT,
    realtime_ns,
    receive_batch,
    send_batch,
    wait_for,
)
from harness.middlebox.packet import AERON, EVERYBODY, FRAGMENT, STRAY, classify, seal, set_macs
from harness.middlebox.readdress import Readdressed, make_readdressed, set_ports
from harness.middlebox.state import BATCH_MAX, DECISIONS, Engine
from harness.middlebox.waiting import next_due_ns
from harness.middlebox.weather import Weather

# What `run` returns.
TIME_OVER, DECISIONS_FULL, INTERRUPTED, DRAINED, FAILED = range(5)
# Columns of `counts`, one row a port; packets for a host without a link are UNLINKED, and those for
# a group leave COPIES more than came.
RECEIVED, STRAYS, UNLINKED, COPIES, FRAGMENTS, OVERSIZE, ERROR = range(7)
# Columns of `link_counts`, one row a link direction.
FOREIGN, SEND_FAILURES, LAG_MAX = range(3)
NO_LINK = -1

SEND_BATCH = 128
SEND_RETRY_NS = 100_000
SEND_RETRIES_MAX = 20_000
LAG_BUCKET_NS = 1_000
LAG_BUCKETS = 20_000
"""The last bucket takes all longer lags too."""

_CONTROL_WORDS = 8
_CONTROL_LENGTH = 8 * _CONTROL_WORDS
_TIMESTAMP_LENGTH = 32
_HEADER_LENGTH = MMSGHDR.itemsize


class Relay(NamedTuple):
    """The sockets' side of the middlebox: buffers, message headers that point to them, counts."""

    fds: Any  # int64[port]
    hosts: Any  # int64[port, 2]: halves of each host's address
    macs: Any  # uint8[port, 12]: the host's address, then the relay's own
    routes: Any  # int64[port, port]: link direction from the first to the second, or NO_LINK
    targets: Any  # int64[link]: port that a direction leads to
    ports: Any  # int64: the case's UDP ports
    received: Any  # uint8[port, batch, length]
    received_headers: Any  # MMSGHDR[port, batch]
    received_iovecs: Any  # IOVEC[port, batch]
    controls: Any  # int64[port, batch, words]: ancillary data, which is the time of arrival
    sent_headers: Any  # MMSGHDR[batch]
    sent_iovecs: Any  # IOVEC[batch]
    sent_links: Any  # int64[batch]: whose each of them is
    pollfds: Any  # POLLFD[port + 1]: all to read, one to write
    timespec: Any  # int64[2], scratch
    lags: Any  # int64[link, buckets]
    counts: Any  # int64[port, 7]
    link_counts: Any  # int64[link, 3]
    readdressed: Readdressed
    weather: Weather


def make_relay(
    fds: Sequence[int],
    hosts: NDArray[np.int64],
    macs: NDArray[np.uint8],
    routes: NDArray[np.int64],
    ports: NDArray[np.int64],
    packet_length_max: int,
    weather: Weather,
) -> Relay:
    """A relay between open sockets; nothing is received yet.

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
    headers["control"] = _addresses(controls, _CONTROL_LENGTH)
    headers["control_length"] = _CONTROL_LENGTH
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
        readdressed=make_readdressed(links),
        weather=weather,
    )


def _addresses(array: NDArray[Any], stride: int) -> NDArray[Any]:
    """Of each packet's part of an array whose first two sizes are ports and packets."""
    count = len(array) * BATCH_MAX
    return (array.ctypes.data + np.arange(count) * stride).reshape(len(array), BATCH_MAX)


@kernel
def run(relay: Relay, engine: Engine, until_ns: int, draining: bool) -> int:
    """Forward until a time, or until the shell is needed; says why it returned.

    Units:   until_ns and all times are of the clock of day
    Returns: TIME_OVER, DECISIONS_FULL, INTERRUPTED by a signal, FAILED with the errno in `counts`,
             or DRAINED when `draining` and nothing is left to receive or to send
    """
    decisions_max = len(engine.decisions) // 2
    ports = len(relay.fds)
    while True:
        received = 0
        for near in range(ports):
            if engine.state[DECISIONS] > decisions_max:
                return DECISIONS_FULL
            count = receive_batch(
                relay.fds[near], relay.received_headers[near].ctypes.data, BATCH_MAX
            )
            if count < 0 and count not in (-EAGAIN, -EINTR):
                relay.counts[near, ERROR] = -count
                return FAILED
            for index in range(count):
                _take(relay, engine, near, index)
            _flush(relay, engine)
            received += max(count, 0)
        now_ns = realtime_ns(relay.timespec)
        while not rules_engine.release(engine, now_ns):
            _flush(relay, engine)
        _flush(relay, engine)
        _send_weather(relay, now_ns)
        if now_ns >= until_ns:
            return TIME_OVER
        if received == 0:
            due_ns = min(next_due_ns(engine.waiting), next_due_ns(relay.weather.waiting))
            if draining and engine.waiting.counts[0] + relay.weather.waiting.counts[0] == 0:
                return DRAINED
            wait_ns = min(due_ns, until_ns) - now_ns
            status = wait_for(relay.pollfds.ctypes.data, ports, relay.timespec, max(wait_ns, 0))
            if status == -EINTR:
                return INTERRUPTED


@kernel
def _take(relay: Relay, engine: Engine, near: int, index: int) -> None:
    """Hand one received packet on, by what it is and where it goes."""
    header = relay.received_headers[near, index]
    length = int(header["length"])
    arrived_ns = _arrival_ns(relay, near, index)
    truncated = header["flags"] & MSG_TRUNC
    header["control_length"] = _CONTROL_LENGTH
    relay.counts[near, RECEIVED] += 1
    if truncated:
        relay.counts[near, OVERSIZE] += 1
        return
    packet = relay.received[near, index]
    kind, far, envelope_length, frames_length = classify(
        packet, 0, length, relay.hosts, near, relay.ports
    )
    if kind == STRAY:
        relay.counts[near, STRAYS] += 1
        return
    if kind == FRAGMENT:
        relay.counts[near, FRAGMENTS] += 1
    copies = 0
    for other in range(len(relay.fds)):
        if far not in (EVERYBODY, other) or relay.routes[near, other] == NO_LINK:
            continue
        copies += 1
        link = relay.routes[near, other]
        _hand_on(
            relay, engine, kind, link, packet, length, envelope_length, frames_length, arrived_ns
        )
    if copies == 0:
        relay.counts[near, UNLINKED] += 1
    else:
        relay.counts[near, COPIES] += copies - 1


@kernel
def _hand_on(
    relay: Relay,
    engine: Engine,
    kind: int,
    link: int,
    packet: Any,
    length: int,
    envelope_length: int,
    frames_length: int,
    arrived_ns: int,
) -> None:
    """Offer a packet to the engine on one link, or let it pass there if it is none of Aeron's."""
    if kind == AERON:
        if not rules_engine.has_room(engine, envelope_length, frames_length):
            _flush(relay, engine)
        rules_engine.offer(engine, packet, 0, envelope_length, frames_length, link, arrived_ns)
        return
    relay.link_counts[link, FOREIGN] += 1
    outbox = engine.outbox
    if not out.has_room(outbox, 1, length):
        _flush(relay, engine)
    if envelope_length > 0:
        frames_at = envelope_length
        out.put(
            outbox, link, arrived_ns, packet, 0, envelope_length, packet, frames_at, frames_length
        )
    else:
        out.put_foreign(outbox, link, arrived_ns, packet, 0, length)


@kernel
def _arrival_ns(relay: Relay, near: int, index: int) -> int:
    """When the kernel saw a packet; now if it does not say."""
    if relay.received_headers[near, index]["control_length"] < _TIMESTAMP_LENGTH:
        return realtime_ns(relay.timespec)
    control = relay.controls[near, index]
    return int(control[2]) * NS_PER_SECOND + int(control[3])


@kernel
def _flush(relay: Relay, engine: Engine) -> None:
    """Send all datagrams of the outbox and note how long they took to get here."""
    outbox = engine.outbox
    count = outbox.counts[out.COUNT]
    if count == 0:
        return
    for far in range(len(relay.fds)):
        batch = 0
        for index in range(count):
            datagram = outbox.datagrams[index]
            link = datagram["link"]
            if relay.targets[link] != far:
                continue
            at = datagram["at"]
            set_macs(outbox.buf, at, relay.macs, far)
            if datagram["foreign"] == 0:
                envelope_length, length = datagram["envelope_length"], datagram["length"]
                is_changed = set_ports(
                    relay.readdressed,
                    outbox.buf,
                    at,
                    envelope_length,
                    link,
                    datagram["source_port"],
                )
                is_changed |= datagram["is_changed"] != 0
                seal(outbox.buf, at, envelope_length, length, is_changed)
            if skies.is_on(relay.weather, link):
                _into_weather(relay, engine, index)
                continue
            iovec = relay.sent_iovecs[batch]
            iovec["base"] = outbox.buf.ctypes.data + at
            iovec["length"] = datagram["envelope_length"] + datagram["length"]
            relay.sent_links[batch] = link
            batch += 1
            if batch == SEND_BATCH:
                _send(relay, far, batch)
                batch = 0
        _send(relay, far, batch)
    now_ns = realtime_ns(relay.timespec)
    for index in range(count):
        datagram = outbox.datagrams[index]
        if datagram["arrived_ns"] != 0:
            _note_lag(relay, datagram["link"], now_ns - datagram["arrived_ns"])
    out.empty(outbox)


@kernel
def _into_weather(relay: Relay, engine: Engine, index: int) -> None:
    """Hand a sealed datagram of the outbox to the weather of its direction."""
    buf = engine.outbox.buf
    datagram = engine.outbox.datagrams[index]
    at, link, came_ns = datagram["at"], datagram["link"], datagram["arrived_ns"]
    envelope_length, length = datagram["envelope_length"], datagram["length"]
    if came_ns == 0:
        came_ns = realtime_ns(relay.timespec)
    if length:
        ports_at = at + envelope_length - 8
        source, destination = u16_be(buf, ports_at), u16_be(buf, ports_at + 2)
        for port in relay.ports:
            if port in (source, destination):
                skies.take(relay.weather, link, buf, at, envelope_length, length, came_ns)
                return
    skies.take(relay.weather, link, buf, at, envelope_length + length, 0, came_ns)


@kernel
def _send_weather(relay: Relay, now_ns: int) -> None:
    """Send all that is due, in its order; neighbours of one direction leave in batches."""
    waiting = relay.weather.waiting
    while wait.next_due_ns(waiting) <= now_ns:
        link = waiting.waiters[waiting.heap[0]]["link"]
        first = waiting.counts[wait.FREE]
        batch = 0
        slot = skies.next_slot(relay.weather, link, now_ns)
        while slot != wait.NONE:
            iovec = relay.sent_iovecs[batch]
            iovec["base"] = waiting.buf.ctypes.data + slot * waiting.buf.shape[1]
            iovec["length"] = waiting.waiters[slot]["frame_length"]
            waiting.free[first + batch] = slot
            relay.sent_links[batch] = link
            batch += 1
            if batch == SEND_BATCH:
                break
            slot = skies.next_slot(relay.weather, link, now_ns)
        _send(relay, relay.targets[link], batch)
        # Their bytes were needed until here.
        waiting.counts[wait.FREE] += batch


@kernel
def _send(relay: Relay, far: int, count: int) -> None:
    """Send a batch; a busy interface is tried again, what it refuses is counted."""
    headers = relay.sent_headers.ctypes.data
    sent = 0
    retries = 0
    while sent < count:
        # A batch that has sent something does not say why it stopped: what netem's full queue has
        # taken would be sent again.
        batch = 1 if relay.weather.netem[far] else count - sent
        status = send_batch(relay.fds[far], headers + sent * _HEADER_LENGTH, batch)
        if status > 0:
            sent += status
        elif status == -ENOBUFS and relay.weather.netem[far]:
            # The packet has gone into netem, whose full queue took it: it counts it as dropped.
            sent += 1
        elif status in (-EAGAIN, -ENOBUFS) and retries < SEND_RETRIES_MAX:
            retries += 1
            last = len(relay.fds)
            relay.pollfds[last]["fd"] = relay.fds[far] if status == -EAGAIN else -1
            wait_for(relay.pollfds[last:].ctypes.data, 1, relay.timespec, SEND_RETRY_NS)
        elif status != -EINTR:
            relay.link_counts[relay.sent_links[sent], SEND_FAILURES] += 1
            relay.counts[far, ERROR] = -status
            sent += 1


@kernel
def _note_lag(relay: Relay, link: int, lag_ns: int) -> None:
    bucket = min(max(lag_ns, 0) // LAG_BUCKET_NS, LAG_BUCKETS - 1)
    relay.lags[link, bucket] += 1
    relay.link_counts[link, LAG_MAX] = max(relay.link_counts[link, LAG_MAX], lag_ns)
