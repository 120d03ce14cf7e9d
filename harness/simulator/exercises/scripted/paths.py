"""Exercise of a subscription with two destinations, whose publishers are a script: one path lags,
one ends first, and one is removed.
"""

from __future__ import annotations

from collections.abc import Callable

from windtunnel.driver.base.system import NS_PER_MS
from windtunnel.driver.channel.socket_address import SocketAddress
from windtunnel.driver.client.image.image import Image
from windtunnel.harness.dissect.frames import layout
from windtunnel.harness.scenario.exercises import PORTS
from windtunnel.harness.simulator.exercises.messages import Reader, has_read
from windtunnel.harness.simulator.exercises.party import Party, Site, image_of
from windtunnel.harness.simulator.exercises.scripted.frames import (
    END,
    FRAME,
    ScriptedPublisher,
    kind_of,
    payload_at,
)
from windtunnel.harness.simulator.exercises.waiting import Routine, Wait, require

STREAM = 3911
PORTS_OF_PATHS = PORTS["scripted-paths"][:2]
OWN_PORTS = PORTS["scripted-paths"][2:]
LAG = 16 * FRAME
"""How far the later path is behind: more than receivers are with their status messages, a quarter
of the window, and less than the window."""
INTERVAL_NS = 20 * NS_PER_MS
LATE_NS = 900 * NS_PER_MS
"""Longer than the scenario's image liveness timeout and the time between two status messages."""
SOON_NS = 100 * NS_PER_MS
"""Less than the time between two status messages."""


def scripted_paths(site: Site) -> Routine[None]:
    """Receive a stream at two destinations: the later path counts as active while it is late by
    less than the window, and the stream ends when it has ended on both.
    """
    near, far = site.near, site.far
    reader = Reader((yield from far.subscription("aeron:udp?control-mode=manual", STREAM)))
    destinations = [f"aeron:udp?endpoint={far.address}:{port}" for port in PORTS_OF_PATHS]
    for each in destinations:
        yield from far.answered(reader.subscription.async_add_destination(each))
    sockets = [near.socket(port) for port in OWN_PORTS]
    peers = [SocketAddress(far.address, port) for port in PORTS_OF_PATHS]

    def paths(session: int) -> list[ScriptedPublisher]:
        return [
            ScriptedPublisher(socket, peer, STREAM, session)
            for socket, peer in zip(sockets, peers, strict=True)
        ]

    yield from _one_is_late(far, reader, paths(201))
    yield from _one_is_removed(far, reader, paths(202), destinations[1])
    reader.subscription.close()
    for socket in sockets:
        socket.close()


def _begin(reader: Reader, paths: list[ScriptedPublisher]) -> Routine[Image]:
    for each in paths:
        each.setup()
    image = yield from image_of(reader.subscription)
    for position in range(0, LAG, FRAME):
        for each in paths:
            each.data(position)
    yield has_read(reader, LAG // FRAME)
    reader.take()
    yield _active(image, 2)
    for each in paths:
        yield _acknowledged(each)
    return image


def _acknowledged(path: ScriptedPublisher) -> Wait:
    return Wait(
        lambda: any(kind_of(each) == layout.SM.type_code for each in path.feedback()),
        "a status message on each path of a stream that rests",
    )


def _active(image: Image, count: int) -> Wait:
    return Wait(
        lambda: image.active_transport_count == count,
        f"{count} active transports of an image",
        lambda: image.active_transport_count,
    )


def _one_is_late(far: Party, reader: Reader, paths: list[ScriptedPublisher]) -> Routine[None]:
    leading, late = paths
    image = yield from _begin(reader, paths)
    position = yield from _continue(far, reader, leading, LAG, lambda at: late.data(at - LAG))
    found = image.active_transport_count
    require(found == 2, f"late data to keep the second of two paths active, found {found} paths")
    position = yield from _continue(
        far, reader, leading, position, lambda at: late.heartbeat(at - LAG)
    )
    found = image.active_transport_count
    require(found == 2, f"late heartbeats to keep the second path active, found {found} paths")
    leading.heartbeat(position, END)
    yield far.pause(SOON_NS)
    end = image.end_of_stream_position
    require(end > position, f"no end of a stream that has ended on one of two paths, found {end}")
    require(image in reader.subscription.images, "the image of a stream on the other path")
    late.heartbeat(position, END)
    yield Wait(lambda: image.is_end_of_stream, "the end of a stream that has ended on both paths")
    yield Wait(lambda: not reader.subscription.images, "its image to end")


def _continue(
    far: Party,
    reader: Reader,
    leading: ScriptedPublisher,
    position: int,
    follow: Callable[[int], None],
) -> Routine[int]:
    """Send and read messages on the leading path for some time, and something on the other one
    after each of them. Returns the position after them.
    """
    until_ns = far.now_ns() + LATE_NS
    while far.now_ns() < until_ns:
        leading.data(position)
        yield has_read(reader, 1)
        require(reader.take() == [payload_at(position)], f"the message at {position}")
        position += FRAME
        follow(position)
        yield far.pause(INTERVAL_NS)
    return position


def _one_is_removed(
    far: Party, reader: Reader, paths: list[ScriptedPublisher], destination: str
) -> Routine[None]:
    """Remove a destination just after a status message: it is inactive before the next one."""
    image = yield from _begin(reader, paths)
    paths[0].feedback()
    yield _acknowledged(paths[0])
    for each in paths:
        each.heartbeat(LAG)
    yield from far.answered(reader.subscription.async_remove_destination(destination))
    yield far.pause(SOON_NS // 2)
    found = image.active_transport_count
    require(found == 1, f"one active transport after the other one was removed, found {found}")
    paths[0].heartbeat(LAG, END)
    yield Wait(lambda: not reader.subscription.images, "a stream on the path that remains to end")
