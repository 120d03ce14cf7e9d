"""Sends the engine's datagrams through the relay's sockets, directly or after impairments such as
delay.

    outbox --ports, checksums--> impaired? --no---> sendmmsg, a batch for each port
                                    `--yes--> held --> sendmmsg when due

This module also records each datagram's latency since its arrival, and counts the datagrams that an
interface refuses.
"""

from windtunnel.driver.kernels.jit import kernel
from windtunnel.harness.dissect.capture.packet import matches_ports
from windtunnel.harness.dissect.frames.bytes_at import u16_be
from windtunnel.harness.middlebox.engine import held_frames
from windtunnel.harness.middlebox.engine import outbox as out
from windtunnel.harness.middlebox.engine.packet import seal, set_macs
from windtunnel.harness.middlebox.engine.readdress import set_ports
from windtunnel.harness.middlebox.engine.state import Engine
from windtunnel.harness.middlebox.impairment import impairment
from windtunnel.harness.middlebox.relay.libc import (
    EAGAIN,
    EINTR,
    ENOBUFS,
    MMSGHDR,
    realtime_ns,
    send_batch,
    wait_for,
)
from windtunnel.harness.middlebox.relay.relay_state import (
    ERROR,
    LAG_BUCKET_NS,
    LAG_BUCKETS,
    LAG_MAX,
    SEND_BATCH,
    SEND_FAILURES,
    Relay,
)

SEND_RETRY_NS = 100_000
SEND_RETRIES_MAX = 20_000
_HEADER_LENGTH = MMSGHDR.itemsize


@kernel
def flush(relay: Relay, engine: Engine) -> None:
    """Send the datagrams in the outbox or pass them to the impairments, and record their
    latencies.
    """
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
                    relay.rewritten_ports,
                    outbox.buf,
                    at,
                    envelope_length,
                    link,
                    datagram["source_port"],
                )
                is_changed |= datagram["is_changed"] != 0
                seal(outbox.buf, at, envelope_length, length, is_changed)
            if impairment.is_on(relay.impairments, link):
                _impair(relay, engine, index)
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
def _impair(relay: Relay, engine: Engine, index: int) -> None:
    """Apply the impairments of the link direction to a datagram in the outbox."""
    buf = engine.outbox.buf
    datagram = engine.outbox.datagrams[index]
    at, link, came_ns = datagram["at"], datagram["link"], datagram["arrived_ns"]
    envelope_length, length = datagram["envelope_length"], datagram["length"]
    if came_ns == 0:
        came_ns = realtime_ns(relay.timespec)
    if length:
        ports_at = at + envelope_length - 8
        source, destination = u16_be(buf, ports_at), u16_be(buf, ports_at + 2)
        if matches_ports(relay.ports, source, destination):
            impairment.apply(relay.impairments, link, buf, at, envelope_length, length, came_ns)
            return
    impairment.apply(relay.impairments, link, buf, at, envelope_length + length, 0, came_ns)


@kernel
def send_impaired(relay: Relay, now_ns: int) -> None:
    """Send all impaired packets that are due, in order and in batches per link direction."""
    held = relay.impairments.held
    while held_frames.next_due_ns(held) <= now_ns:
        link = held.records[held.heap[0]]["link"]
        first = held.counts[held_frames.FREE]
        batch = 0
        slot = impairment.next_slot(relay.impairments, link, now_ns)
        while slot != held_frames.NONE:
            iovec = relay.sent_iovecs[batch]
            iovec["base"] = held.buf.ctypes.data + slot * held.buf.shape[1]
            iovec["length"] = held.records[slot]["frame_length"]
            held.free[first + batch] = slot
            relay.sent_links[batch] = link
            batch += 1
            if batch == SEND_BATCH:
                break
            slot = impairment.next_slot(relay.impairments, link, now_ns)
        _send(relay, relay.targets[link], batch)
        # The bytes in these slots were needed until here.
        held.counts[held_frames.FREE] += batch


@kernel
def _send(relay: Relay, far: int, count: int) -> None:
    """Send a batch of packets to an interface. Retries while the interface is busy, and counts the
    packets that it refuses.
    """
    headers = relay.sent_headers.ctypes.data
    sent = 0
    retries = 0
    while sent < count:
        # A partially sent batch does not report why it stopped. A packet that netem's full queue
        # has accepted would then be sent again.
        batch = 1 if relay.impairments.netem[far] else count - sent
        status = send_batch(relay.fds[far], headers + sent * _HEADER_LENGTH, batch)
        if status > 0:
            sent += status
        elif status == -ENOBUFS and relay.impairments.netem[far]:
            # netem's full queue accepted the packet and counts it as dropped.
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
