"""The way of a datagram from one host's mailbox to the other's.

    mailbox --depart--> engine --> outbox --send_out--> ports --> weather --drift--> wire --land-->

A datagram that the weather may damage carries a seal over its bytes, in place of a checksum; the
host that it reaches refuses it when the seal is broken. Knows nothing of agents and their turns.
"""

from typing import Any

from driver.base.atomics import copy, get_i64, put_i32, put_i64
from driver.channel.socket_address import V4_LENGTH
from driver.media import link
from driver.media.link import Links
from harness.kernel import bare_kernel
from harness.middlebox import engine as rules_engine
from harness.middlebox import outbox as out
from harness.middlebox import waiting as wait
from harness.middlebox import weather as skies
from harness.middlebox.outbox import Outbox
from harness.middlebox.state import Engine
from harness.middlebox.weather import Weather
from harness.simulator import event_log, flight, moved_ports, stream_audit
from harness.simulator.event_log import RECEIVED, SENT, EventLog
from harness.simulator.flight import (
    DESTINATION,
    DESTINATION_LENGTH,
    ENVELOPE_LENGTH,
    SEAL,
    SOURCE_LENGTH,
    Flight,
)
from harness.simulator.moved_ports import MovedPorts
from harness.simulator.stream_audit import Audit
from harness.simulator.world_state import DELAY, FLOODED, LONGEST, OVERFLOWS, REFUSED, UNHEARD

PACKET_HEADERS = 42
"""Ethernet, IPv4 and UDP: a rate of the weather counts them, as it does on a real link."""
_NAME = 8
"""Bytes of a name that tell an IPv4 address and port."""
_PACKET_SEAL = 2 * _NAME


@bare_kernel
def has_sent(links: Links) -> bool:
    """Whether anything lies in a host's mailboxes that wants to leave."""
    for index in range(links.mailboxes.size):
        ring = links.rings[2 * index + 1]
        if ring.head != ring.tail:
            return True
    return False


@bare_kernel
def depart(
    links: Links,
    engine: Engine,
    audit: Audit,
    events: EventLog,
    scratch: Any,
    state: Any,
    host: int,
    now_ns: int,
) -> int:
    """Take what a host has sent to the middlebox, as long as its outbox has room.

    Returns: how many datagrams; the owner empties the outbox and calls until it is none
    """
    count = 0
    buf, longest = scratch, state[LONGEST]
    for index in range(links.mailboxes.size):
        mailbox = links.mailboxes[index]
        while mailbox.is_open != 0:
            if not rules_engine.has_room(engine, ENVELOPE_LENGTH, longest):
                return count
            length, name_length = link.take(
                links, index, buf[DESTINATION:], buf, ENVELOPE_LENGTH, longest
            )
            if length == link.NOTHING:
                break
            assert length <= longest
            count += 1
            copy(buf, 0, mailbox.local, 0, mailbox.local.size)
            put_i32(buf, SOURCE_LENGTH, mailbox.local_length)
            put_i32(buf, DESTINATION_LENGTH, name_length)
            event_log.note_datagram(events, now_ns, host, SENT, buf, 0, length)
            stream_audit.on_sent(audit, host, buf, ENVELOPE_LENGTH, length)
            rules_engine.offer(engine, buf, 0, ENVELOPE_LENGTH, length, host, now_ns)
    return count


@bare_kernel
def send_out(
    outbox: Outbox,
    moved: MovedPorts,
    weather: Weather,
    there: Flight,
    back: Flight,
    packet: Any,
    state: Any,
    lost: Any,
    now_ns: int,
) -> int:
    """Send all that the middlebox lets go on its way. Returns how many datagrams."""
    count = outbox.counts[out.COUNT]
    for index in range(count):
        datagram = outbox.datagrams[index]
        direction, at, length = datagram["link"], datagram["at"], datagram["length"]
        moved_ports.set_ports(moved, outbox.buf, at, direction, datagram["source_port"])
        if skies.is_on(weather, direction):
            _into_weather(weather, packet, outbox.buf, at, length, direction, now_ns)
            continue
        wire = there if direction == 0 else back
        due_ns = now_ns + state[DELAY]
        if not flight.put(wire, due_ns, outbox.buf, at, ENVELOPE_LENGTH, length):
            lost[1 - direction, FLOODED] += 1
    out.empty(outbox)
    return int(count)


