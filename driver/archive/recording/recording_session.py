"""Records one image: writes its blocks to the segment writer, then updates the position counter.

    image --block--> SegmentWriter (write, sync) --> position counter

If recording events are enabled, they report the start, the position after each duty cycle, and the
stop. A session ends when the stream ends, when the image is closed, when it is stopped, or when a
block cannot be written; then everything up to `position` is in the files and nothing after it. The
order of writes guarantees that the bytes before a position in the counter can be read.
Source: archive-protocol 5.1.
"""

import traceback
from contextlib import suppress
from typing import Protocol

from windtunnel.driver.archive.recording.segment_writer import SegmentWriter
from windtunnel.driver.base.errors import DriverError, StorageError
from windtunnel.driver.client.image.image import Image

FILE_IO_MAX_LENGTH = 1 << 20


class RecordingDefect(DriverError):
    """An unexpected error ended a recording; the text contains the traceback."""


class PositionCounter(Protocol):
    """The counter for the recorded position."""

    def set(self, value: int) -> None:
        """Store a value with release semantics."""


class Events(Protocol):
    """Receives the events of a recording."""

    def started(self) -> None:
        """Its first segment file exists."""

    def progressed(self, position: int) -> None:
        """Its recorded position, after each duty cycle."""

    def stopped(self, position: int) -> None:
        """It stopped at this position."""


class RecordingSession:
    """Records one image into files, in one thread."""

    def __init__(
        self,
        image: Image,
        writer: SegmentWriter,
        counter: PositionCounter,
        io_max_length: int = FILE_IO_MAX_LENGTH,
        events: Events | None = None,
    ) -> None:
        """The writer's position must be that of the image."""
        assert image.position == writer.position, (image.position, writer.position)
        self._image, self._writer, self._counter = image, writer, counter
        self._block_length = min(image.term_length, io_max_length)
        self._events = events
        self.failure: DriverError | None = None
        """Why a block could not be written, or what else ended the recording prematurely."""
        self.is_done = False
        self._is_announced = False
        counter.set(writer.position)

    @property
    def position(self) -> int:
        """The recorded position."""
        return self._writer.position

    def do_work(self) -> int:
        """Record one block. Returns its length in bytes."""
        if self.is_done:
            return 0
        if not self._is_announced:
            self._is_announced = True
            if self._events is not None:
                self._events.started()
        if self._image.is_closed or self._image.is_end_of_stream:
            self.stop()
            return 0
        try:
            length = self._image.block_poll(self._on_block, self._block_length)
        except StorageError as error:
            self.failure = error
            self.stop()
            return 0
        if self._events is not None:
            self._events.progressed(self._writer.position)
        return length

    def _on_block(self, block: memoryview, session_id: int, term_id: int, position: int) -> None:
        self._writer.write(block)
        self._counter.set(self._writer.position)

    def stop(self) -> None:
        """End the recording here; may be called again."""
        if not self.is_done:
            self.is_done = True
            self._writer.close()
            self._counter.set(self._writer.position)
            if self._events is not None:
                self._events.stopped(self._writer.position)

    def fail(self, error: Exception) -> None:
        """End the recording because of an unexpected error; does not raise."""
        trace = "".join(traceback.format_exception(error))
        self.failure = RecordingDefect(f"internal error of the recording: {error!r}\n{trace}")
        with suppress(Exception):
            self.stop()
