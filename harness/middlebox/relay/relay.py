"""The relay's main loop: receives packets, classifies and routes them, passes them through the
engine, and sends the results.

    port 0 (host a) --recvmmsg--> [a->b] engine --outbox--> sendmmsg--> port 1 (host b)
                    `-----------> [a->c] engine --outbox--> sendmmsg--> port 2 (host c)

The topology is a star: each host has its own port, and a packet from one host to another passes
through the engine with the code of that link direction. A multicast packet passes once for each
link of its sender. One thread serves all directions in batches and sleeps in ppoll when idle; it
never spins. The kernel records arrival times, so time in a receive buffer counts as lag, and delays
are measured from the true arrival.
"""

from typing import Any

from windtunnel.driver.kernels.jit import kernel
from windtunnel.harness.middlebox.engine import engine as rules_engine
from windtunnel.harness.middlebox.engine import outbox as out
from windtunnel.harness.middlebox.engine.held_frames import next_due_ns
from windtunnel.harness.middlebox.engine.packet import AERON, ALL_HOSTS, FRAGMENT, STRAY, classify
from windtunnel.harness.middlebox.engine.state import BATCH_MAX, DECISIONS, Engine
from windtunnel.harness.middlebox.relay.departure import flush, send_impaired
from windtunnel.harness.middlebox.relay.libc import (
    EAGAIN,
    EINTR,
    MSG_TRUNC,
    NS_PER_SECOND,
    realtime_ns,
    receive_batch,
    wait_for,
)
from windtunnel.harness.middlebox.relay.relay_state import (
    CONTROL_LENGTH,
    COPIES,
    ERROR,
    FOREIGN,
    FRAGMENTS,
    NO_LINK,
    OVERSIZE,
    RECEIVED,
    STRAYS,
    UNLINKED,
    Relay,
)

# Results of `run`.
TIME_OVER, DECISIONS_FULL, INTERRUPTED, DRAINED, FAILED = range(5)

_TIMESTAMP_LENGTH = 32


@kernel
def run(relay: Relay, engine: Engine, until_ns: int, draining: bool) -> int:
    """Forward packets until a given time, or until an event that Python code must handle.

    Units:   `until_ns` and all other times are wall-clock times
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
            flush(relay, engine)
            received += max(count, 0)
        now_ns = realtime_ns(relay.timespec)
        while not rules_engine.release(engine, now_ns):
            flush(relay, engine)
        flush(relay, engine)
        send_impaired(relay, now_ns)
        if now_ns >= until_ns:
            return TIME_OVER
        if received == 0:
            due_ns = min(next_due_ns(engine.held), next_due_ns(relay.impairments.held))
            if draining and engine.held.counts[0] + relay.impairments.held.counts[0] == 0:
                return DRAINED
            wait_ns = min(due_ns, until_ns) - now_ns
            status = wait_for(relay.pollfds.ctypes.data, ports, relay.timespec, max(wait_ns, 0))
            if status == -EINTR:
                return INTERRUPTED


@kernel
def _take(relay: Relay, engine: Engine, near: int, index: int) -> None:
    """Classify one received packet and forward it on each link that leads to its destination."""
    header = relay.received_headers[near, index]
    length = int(header["length"])
    arrived_ns = _arrival_ns(relay, near, index)
    truncated = header["flags"] & MSG_TRUNC
    header["control_length"] = CONTROL_LENGTH
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
        if far not in (ALL_HOSTS, other) or relay.routes[near, other] == NO_LINK:
            continue
        copies += 1
        link = relay.routes[near, other]
        _forward(
            relay, engine, kind, link, packet, length, envelope_length, frames_length, arrived_ns
        )
    if copies == 0:
        relay.counts[near, UNLINKED] += 1
    else:
        relay.counts[near, COPIES] += copies - 1


@kernel
def _forward(
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
    """Pass an Aeron packet to the engine for one link. Any other packet is queued for sending
    unchanged.
    """
    if kind == AERON:
        if not rules_engine.has_room(engine, envelope_length, frames_length):
            flush(relay, engine)
        rules_engine.offer(engine, packet, 0, envelope_length, frames_length, link, arrived_ns)
        return
    relay.link_counts[link, FOREIGN] += 1
    outbox = engine.outbox
    if not out.has_room(outbox, 1, length):
        flush(relay, engine)
    if envelope_length > 0:
        frames_at = envelope_length
        out.put(
            outbox, link, arrived_ns, packet, 0, envelope_length, packet, frames_at, frames_length
        )
    else:
        out.put_foreign(outbox, link, arrived_ns, packet, 0, length)


@kernel
def _arrival_ns(relay: Relay, near: int, index: int) -> int:
    """Return the kernel's timestamp of a packet, or the current time if the packet has none."""
    if relay.received_headers[near, index]["control_length"] < _TIMESTAMP_LENGTH:
        return realtime_ns(relay.timespec)
    control = relay.controls[near, index]
    return int(control[2]) * NS_PER_SECOND + int(control[3])
