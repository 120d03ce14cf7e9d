"""Delivers datagrams from one host's mailbox to another's, or to all members of a multicast group.

    mailbox --depart--> engine --> outbox --send_out--> ports --> impairments --> wire
            `-- to the host's own mailboxes                              --land--> mailbox

A datagram that impairments may corrupt carries a seal, a checksum of its bytes. The receiving host
rejects the datagram if the seal does not match.

A frame that was held back departs two turns after the datagram before it. If both arrived in the
same turn, no receiver would ever see a gap between swapped frames.
"""

from typing import Any

from windtunnel.driver.base.atomics import copy, get_i64, put_i32, put_i64
from windtunnel.driver.channel import socket_address
from windtunnel.driver.channel.socket_address import V4_ADDRESS, V4_LENGTH
from windtunnel.driver.kernels.jit import kernel
from windtunnel.driver.media import link
from windtunnel.driver.media.link import Links
from windtunnel.harness.middlebox.engine import engine as rules_engine
from windtunnel.harness.middlebox.engine import held_frames
from windtunnel.harness.middlebox.engine import outbox as out
from windtunnel.harness.middlebox.engine.outbox import Outbox
from windtunnel.harness.middlebox.engine.state import Engine
from windtunnel.harness.middlebox.impairment import impairment
from windtunnel.harness.middlebox.impairment.impairment import Impairments
from windtunnel.harness.simulator.audit import stream_audit
from windtunnel.harness.simulator.audit.stream_record import Audit
from windtunnel.harness.simulator.network import in_flight, port_rewriting
from windtunnel.harness.simulator.network import routes as star
from windtunnel.harness.simulator.network.in_flight import (
    DESTINATION,
    DESTINATION_LENGTH,
    ENVELOPE_LENGTH,
    IDENTIFICATION,
    SEAL,
    SOURCE_LENGTH,
    Wires,
)
from windtunnel.harness.simulator.network.port_rewriting import RewrittenPorts
from windtunnel.harness.simulator.network.routes import Routes
from windtunnel.harness.simulator.world import event_log
from windtunnel.harness.simulator.world.event_log import RECEIVED, SENT, EventLog
from windtunnel.harness.simulator.world.world_state import (
    COPIES,
    DELAY,
    LEFT_OVER,
    LEFT_OVER_LENGTH,
    LONGEST,
    OVERFLOWS,
    RECEIVED_FROM,
    REFUSED,
    STRAYS,
    TURN,
    UNBOUND,
    UNLINKED,
)

PACKET_HEADERS = 42
"""Length of the Ethernet, IPv4 and UDP headers, which count against a rate limit as on a real link.
"""
_NAME = 8
"""Number of bytes of a socket name that contain the IPv4 address and port."""
_PACKET_SEAL = 2 * _NAME
_PACKET_IDENTIFICATION = _PACKET_SEAL + 8
_TURNS_APART = 2
"""A receiver takes a datagram in one turn, and the conductor looks for gaps at the start of the
next one.
"""


@kernel
def has_sent(links: Links) -> bool:
    """Return whether any of a host's mailboxes contains datagrams to send."""
    for index in range(links.mailboxes.size):
        ring = links.rings[2 * index + 1]
        if ring.head != ring.tail:
            return True
    return False


