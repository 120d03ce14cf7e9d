"""Exercise of images that a subscriber rejects, of a UDP and of an IPC stream."""

from __future__ import annotations

from windtunnel.harness.scenario.exercises import PORTS
from windtunnel.harness.simulator.exercises.messages import Reader, exchange
from windtunnel.harness.simulator.exercises.party import (
    Party,
    Site,
    connected,
    disconnected,
    image_of,
)
from windtunnel.harness.simulator.exercises.waiting import Routine, Wait, require

STREAM, IPC_STREAM = 3401, 3402
(PORT,) = PORTS["image-rejection"]
LENGTH = 700
REASON = "the reader has seen enough"
ERROR_FRAMES_RECEIVED, ERROR_FRAMES_SENT, IMAGES_REJECTED = 38, 39, 42


def image_rejection(site: Site) -> Routine[None]:
    """Reject an image in the middle of its stream: its publisher learns the reason, and its
    position stays.
    """
    near, far = site.near, site.far
    channel = f"aeron:udp?endpoint={far.address}:{PORT}"
    publication = yield from near.publication(f"{channel}|term-length=64k|linger=0", STREAM)
    reader = Reader((yield from far.subscription(f"{channel}|rcv-wnd=32k", STREAM)))
    yield connected(publication)
    image = yield from image_of(reader.subscription)
    yield from exchange(publication, [reader], 60, LENGTH)
    before = _values(near, far)
    image.async_reject(REASON)
    yield Wait(lambda: near.rejections, "the publisher to learn of the rejection")
    found = near.rejections[0]
    require(found.message == REASON, f"the reason {REASON!r}, found {found.message!r}")
    ids = found.registration_id, found.session_id, found.stream_id
    expected = publication.registration_id, publication.session_id, STREAM
    require(ids == expected, f"registration, session and stream {expected}, found {ids}")
    yield Wait(lambda: not reader.subscription.images, "a rejected image to become unavailable")
    yield disconnected(publication)
    after = _values(near, far)
    require(after[0] == before[0] + 1, f"one rejected image, found {after[0] - before[0]}")
    sent, received = (after[index] - before[index] for index in (1, 2))
    require(sent >= received >= 1, f"error frames sent and received, found {sent}, {received}")
    publication.close()
    reader.subscription.close()
    yield from _ipc(near)


def _values(near: Party, far: Party) -> tuple[int, int, int]:
    return (
        far.value(IMAGES_REJECTED),
        far.value(ERROR_FRAMES_SENT),
        near.value(ERROR_FRAMES_RECEIVED),
    )


def _ipc(near: Party) -> Routine[None]:
    publication = yield from near.publication("aeron:ipc?term-length=64k", IPC_STREAM)
    reader = Reader((yield from near.subscription("aeron:ipc", IPC_STREAM)))
    image = yield from image_of(reader.subscription)
    yield from exchange(publication, [reader], 60, LENGTH)
    count, rejected = len(near.rejections), near.value(IMAGES_REJECTED)
    image.async_reject(REASON)
    yield Wait(lambda: len(near.rejections) > count, "the rejection of an IPC image")
    require(near.rejections[-1].message == REASON, "the reason of the rejection")
    require(near.value(IMAGES_REJECTED) == rejected + 1, "one more rejected image")
    publication.close()
    reader.subscription.close()
