"""An endless stream is stopped, and the longest valid stream is not."""

import io
from dataclasses import dataclass

import pytest

from windtunnel.harness.workload import overrun_guard
from windtunnel.harness.workload.progress import Progress
from windtunnel.harness.workload.stop import SubjectError
from windtunnel.harness.workload.subscriber import Application
from windtunnel.harness.workload.tap import Tap

TOTAL_BYTES = 1_000
MESSAGE = bytes(100)
FRAME_BYTES = 192
FRAMES_AT_ONCE = 200


@dataclass
class Header:
    position: int
    session_id: int = 7
    flags: int = 0xC0


class RepeatingImage:
    """An image that delivers the same message at every poll, like one with uncleaned terms."""

    correlation_id, session_id, join_position, position = 1, 7, 4_096, 4_096

    def poll(self, handler, limit):
        for _ in range(FRAMES_AT_ONCE):
            self.position += FRAME_BYTES
            handler(memoryview(MESSAGE), Header(self.position))
        return FRAMES_AT_ONCE

    def poll_frames(self, handler, limit):
        for _ in range(FRAMES_AT_ONCE):
            self.position += FRAME_BYTES
            handler(self.position, memoryview(bytes(32) + MESSAGE))
        return FRAMES_AT_ONCE


def an_application():
    return Application(
        io.BytesIO(), io.BytesIO(), Progress(TOTAL_BYTES), times=io.BytesIO(), flip_byte=False
    )


def a_tap():
    return Tap(io.BytesIO(), TOTAL_BYTES)


def poll_for_ever(reader, image):
    while reader.poll(image):
        pass


@pytest.mark.parametrize("make", [an_application, a_tap])
def test_a_reader_that_gets_more_than_was_published_stops(make):
    reader, image = make(), RepeatingImage()
    with pytest.raises(SubjectError, match="expected at most"):
        poll_for_ever(reader, image)
    read_bytes = image.position - image.join_position
    assert 0 < read_bytes - overrun_guard.length_max(TOTAL_BYTES) <= FRAMES_AT_ONCE * FRAME_BYTES


def test_the_longest_valid_stream_is_read():
    """Messages of one byte, and as much padding."""
    image = RepeatingImage()
    image.position = image.join_position + 2 * 64 * TOTAL_BYTES
    overrun_guard.check(image, overrun_guard.length_max(TOTAL_BYTES))
