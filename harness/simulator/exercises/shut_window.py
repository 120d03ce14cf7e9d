"""Exercise of a publisher that is ahead of its sender, since the receiver's window is closed."""

from __future__ import annotations

from windtunnel.driver.client.publication.publication import Publication
from windtunnel.driver.logbuffer import publication_result as result
from windtunnel.harness.dissect.driver_files import counter_key
from windtunnel.harness.dissect.frames.frames import aligned
from windtunnel.harness.dissect.frames.layout import DATA_HEADER_LENGTH
from windtunnel.harness.scenario.exercises import PORTS
from windtunnel.harness.simulator.exercises.messages import Reader, message
from windtunnel.harness.simulator.exercises.party import (
    Party,
    Site,
    connected,
    disconnected,
    image_of,
)
from windtunnel.harness.simulator.exercises.waiting import Routine, Wait, require

STREAM = 3111
(PORT,) = PORTS["shut-window"]
LENGTH = 1_000
FRAME = aligned(LENGTH + DATA_HEADER_LENGTH)
WINDOW = 16_384


def shut_window(site: Site) -> Routine[None]:
    """Publish until a receiver that does not read stops the sender, and the sender the publisher. A
    spy joins at the sender's position, and then stops the publisher itself.
    """
    near, far = site.near, site.far
    channel = f"aeron:udp?endpoint={far.address}:{PORT}"
    remote = Reader((yield from far.subscription(f"{channel}|rcv-wnd=16k", STREAM)))
    publication = yield from near.publication(f"{channel}|term-length=64k|linger=0", STREAM)
    yield connected(publication)
    yield from image_of(remote.subscription)
    count = yield from _fill(publication, 0)
    position = publication.position
    # The C driver updates it with the limit, or once per second.
    yield _reaches(near, publication, counter_key.PUBLISHER_POSITION, position)
    sent = near.value(near.counter_of(publication, counter_key.SENDER_POSITION))
    require(
        WINDOW // 2 < sent < position - WINDOW, f"a sender position behind {position}, found {sent}"
    )
    spy = Reader((yield from near.subscription(f"aeron-spy:{channel}", STREAM)))
    image = yield from image_of(spy.subscription)
    found = image.join_position
    require(found == sent, f"a spy to join at the sender's position {sent}, found {found}")
    yield from _read(remote, 0, count)
    yield from _read(spy, sent // FRAME, count)
    # Now the spy does not read, and the remote subscription does.
    last = yield from _fill(publication, count, remote)
    yield Wait(
        lambda: remote.poll() == last - count, "the messages up to the limit that a spy sets"
    )
    yield _reaches(near, publication, counter_key.SENDER_POSITION, publication.position)
    remote.subscription.close()
    yield disconnected(publication)
    require(image in spy.subscription.images, "the image of the spy to remain")
    publication.close()
    spy.subscription.close()


def _fill(publication: Publication, first: int, reader: Reader | None = None) -> Routine[int]:
    """Publish numbered messages until back pressure. Returns the number after the last one."""
    number, start = first, publication.position

    def is_full() -> bool:
        nonlocal number
        while (position := publication.offer(message(number, LENGTH))) > 0:
            number += 1
        if reader is not None:
            reader.poll()
        return (
            position == result.BACK_PRESSURED and publication.position - start > 2 * WINDOW - LENGTH
        )

    yield Wait(is_full, "a consumer that does not read to stop the publisher")
    return number


def _read(reader: Reader, first: int, end: int) -> Routine[None]:
    expected = [message(number, LENGTH) for number in range(first, end)]
    yield Wait(lambda: reader.poll() >= len(expected), f"the messages {first} to {end}")
    require(reader.take() == expected, f"the messages {first} to {end} in order")


def _reaches(near: Party, publication: Publication, type_id: int, position: int) -> Wait:
    name = counter_key.STREAM_NAMES[type_id]
    counter_id = near.counter_of(publication, type_id)
    return Wait(
        lambda: near.value(counter_id) == position,
        f"{name} to reach {position}",
        lambda: near.value(counter_id),
    )
