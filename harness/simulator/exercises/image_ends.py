"""Exercises of images that end while others begin: a reader that returns, one that joins late, one
that reads slowly, and sessions that may not return.

They wait for the drivers' timers most of the time, so they are separate, and run at the same time.
"""

from __future__ import annotations

from windtunnel.driver.base.system import NS_PER_MS
from windtunnel.driver.client.image.image import Image
from windtunnel.driver.client.publication.publication import Publication
from windtunnel.harness.scenario.exercises import PORTS
from windtunnel.harness.simulator.exercises.messages import (
    Reader,
    exchange,
    has_read,
    message,
    offer,
)
from windtunnel.harness.simulator.exercises.party import (
    Party,
    Site,
    connected,
    disconnected,
    image_of,
)
from windtunnel.harness.simulator.exercises.waiting import Routine, Wait, require

STREAM, SLOW_STREAM, WAITING_STREAM, UNUSED_STREAM, CLOSED_STREAM = 3801, 3802, 3803, 3804, 3805
RETURNING_STREAM = 3806
(PORT,) = PORTS["image-ends"]
(ENDED_PORT,) = PORTS["ended-streams"]
LENGTH = 600
LAST = 20
DRAINED_NS = 4_000 * NS_PER_MS
"""Longer than an image drains and lingers: five status message timeouts, and a second."""
RETURNS_NS = 2_000 * NS_PER_MS
"""Longer than it takes to create an image again, with all timers."""
SESSION = 71


def image_ends(site: Site) -> Routine[None]:
    """Let readers come and go while a stream continues."""
    near, far = site.near, site.far
    channel = f"aeron:udp?endpoint={far.address}:{PORT}"
    # The C driver refuses a channel while it closes it, after its last subscription has gone.
    keeping = yield from far.subscription(channel, UNUSED_STREAM)
    publication = yield from near.publication(f"{channel}|term-length=64k|linger=0", STREAM)
    reader = Reader((yield from far.subscription(channel, STREAM)))
    yield connected(publication)
    yield from image_of(reader.subscription)
    yield from exchange(publication, [reader], 50, LENGTH)
    reader.subscription.close()
    reader = yield from _return(far, channel, publication)
    reader.subscription.close()
    # The last image is draining: it has signalled its end to the publisher.
    yield disconnected(publication)
    reader = yield from _return(far, channel, publication, is_steady=True)
    yield from _join_late(far, channel, publication, reader)
    publication.close()
    yield Wait(lambda: not reader.subscription.images, "the image of a closed publication to end")
    late = yield from far.subscription(channel, STREAM)
    yield far.pause(300 * NS_PER_MS)
    require(not late.images, "no image that has ended for a new subscription")
    for each in (late, reader.subscription, keeping):
        each.close()


def _return(
    far: Party, channel: str, publication: Publication, *, is_steady: bool = False
) -> Routine[Reader]:
    """Read a stream again whose last image in this driver is about to end.

    If that image has begun to drain, it is silent as soon as there is a new one (`is_steady`).
    """
    reader = Reader((yield from far.subscription(channel, STREAM)))
    image = yield from image_of(reader.subscription)
    yield connected(publication)
    yield from exchange(publication, [reader], 50, LENGTH, first=100)
    until_ns = far.now_ns() + DRAINED_NS
    yield Wait(
        lambda: far.now_ns() >= until_ns or (is_steady and not publication.is_connected),
        "the last image to end",
    )
    require(publication.is_connected, "the connection by a new image while an old one ends")
    yield from exchange(publication, [reader], 50, LENGTH, first=200)
    images = list(reader.subscription.images)
    require(images == [image], f"one image to remain, found {len(images)}")
    return reader


