"""Exercise of spies, which read a publication on its own host."""

from __future__ import annotations

from windtunnel.driver.base.system import NS_PER_MS
from windtunnel.driver.client.publication.publication import Publication
from windtunnel.harness.dissect.driver_files import counter_key
from windtunnel.harness.scenario.exercises import PORTS
from windtunnel.harness.simulator.exercises.messages import Reader, exchange, message, offer
from windtunnel.harness.simulator.exercises.party import (
    Party,
    Site,
    connected,
    image_of,
    limit_at,
)
from windtunnel.harness.simulator.exercises.waiting import Routine, Wait, require

STREAM, SIMULATED_STREAM = 3101, 3102
(PORT,) = PORTS["spies"]
LENGTH = 1_300
LAST = 5
"""Number of messages that a spy has not read when its publication is closed."""
UPDATED_NS = 10 * NS_PER_MS
"""Time in which a driver has updated the limits of its publications."""
COUNT = 300
"""Number of messages: more than three terms, so that their positions wrap around the log."""


def spies(site: Site) -> Routine[None]:
    """Read a stream with a spy and a remote subscription, then with a spy alone."""
    near, far = site.near, site.far
    channel = f"aeron:udp?endpoint={far.address}:{PORT}"
    publication = yield from near.publication(f"{channel}|term-length=64k|linger=0", STREAM)
    spy = Reader((yield from near.subscription(f"aeron-spy:{channel}", STREAM)))
    yield from image_of(spy.subscription)
    require(not publication.is_connected, "no connection by a spy alone")
    yield near.pause(UPDATED_NS)
    yield limit_at(near, publication, publication.position)
    remote = Reader((yield from far.subscription(f"{channel}|rcv-wnd=16k", STREAM)))
    yield connected(publication)
    yield from image_of(remote.subscription)
    yield from exchange(publication, [spy, remote], COUNT, LENGTH)
    _require_channel(near, spy)
    image = spy.subscription.images[-1]
    for number in range(LAST):
        require(offer(publication, message(number, LENGTH)), "one of the last messages")
    publication.close()
    yield Wait(lambda: remote.poll() == LAST, "the last messages at the remote subscription")
    yield Wait(lambda: not remote.subscription.images, "the end of the stream at it")
    yield Wait(lambda: spy.poll() == LAST, "the last messages at a spy that is behind")
    yield Wait(lambda: image.is_end_of_stream, "the end of the stream at a spy")
    yield Wait(lambda: not spy.subscription.images, "the image of a spy to become unavailable")
    remote.subscription.close()
    spy.subscription.close()
    yield from _simulated(near, channel)


def _require_channel(near: Party, spy: Reader) -> None:
    """Require that the counter of a spy's position names the spy's channel."""
    wanted = spy.subscription.registration_id
    positions = near.of_type(counter_key.SUBSCRIBER_POSITION)
    labels = [each.label for each in positions if each.registration_id == wanted]
    require(
        labels and all(spy.subscription.channel in each for each in labels),
        f"a counter of {spy.subscription.channel}, found {labels}",
    )


def _simulated(near: Party, channel: str) -> Routine[None]:
    """Publish to spies alone, which simulate a connection."""
    simulating = f"{channel}|term-length=64k|ssc=true|linger=0"
    publication = yield from near.publication(simulating, SIMULATED_STREAM)
    first = Reader((yield from near.subscription(f"aeron-spy:{channel}", SIMULATED_STREAM)))
    yield connected(publication)
    second = Reader((yield from near.subscription(f"aeron-spy:{channel}", SIMULATED_STREAM)))
    yield from image_of(second.subscription)
    yield from exchange(publication, [first, second], COUNT, LENGTH)
    yield from _leave(near, publication, first, second)
    yield from exchange(publication, [second], 50, LENGTH)
    second.subscription.close()
    yield Wait(
        lambda: not publication.is_connected, "no connection after the last spy has been closed"
    )
    publication.close()


def _leave(near: Party, publication: Publication, first: Reader, second: Reader) -> Routine[None]:
    """Let the faster one of two spies leave: the sender's position stays where it led it."""
    for number in range(LAST):
        require(offer(publication, message(number, LENGTH)), "a message to be accepted")
    yield Wait(lambda: first.poll() == LAST, "the messages at the faster spy")
    end = publication.position
    sender = near.counter_of(publication, counter_key.SENDER_POSITION)
    yield Wait(lambda: near.value(sender) == end, f"a sender position of {end}")
    first.subscription.close()
    yield near.pause(1_500 * NS_PER_MS)
    found = near.value(sender)
    require(found == end, f"a sender position of {end} without the faster spy, found {found}")
    yield Wait(lambda: second.poll() == LAST, "the messages at the slower spy")
    second.take()
