"""Exercise of a driver whose publisher is a script: late, early and last frames of its streams."""

from __future__ import annotations

from windtunnel.driver.base.system import NS_PER_MS
from windtunnel.driver.channel.socket_address import SocketAddress
from windtunnel.driver.client.image.image import Image
from windtunnel.harness.dissect.driver_files import counter_key
from windtunnel.harness.dissect.frames import layout
from windtunnel.harness.scenario.exercises import PORTS
from windtunnel.harness.simulator.exercises.messages import Reader, has_read
from windtunnel.harness.simulator.exercises.party import Party, Site, image_of
from windtunnel.harness.simulator.exercises.scripted.frames import (
    END,
    FRAME,
    MTU,
    TERM,
    ScriptedPublisher,
    kind_of,
    payload_at,
    value_of,
)
from windtunnel.harness.simulator.exercises.waiting import Routine, Wait, require

STREAM = 3901
CUBIC_STREAM = 3902
OTHER_STREAM = 3903
PORT, CUBIC_PORT, OWN_PORT = PORTS["scripted-publisher"]
UNDER_RUNS, OVER_RUNS = 12, 13
"""Ids of system counters."""
ELICITED_NS = 100 * NS_PER_MS
"""Longer than a driver takes to elicit a SETUP."""
INTERVAL_NS = 20 * NS_PER_MS
START = 3 * TERM
FIRST_WINDOW = 10 * MTU
"""First window of cc=cubic, which grows at once. Source: Aeron 1.53."""


def scripted_publisher(site: Site) -> Routine[None]:
    """Send a stream's end before its beginning, data beyond the window, heartbeats from a term that
    is over, a stream without remaining subscriptions, and a stream whose receiver controls
    congestion.
    """
    near, far = site.near, site.far
    channel = f"aeron:udp?endpoint={far.address}:{PORT}"
    reader = Reader((yield from far.subscription(channel, STREAM)))
    socket, peer = near.socket(OWN_PORT), SocketAddress(far.address, PORT)
    sessions = [ScriptedPublisher(socket, peer, STREAM, session) for session in (101, 102, 103)]
    yield from _end_before_beginning(near, sessions[0])
    yield from _beyond_the_window(far, sessions[1], reader)
    yield from _behind_the_term(far, sessions[2], reader)
    other = yield from far.subscription(channel, OTHER_STREAM)
    reader.subscription.close()
    yield from _without_subscription(near, ScriptedPublisher(socket, peer, STREAM, 105))
    other.close()
    yield from _first_window(
        far, ScriptedPublisher(socket, SocketAddress(far.address, CUBIC_PORT), CUBIC_STREAM, 104)
    )
    socket.close()


def _asks_for_setup(datagram: bytes) -> bool:
    is_status = kind_of(datagram) == layout.SM.type_code
    return is_status and bool(value_of(datagram, layout.SM, "flags") & layout.SM_FLAG_SEND_SETUP)


def _end_before_beginning(near: Party, stream: ScriptedPublisher) -> Routine[None]:
    """The heartbeat that ends an unknown stream elicits no SETUP, any other one does."""
    stream.heartbeat(0, END)
    yield near.pause(ELICITED_NS)
    found = stream.feedback()
    require(not found, f"no answer to the end of an unknown stream, found {len(found)} datagrams")
    stream.heartbeat(0)
    yield Wait(
        lambda: any(_asks_for_setup(each) for each in stream.feedback()),
        "a heartbeat of an unknown stream to elicit a SETUP",
    )


def _beyond_the_window(far: Party, stream: ScriptedPublisher, reader: Reader) -> Routine[None]:
    """Frames beyond the window are counted, and do not keep an image alive."""
    stream.setup()
    yield from image_of(reader.subscription)
    stream.data(0)
    yield has_read(reader, 1)
    require(reader.take() == [payload_at(0)], "the first message of a scripted stream")
    before, sent, due_ns = far.value(OVER_RUNS), 0, far.now_ns()

    def is_over() -> bool:
        nonlocal sent, due_ns
        if far.now_ns() >= due_ns:
            stream.data(TERM - FRAME)
            sent, due_ns = sent + 1, due_ns + INTERVAL_NS
        return not reader.subscription.images

    yield Wait(is_over, "an image that receives nothing but over-runs to end")
    counted = far.value(OVER_RUNS) - before
    require(0 < counted <= sent, f"at most {sent} over-runs, found {counted}")


def _behind_the_term(far: Party, stream: ScriptedPublisher, reader: Reader) -> Routine[None]:
    """A heartbeat more than a term behind is an under-run, one at the stream's position is not."""
    stream.setup(START)
    image = yield from image_of(reader.subscription)
    require(image.join_position == START, f"to join at {START}, found {image.join_position}")
    before = far.value(UNDER_RUNS)
    stream.heartbeat(START)
    yield far.pause(ELICITED_NS)
    found = far.value(UNDER_RUNS) - before
    require(found == 0, f"no under-run by a heartbeat that is on time, found {found}")
    stream.heartbeat(START - TERM - FRAME)
    yield Wait(
        lambda: far.value(UNDER_RUNS) == before + 1,
        "an under-run by a heartbeat more than a term behind",
        lambda: far.value(UNDER_RUNS) - before,
    )
    stream.heartbeat(START, END)
    yield Wait(lambda: not reader.subscription.images, "a scripted stream to end")


def _without_subscription(near: Party, stream: ScriptedPublisher) -> Routine[None]:
    """A stream whose subscriptions have ended elicits nothing, though its endpoint has others."""
    yield near.pause(ELICITED_NS)
    stream.heartbeat(0)
    yield near.pause(ELICITED_NS)
    found = stream.feedback()
    require(not found, f"no answer to a stream without subscription, found {len(found)} datagrams")


def _first_window(far: Party, stream: ScriptedPublisher) -> Routine[None]:
    """With cc=cubic, the window is ten packets at first, and then grows: it has never been smaller
    when a client is notified of the image.
    """
    windows: list[int] = []

    def note(image: Image) -> None:
        windows.extend(
            each.value
            for each in far.of_type(counter_key.PER_IMAGE)
            if each.label.startswith("rcv-cc-cubic-wnd")
        )

    far.on_image = note
    subscription = yield from far.subscription(
        f"aeron:udp?endpoint={stream.peer.host}:{stream.peer.port}|cc=cubic", CUBIC_STREAM
    )
    stream.setup()
    yield from image_of(subscription)
    far.on_image = lambda image: None
    require(len(windows) == 1, f"one counter of a window, found {len(windows)}")
    windows += yield Wait(lambda: _windows(stream), "a status message")
    require(min(windows) >= FIRST_WINDOW, f"windows from {FIRST_WINDOW} bytes, found {windows}")
    subscription.close()


def _windows(stream: ScriptedPublisher) -> list[int]:
    """Return the receiver windows in the status messages since the last call."""
    return [
        value_of(each, layout.SM, "receiver_window")
        for each in stream.feedback()
        if kind_of(each) == layout.SM.type_code and not _asks_for_setup(each)
    ]