def _join_late(far: Party, channel: str, publication: Publication, reader: Reader) -> Routine[None]:
    """Join while another reader is behind: both read what it has not read yet."""
    first = reader.subscription.images[-1].position
    for number in range(LAST):
        require(offer(publication, message(number, LENGTH)), "a message to be accepted")
    yield far.pause(100 * NS_PER_MS)
    late = Reader((yield from far.subscription(channel, STREAM)))
    image: Image = yield from image_of(late.subscription)
    found = image.join_position
    require(found == first, f"to join at the slowest reader's position {first}, found {found}")
    other = yield from far.subscription(channel, UNUSED_STREAM)
    for each in (reader, late):
        yield has_read(each, LAST)
        each.take()
    require(not other.images, "no image of one stream for a subscription to another")
    for subscription in (late.subscription, other):
        subscription.close()


def ended_streams(site: Site) -> Routine[None]:
    """Read a stream after its end, and add a publication again while it lingers."""
    channel = f"aeron:udp?endpoint={site.far.address}:{ENDED_PORT}"
    yield from _read_slowly(site.near, site.far, channel)
    yield from _publish_again(site.near, channel)


def _read_slowly(near: Party, far: Party, channel: str) -> Routine[None]:
    """Begin to read a stream some time after its end."""
    publication = yield from near.publication(f"{channel}|term-length=64k|linger=0", SLOW_STREAM)
    slow = Reader((yield from far.subscription(channel, SLOW_STREAM)))
    yield connected(publication)
    yield from image_of(slow.subscription)
    for number in range(LAST):
        require(offer(publication, message(number, LENGTH)), "a message to be accepted")
    publication.close()
    yield far.pause(DRAINED_NS)
    yield Wait(lambda: slow.poll() == LAST, "the messages of a stream that ended some time ago")
    yield Wait(lambda: not slow.subscription.images, "the image that has been read to end")
    slow.subscription.close()


def _publish_again(near: Party, channel: str) -> Routine[None]:
    """Add a shared publication while one of its stream that has been closed lingers."""
    full = f"{channel}|term-length=64k|linger=3s"
    first = yield from near.publication(full, CLOSED_STREAM)
    first.close()
    yield near.pause(RETURNS_NS)
    second = yield from near.publication(full, CLOSED_STREAM)
    require(
        second.session_id != first.session_id,
        f"another session than {first.session_id}, which has been closed",
    )
    second.close()


def returning_session(site: Site) -> Routine[None]:
    """Without rejoin, a session returns after its end of stream."""
    near, far = site.near, site.far
    (port,) = PORTS["returning-session"]
    channel = f"aeron:udp?endpoint={far.address}:{port}"
    reader = Reader((yield from far.subscription(f"{channel}|rejoin=false", RETURNING_STREAM)))
    full = f"{channel}|session-id={SESSION}|term-length=64k|linger=0"
    for count in range(2):
        ended = yield from near.publication(full, RETURNING_STREAM, is_exclusive=True)
        yield connected(ended)
        yield from image_of(reader.subscription)
        yield from exchange(ended, [reader], 50, LENGTH, first=100 * count)
        ended.close()
        yield Wait(lambda: not reader.subscription.images, "the image of an ended stream to end")
        if count == 0:
            yield near.pause(RETURNS_NS)
    reader.subscription.close()


def cool_down(site: Site) -> Routine[None]:
    """Without rejoin, a session does not return after it timed out."""
    near, far = site.near, site.far
    (port,) = PORTS["cool-down"]
    channel = f"aeron:udp?endpoint={far.address}:{port}"
    reader = Reader((yield from far.subscription(f"{channel}|rejoin=false", WAITING_STREAM)))
    many = "aeron:udp?control-mode=manual|term-length=64k|linger=0|fc=max"
    publication = yield from near.publication(many, WAITING_STREAM)
    yield from near.answered(publication.async_add_destination(channel))
    yield connected(publication)
    yield from image_of(reader.subscription)
    yield from exchange(publication, [reader], 50, LENGTH, first=300)
    yield from near.answered(publication.async_remove_destination(channel))
    yield Wait(lambda: not reader.subscription.images, "an image without packets to time out")
    yield disconnected(publication)
    yield from near.answered(publication.async_add_destination(channel))
    yield far.pause(RETURNS_NS)
    require(not reader.subscription.images, "no image of a session that timed out, without rejoin")
    publication.close()
    reader.subscription.close()
