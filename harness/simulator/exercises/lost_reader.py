"""Exercise of a group of two receivers, of which one stops reading and then dies.

    limit      position of the slowest reader + window     while both are receivers
               position of the other reader + window       when the dead one has timed out

Until then the publisher is blocked. A sender that sends nothing must notice that a receiver is
gone. The publisher is at the other host, since no datagram leads from a host to itself.
"""

from __future__ import annotations

from windtunnel.harness.dissect.driver_files import counter_key
from windtunnel.harness.scenario.exercises import PORTS
from windtunnel.harness.simulator.exercises.messages import Reader, exchange, has_read, message
from windtunnel.harness.simulator.exercises.party import Site, connected, image_of
from windtunnel.harness.simulator.exercises.waiting import Routine, Wait, require

STREAM = 3151
CONTROL_PORT, *RECEIVE_PORTS = PORTS["lost-reader"]
LENGTH = 1_000
BEFORE, AFTER = 10, 200
BLOCKED_NS = 500_000_000
"""Longer than the receiver timeout of the channel: who lives but does not read stays a receiver."""


def lost_reader(site: Site) -> Routine[None]:
    """Publish to a reader and to one that stops and dies: it blocks the stream, and no longer."""
    far = site.far
    control = f"control={far.address}:{CONTROL_PORT}"
    publication = yield from far.publication(
        f"aeron:udp?control-mode=dynamic|{control}|fc=min,t:300ms|term-length=64k", STREAM
    )
    readers = []
    for party, port in zip((site.near, site.beside), RECEIVE_PORTS, strict=True):
        channel = f"aeron:udp?endpoint={party.address}:{port}|{control}|control-mode=dynamic"
        readers.append(Reader((yield from party.subscription(channel, STREAM))))
    yield connected(publication)
    for each in readers:
        yield from image_of(each.subscription)
    counter = far.counter_of(publication, counter_key.FLOW_CONTROL_RECEIVERS)
    yield Wait(lambda: far.value(counter) == 2, "two receivers", lambda: far.value(counter))
    yield from exchange(publication, readers, BEFORE, LENGTH)
    reading, lost = readers
    sent: list[bytes] = []
    accepted_ns = [far.now_ns()]

    def is_blocked() -> bool:
        content = message(100 + len(sent), LENGTH)
        if publication.offer(content) > 0:
            sent.append(content)
            accepted_ns[0] = far.now_ns()
        reading.poll()
        return far.now_ns() - accepted_ns[0] > BLOCKED_NS

    yield Wait(is_blocked, "a reader that does not read to stop the publisher")
    require(far.value(counter) == 2, f"two receivers, found {far.value(counter)}")
    count = len(reading.messages)
    require(reading.take() == sent[:count], "the messages until then in order")
    site.beside.die()
    yield has_read(reading, len(sent) - count)
    require(reading.take() == sent[count:], "the messages that waited in order")
    yield from exchange(publication, [reading], AFTER, LENGTH, first=1_000)
    require(far.value(counter) == 1, f"one receiver, found {far.value(counter)}")
    require(not lost.messages, "no message at a reader that does not read")
    publication.close()
    reading.subscription.close()
