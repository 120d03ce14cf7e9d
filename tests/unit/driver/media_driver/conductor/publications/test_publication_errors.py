"""Error frames of receivers are reported to clients."""

from types import SimpleNamespace

import numpy as np
import pytest

from tests.naive import wire
from windtunnel.driver.base.clock import ManualClock
from windtunnel.driver.channel.socket_address import SocketAddress, write_name
from windtunnel.driver.cnc.error_log import TEXTS_PER_KIND_MAX, ErrorLog, read_errors
from windtunnel.driver.command.response import PublicationError
from windtunnel.driver.media_driver.conductor.publications.publication_errors import (
    PublicationErrors,
)
from windtunnel.driver.media_driver.sender import error_frames, sender_state

PUBLICATION = 12
HAS_TAG = 0x08


class ErrorQueue:
    """The conductor's and the sender's end of the queue of error frames."""

    def __init__(self):
        self.ring = error_frames.make_error_frames()
        self.responses, self.recorded = [], []
        self.resources = SimpleNamespace(
            sender=SimpleNamespace(error_frames=self.ring),
            clients=SimpleNamespace(transmit=self.responses.append),
            record_error=lambda code, text, kind="": self.recorded.append((code, text)),
        )
        self.errors = PublicationErrors(self.resources, {3: PUBLICATION}.get)

    def deliver(self, frame, source, slot=3, destination=-1):
        name = np.zeros(28, np.uint8)
        length = write_name(name, source)
        buf = np.frombuffer(b"\0" * 8 + frame, np.uint8).copy()
        place = error_frames.put(self.ring, buf, 8, len(frame), name, length)
        record = np.zeros(24, np.int64)
        record[:5] = sender_state.PUBLICATION_ERROR, slot, destination, place, length
        self.errors.on_event(record)
        return int(place)


def frame(text=b"not wanted", flags=HAS_TAG, tag=77, receiver_id=-9, code=13):
    return (
        wire.pack("error", 40 + len(text), 0, flags, wire.ERR, 4711, 10, receiver_id, tag, code,
                  len(text))
        + text
    )  # fmt: skip


@pytest.mark.parametrize(
    "source", [SocketAddress("127.0.0.1", 40_777), SocketAddress("fe80::1", 40_777, 2)]
)
def test_clients_get_the_source_and_reason_of_a_rejection(source):
    queue = ErrorQueue()
    queue.deliver(frame(), source, destination=5)
    assert queue.responses == [
        PublicationError(PUBLICATION, 5, 4711, 10, -9, 77, source.host, 40_777, 13, "not wanted")
    ]
    ((code, text),) = queue.recorded
    assert code is None
    assert text == (
        "onPublicationError: registrationId=12, destinationRegistrationId=5, sessionId=4711, "
        "streamId=10, receiverId=-9, groupId=77, errorCode=13, errorMessage=not wanted"
    )


@pytest.mark.parametrize("code", [13, 11, -1, 3, 1 << 30])
def test_any_code_is_passed_on(code):
    queue = ErrorQueue()
    queue.deliver(frame(code=code), SocketAddress("127.0.0.1", 1))
    assert queue.responses[0].error_code == code
    ((_, text),) = queue.recorded
    assert f"errorCode={code}," in text


def test_forged_frames_with_any_codes_and_texts_leave_room_in_the_error_log():
    queue, log = ErrorQueue(), np.zeros(1 << 16, np.uint8)
    errors = ErrorLog(log, ManualClock())
    queue.resources.record_error = errors.record
    for number in range(2_000):
        queue.deliver(frame(b"%d" % number, code=number), SocketAddress("127.0.0.1", 1))
    found = read_errors(log)
    assert sum(error.observation_count for error in found) == 2_000
    assert len(found) == TEXTS_PER_KIND_MAX + 1


def test_the_payload_is_that_of_the_reference():
    """Spec 13.5: 78 bytes for this text, the tag of a receiver without one is -1."""
    queue = ErrorQueue()
    queue.deliver(frame(flags=0, receiver_id=1), SocketAddress("127.0.0.1", 40_777))
    payload = queue.responses[0].encode()
    assert len(payload) == 78
    assert payload[32:40] == b"\xff" * 8
    assert payload[40:60] == bytes.fromhex("0100499f7f000001") + bytes(12)


def test_the_longest_text_and_any_bytes_become_text():
    queue = ErrorQueue()
    queue.deliver(frame(bytes(range(256)) * 3 + b"x" * 255), SocketAddress("127.0.0.1", 1))
    message = queue.responses[0].message
    assert message.startswith("".join(map(chr, range(128))))
    assert message.endswith("x" * 255)


def test_an_error_for_a_removed_publication_is_ignored():
    queue = ErrorQueue()
    queue.deliver(frame(), SocketAddress("127.0.0.1", 1), slot=4)
    assert queue.responses == queue.recorded == []


def test_each_slot_is_freed():
    queue = ErrorQueue()
    places = [
        queue.deliver(frame(b"%d" % number), SocketAddress("127.0.0.1", 1))
        for number in range(2 * error_frames.SLOTS)
    ]
    assert places == list(range(error_frames.SLOTS)) * 2
    assert [item.message for item in queue.responses] == [
        str(n) for n in range(2 * error_frames.SLOTS)
    ]


def test_a_frame_longer_than_a_slot_is_not_queued():
    ring, name = error_frames.make_error_frames(), np.zeros(28, np.uint8)
    buf = np.zeros(4096, np.uint8)
    room = error_frames.SLOT_LENGTH - error_frames.FRAME
    assert error_frames.put(ring, buf, 0, room + 1, name, 16) == error_frames.NO_SLOT
    assert error_frames.put(ring, buf, 0, room, name, 16) == 0