@kernel
def depart(
    links: Links,
    engine: Engine,
    routes: Routes,
    audit: Audit,
    events: EventLog,
    scratch: Any,
    state: Any,
    ports: Any,
    lost: Any,
    host: int,
    now_ns: int,
) -> int:
    """Pass the datagrams that a host has sent to the middlebox, as long as the middlebox's outbox
    has room. Those to the host itself are delivered at once.

    Returns: number of datagrams on all links; the caller empties the outbox and repeats until it
             is 0. A datagram that must still be sent on some of its links stays in `scratch`
    """
    count = 0
    buf, longest = scratch, state[LONGEST]
    for index in range(links.mailboxes.size):
        mailbox = links.mailboxes[index]
        while mailbox.is_open != 0:
            if not rules_engine.has_room(engine, ENVELOPE_LENGTH, longest):
                return count
            if state[LEFT_OVER] == 0:
                length, name_length = link.take(
                    links, index, buf[DESTINATION:], buf, ENVELOPE_LENGTH, longest
                )
                if length == link.NOTHING:
                    break
                assert length <= longest
                copy(buf, 0, mailbox.local, 0, mailbox.local.size)
                # A mailbox that has joined a group is bound to the group's address, but sends from
                # its host's address.
                put_i32(buf, V4_ADDRESS, routes.addresses[host])
                put_i32(buf, SOURCE_LENGTH, mailbox.local_length)
                put_i32(buf, DESTINATION_LENGTH, name_length)
                if star.is_own(routes, host, buf, DESTINATION):
                    put_i32(buf, DESTINATION + V4_ADDRESS, routes.addresses[host])
                    _deliver(links, audit, lost, buf, 0, length, host)
                    continue
                put_i64(buf, IDENTIFICATION, event_log.next_identification(events))
                event_log.note_datagram(events, now_ns, host, SENT, buf, 0, length)
                stream_audit.on_sent(audit, host, buf, ENVELOPE_LENGTH, length)
                state[LEFT_OVER] = _route(routes, ports, host, buf)
                state[LEFT_OVER_LENGTH] = length
                if state[LEFT_OVER] == 0:
                    continue
            way = star.first_way(state[LEFT_OVER])
            state[LEFT_OVER] &= state[LEFT_OVER] - 1
            length = state[LEFT_OVER_LENGTH]
            rules_engine.offer(engine, buf, 0, ENVELOPE_LENGTH, length, way, now_ns)
            count += 1
    return count


@kernel
def _route(routes: Routes, ports: Any, host: int, buf: Any) -> int:
    """Return the links that a datagram takes, as a bit set, and update the packet counts of the
    sending host.
    """
    bits = star.ways(routes, host, buf, DESTINATION)
    ports[host, RECEIVED_FROM] += 1
    if bits == star.NOWHERE:
        ports[host, STRAYS] += 1
        return 0
    if bits == 0:
        ports[host, UNLINKED] += 1
    rest = bits & (bits - 1)
    while rest:
        rest &= rest - 1
        ports[host, COPIES] += 1
    return bits


@kernel
def send_out(
    outbox: Outbox,
    rewritten_ports: RewrittenPorts,
    impairments: Impairments,
    wires: Wires,
    packet: Any,
    state: Any,
    now_ns: int,
) -> int:
    """Send all datagrams in the middlebox's outbox. Returns their number."""
    count = outbox.counts[out.COUNT]
    for index in range(count):
        datagram = outbox.datagrams[index]
        direction, at, length = datagram["link"], datagram["at"], datagram["length"]
        port_rewriting.set_ports(
            rewritten_ports, outbox.buf, at, direction, datagram["source_port"]
        )
        # Forged frames have no time of arrival either, but are marked as changed.
        was_held = datagram["arrived_ns"] == 0 and datagram["is_changed"] == 0
        apart_ns = _TURNS_APART * state[TURN] if was_held else 0
        departs_ns = in_flight.depart(wires, direction, now_ns, apart_ns)
        if impairment.is_on(impairments, direction):
            _impair(impairments, packet, outbox.buf, at, length, direction, departs_ns)
            continue
        due_ns = departs_ns + state[DELAY]
        in_flight.put(wires, direction, due_ns, outbox.buf, at, ENVELOPE_LENGTH, length)
    out.empty(outbox)
    return int(count)


@kernel
def _impair(
    impairments: Impairments,
    packet: Any,
    buf: Any,
    at: int,
    length: int,
    direction: int,
    now_ns: int,
) -> None:
    """Pass a datagram to the impairments of its link direction, as a packet with headers and a
    checksum.
    """
    copy(packet, 0, buf, at, _NAME)
    copy(packet, _NAME, buf, at + DESTINATION, _NAME)
    copy(packet, PACKET_HEADERS, buf, at + ENVELOPE_LENGTH, length)
    put_i64(packet, _PACKET_SEAL, seal(packet, PACKET_HEADERS, length))
    put_i64(packet, _PACKET_IDENTIFICATION, get_i64(buf, at + IDENTIFICATION))
    impairment.apply(impairments, direction, packet, 0, PACKET_HEADERS, length, now_ns)