@bare_kernel
def _into_weather(
    weather: Weather, packet: Any, buf: Any, at: int, length: int, direction: int, now_ns: int
) -> None:
    """Seal a datagram and let the weather have it, as long as its packet would be."""
    copy(packet, 0, buf, at, _NAME)
    copy(packet, _NAME, buf, at + DESTINATION, _NAME)
    copy(packet, PACKET_HEADERS, buf, at + ENVELOPE_LENGTH, length)
    put_i64(packet, _PACKET_SEAL, seal(packet, PACKET_HEADERS, length))
    skies.take(weather, direction, packet, 0, PACKET_HEADERS, length, now_ns)


@bare_kernel
def drift(
    weather: Weather,
    there: Flight,
    back: Flight,
    packet: Any,
    state: Any,
    lost: Any,
    now_ns: int,
) -> int:
    """Put on the wire what the weather lets go. Returns how many datagrams."""
    count = 0
    waiting = weather.waiting
    while wait.next_due_ns(waiting) <= now_ns:
        direction = waiting.waiters[waiting.heap[0]]["link"]
        slot = skies.next_slot(weather, direction, now_ns)
        kept = waiting.buf[slot]
        length = waiting.waiters[slot]["frame_length"] - PACKET_HEADERS
        for index in range(ENVELOPE_LENGTH):
            packet[index] = 0
        copy(packet, 0, kept, 0, _NAME)
        copy(packet, DESTINATION, kept, _NAME, _NAME)
        put_i32(packet, SOURCE_LENGTH, V4_LENGTH)
        put_i32(packet, DESTINATION_LENGTH, V4_LENGTH)
        put_i64(packet, SEAL, get_i64(kept, _PACKET_SEAL))
        copy(packet, ENVELOPE_LENGTH, kept, PACKET_HEADERS, length)
        wait.give_back(waiting, slot)
        wire = there if direction == 0 else back
        if not flight.put(wire, now_ns + state[DELAY], packet, 0, ENVELOPE_LENGTH, length):
            lost[1 - direction, FLOODED] += 1
        count += 1
    return count


@bare_kernel
def seal(buf: Any, at: int, length: int) -> int:
    """A number that tells whether bytes are still the same; never 0, which is no seal."""
    return event_log.mix_bytes(length, buf, at, length) | 1


@bare_kernel
def is_whole(buf: Any, envelope: int, length: int) -> bool:
    """Whether a datagram's seal holds, if it has one."""
    stored = get_i64(buf, envelope + SEAL)
    return bool(stored == 0 or stored == seal(buf, envelope + ENVELOPE_LENGTH, length))


@bare_kernel
def land(
    wire: Flight, links: Links, audit: Audit, events: EventLog, lost: Any, host: int, now_ns: int
) -> int:
    """Deliver what has arrived at a host."""
    count = 0
    memory = wire.memory
    while True:
        at = flight.next_at(wire)
        if flight.due_ns(wire, at) > now_ns:
            return count
        count += 1
        envelope, length = flight.envelope_at(at), flight.length_of(wire, at)
        event_log.note_datagram(events, now_ns, host, RECEIVED, memory, envelope, length)
        if is_whole(memory, envelope, length):
            _deliver(links, audit, lost, memory, envelope, length, host)
        else:
            lost[host, REFUSED] += 1
        flight.take(wire, at)


@bare_kernel
def _deliver(
    links: Links, audit: Audit, lost: Any, memory: Any, envelope: int, length: int, host: int
) -> None:
    at = envelope + ENVELOPE_LENGTH
    stream_audit.on_landed(audit, host, memory, at, length)
    to = memory[envelope + DESTINATION :]
    mailbox = link.find(links, to, memory[envelope + DESTINATION_LENGTH])
    if mailbox == link.NOTHING:
        lost[host, UNHEARD] += 1
        return
    source = memory[envelope:]
    source_length = memory[envelope + SOURCE_LENGTH]
    if link.deliver(links, mailbox, source, source_length, memory, at, length) == link.NOTHING:
        lost[host, OVERFLOWS] += 1
