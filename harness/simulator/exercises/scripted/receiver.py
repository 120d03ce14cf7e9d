"""Exercise of a driver whose receiver is a script: NAKs that no driver sends, and a receiver that
elicits the SETUP of a stream that has ended.
"""

from __future__ import annotations

from windtunnel.driver.base.system import NS_PER_MS
from windtunnel.driver.client.publication.publication import Publication
from windtunnel.harness.dissect.driver_files import counter_key
from windtunnel.harness.dissect.frames import layout
from windtunnel.harness.scenario.exercises import PORTS
from windtunnel.harness.simulator.exercises.messages import offer
from windtunnel.harness.simulator.exercises.party import Party, Site, connected
from windtunnel.harness.simulator.exercises.scripted.frames import (
    ScriptedReceiver,
    kind_of,
    value_of,
)
from windtunnel.harness.simulator.exercises.waiting import Routine, Wait, require

STREAM, LONG_STREAM = 3921, 3922
PORT, LONG_PORT = PORTS["scripted-receiver"]
KIB = 1_024
LENGTH = KIB - layout.DATA_HEADER_LENGTH
"""Length of a message whose frame has 1 KiB."""
SHORT = 64
WINDOW = 32 * KIB
NAK_WINDOWS = 4
"""Number of windows that a publication to a group retransmits at once. Source: Aeron 1.53."""
INITIAL_WINDOW = 128 * KIB
LONG = 640 * KIB
"""Length of a NAK that requests more than that, all of it in one term."""
SOON_NS = 50 * NS_PER_MS
"""Longer than an answer takes, and shorter than the time between two heartbeats."""
LINGER_NS = 100 * NS_PER_MS
"""Longer than a retransmit lingers: 60 ms."""
SETUP_NS = 150 * NS_PER_MS
"""Longer than the 100 ms between two SETUPs."""


def scripted_receiver(site: Site) -> Routine[None]:
    """Request parts of frames, padding and more than may be sent at once from a publication, and
    elicit a SETUP before and after its end.
    """
    near, far = site.near, site.far
    socket = far.socket(PORT)
    receiver = ScriptedReceiver(socket)
    publication = yield from near.publication(
        f"aeron:udp?endpoint={far.address}:{PORT}|term-length=64k|linger=1s", STREAM
    )
    yield Wait(receiver.poll, "a SETUP at a scripted receiver")
    receiver.status(0, WINDOW)
    yield connected(publication)
    yield from _within_frames(near, publication, receiver)
    yield from _after_the_end(near, publication, receiver)
    socket.close()
    yield from _longer_than_windows(site)


def _has_received(receiver: ScriptedReceiver, end: int) -> Wait:
    return Wait(
        lambda: receiver.poll() and receiver.end == end,
        f"the data up to {end} at a scripted receiver",
        lambda: receiver.end,
    )


def _within_frames(
    near: Party, publication: Publication, receiver: ScriptedReceiver
) -> Routine[None]:
    """A NAK for zeros within a frame causes no retransmit. One for an aborted message is answered
    by padding alone.
    """
    require(offer(publication, bytes(LENGTH)), "a message of zeros to be accepted")
    claim = publication.try_claim(LENGTH)
    require(not isinstance(claim, int), f"a claim, found {claim}")
    assert not isinstance(claim, int)
    claim.abort()
    # Shorter than the padding, so that a wrong account of it would leave room for them.
    for _ in range(2):
        require(offer(publication, bytes(SHORT)), "a message after an aborted one to be accepted")
    yield _has_received(receiver, publication.position)
    receiver.status(publication.position, WINDOW)
    receiver.forget()
    before = _resent(near)
    receiver.nak(4 * layout.DATA_HEADER_LENGTH, layout.DATA_HEADER_LENGTH)
    yield near.pause(LINGER_NS)
    found = _resent(near, before)
    require(found == (0, 0), f"no retransmit of what is no frame, found count and bytes {found}")
    yield near.pause(SOON_NS)
    receiver.nak(KIB, KIB)
    yield near.pause(SOON_NS)
    found = _resent(near, before)
    require(found == (1, KIB), f"one retransmit of {KIB} bytes, found count and bytes {found}")
    receiver.poll()
    lengths = [
        (kind_of(each), receiver.position_of(each), value_of(each, layout.DATA, "frame_length"))
        for each in receiver.frames
        if value_of(each, layout.DATA, "frame_length") > 0
    ]
    padding = (layout.PAD.type_code, KIB, KIB)
    require(lengths == [padding], f"the padding {padding} alone, found {lengths}")


def _resent(near: Party, before: tuple[int, int] = (0, 0)) -> tuple[int, int]:
    """Return how many retransmits and bytes of them there have been since `before`."""
    count = near.value(counter_key.RETRANSMITS_SENT)
    return count - before[0], near.value(counter_key.RETRANSMITTED_BYTES) - before[1]


def _after_the_end(
    near: Party, publication: Publication, receiver: ScriptedReceiver
) -> Routine[None]:
    """A publication answers an elicitation with a SETUP, but not while it lingers."""
    end = publication.position
    receiver.forget()
    receiver.status(end, WINDOW, flags=layout.SM_FLAG_SEND_SETUP)
    yield near.pause(SETUP_NS)
    receiver.poll()
    require(receiver.setup_count, "a SETUP for a receiver that elicits one")
    publication.close()
    yield Wait(lambda: receiver.poll() and receiver.is_at_end_of_stream, "the end of the stream")
    receiver.forget()
    receiver.status(end, WINDOW, flags=layout.SM_FLAG_SEND_SETUP)
    yield near.pause(2 * SETUP_NS)
    receiver.poll()
    require(receiver.frames, "a publication that lingers")
    count = receiver.setup_count
    require(count == 0, f"no SETUP of a stream that is over, found {count}")


def _longer_than_windows(site: Site) -> Routine[None]:
    """A NAK for more than a publication may send at once is answered in part."""
    near, far = site.near, site.far
    socket = far.socket(LONG_PORT)
    receiver = ScriptedReceiver(socket)
    publication = yield from near.publication(
        f"aeron:udp?control-mode=manual|term-length=1m|linger=0|fc=max|mtu={KIB}", LONG_STREAM
    )
    channel = f"aeron:udp?endpoint={far.address}:{LONG_PORT}"
    yield from near.answered(publication.async_add_destination(channel))
    yield Wait(receiver.poll, "a SETUP at a scripted receiver of a group")
    receiver.status(0, INITIAL_WINDOW)
    yield connected(publication)

    def is_sent() -> bool:
        end = receiver.end
        receiver.poll()
        if receiver.end > end:
            receiver.status(receiver.end, INITIAL_WINDOW)
        while publication.position < LONG and offer(publication, bytes(LENGTH)):
            pass
        return receiver.end == LONG

    yield Wait(is_sent, f"{LONG} bytes at a scripted receiver", lambda: receiver.end)
    receiver.forget()
    before = _resent(near)
    receiver.nak(0, LONG)
    yield near.pause(SOON_NS)
    limit = NAK_WINDOWS * INITIAL_WINDOW
    found = _resent(near, before)
    require(found == (1, limit), f"one retransmit of {limit} bytes, found count and bytes {found}")
    publication.close()
    socket.close()