@kernel
def send_impaired(
    impairments: Impairments,
    wires: Wires,
    packet: Any,
    state: Any,
    now_ns: int,
) -> int:
    """Move the datagrams that have passed the impairments to their wires. Returns their number."""
    count = 0
    held = impairments.held
    while held_frames.next_due_ns(held) <= now_ns:
        direction = held.records[held.heap[0]]["link"]
        slot = impairment.next_slot(impairments, direction, now_ns)
        kept = held.buf[slot]
        length = held.records[slot]["frame_length"] - PACKET_HEADERS
        for index in range(ENVELOPE_LENGTH):
            packet[index] = 0
        copy(packet, 0, kept, 0, _NAME)
        copy(packet, DESTINATION, kept, _NAME, _NAME)
        put_i32(packet, SOURCE_LENGTH, V4_LENGTH)
        put_i32(packet, DESTINATION_LENGTH, V4_LENGTH)
        put_i64(packet, SEAL, get_i64(kept, _PACKET_SEAL))
        put_i64(packet, IDENTIFICATION, get_i64(kept, _PACKET_IDENTIFICATION))
        copy(packet, ENVELOPE_LENGTH, kept, PACKET_HEADERS, length)
        held_frames.free_slot(held, slot)
        in_flight.put(wires, direction, now_ns + state[DELAY], packet, 0, ENVELOPE_LENGTH, length)
        count += 1
    return count


@kernel
def seal(buf: Any, at: int, length: int) -> int:
    """Return a nonzero checksum of a datagram's bytes. Zero stands for no checksum."""
    return event_log.mix_bytes(length, buf, at, length) | 1


@kernel
def is_whole(buf: Any, envelope: int, length: int) -> bool:
    """Return whether a datagram's checksum is correct or absent."""
    stored = get_i64(buf, envelope + SEAL)
    return bool(stored == 0 or stored == seal(buf, envelope + ENVELOPE_LENGTH, length))


@kernel
def land(
    wires: Wires,
    way: int,
    links: Links,
    audit: Audit,
    events: EventLog,
    lost: Any,
    host: int,
    now_ns: int,
) -> int:
    """Deliver the datagrams that have arrived at a host on one link. Returns their number."""
    count = 0
    memory = wires.memory[way]
    while True:
        at = in_flight.next_at(wires, way)
        if in_flight.due_ns(wires, way, at) > now_ns:
            return count
        count += 1
        envelope, length = in_flight.envelope_at(at), in_flight.length_of(wires, way, at)
        event_log.note_datagram(events, now_ns, host, RECEIVED, memory, envelope, length)
        if is_whole(memory, envelope, length):
            _deliver(links, audit, lost, memory, envelope, length, host)
        else:
            lost[host, REFUSED] += 1
        in_flight.take(wires, way, at)


@kernel
def _deliver(
    links: Links, audit: Audit, lost: Any, memory: Any, envelope: int, length: int, host: int
) -> None:
    at = envelope + ENVELOPE_LENGTH
    stream_audit.on_landed(audit, host, memory, at, length)
    to, to_length = memory[envelope + DESTINATION :], memory[envelope + DESTINATION_LENGTH]
    source, source_length = memory[envelope:], memory[envelope + SOURCE_LENGTH]
    mailbox = link.find(links, to, to_length)
    if mailbox == link.NOTHING:
        # A host does not receive datagrams to groups that it has not joined.
        lost[host, UNBOUND] += 0 if star.is_group(to, 0) else 1
        return
    last = links.mailboxes.size if star.is_group(to, 0) else mailbox + 1
    while mailbox < last:
        box = links.mailboxes[mailbox]
        if box.is_open != 0 and socket_address.same(box.local, box.local_length, to, to_length):
            taken = link.deliver(links, mailbox, source, source_length, memory, at, length)
            lost[host, OVERFLOWS] += 1 if taken == link.NOTHING else 0
        mailbox += 1
