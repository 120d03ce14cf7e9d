"""Records every frame of a stream, including padding, through a second subscription (the tap).

It reads the frames in the image's log, while the application's subscription reassembles messages.
"""

import struct
import time
import zlib
from collections.abc import Callable
from typing import BinaryIO

from windtunnel.driver.client.image.image import Image
from windtunnel.harness.artifact.host.frame_seen import FRAME_SEEN, HEADER_LENGTH
from windtunnel.harness.workload import overrun_guard

FRAME_LIMIT = 256
PAD_TYPE = 0
TYPE_AT = 6

_RECORD = struct.Struct("<q32sIq")
assert _RECORD.size == FRAME_SEEN.itemsize


class Tap:
    """Writes the headers of an image's frames, and checksums of their payloads, to a file."""

    def __init__(
        self, frames: BinaryIO, total_bytes: int, clock_ns: Callable[[], int] = time.time_ns
    ) -> None:
        """Create a tap for a stream whose messages have `total_bytes` in total."""
        self._frames = frames
        self._length_bytes_max = overrun_guard.length_max(total_bytes)
        self._clock_ns = clock_ns
        self._now_ns = 0
        self.frame_count = 0

    def poll(self, image: Image) -> int:
        """Record the available frames. Returns the number of frames. Raises SubjectError if there
        are more than the stream can contain.
        """
        overrun_guard.check(image, self._length_bytes_max)
        self._now_ns = self._clock_ns()
        return image.poll_frames(self._on_frame, FRAME_LIMIT)

    def _on_frame(self, position: int, frame: memoryview) -> None:
        is_pad = frame[TYPE_AT] == PAD_TYPE and frame[TYPE_AT + 1] == 0
        crc32 = 0 if is_pad else zlib.crc32(frame[HEADER_LENGTH:])
        header = frame[:HEADER_LENGTH].tobytes()
        self._frames.write(_RECORD.pack(position, header, crc32, self._now_ns))
        self.frame_count += 1
