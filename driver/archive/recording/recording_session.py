"""Records one image: writes its blocks to segment files, then updates the position counter.

    image --block--> SegmentWriter (write, sync) --> position counter

If recording events are enabled, they report the start, the position after each duty cycle, and the
stop. A session ends when the stream ends, when the image is closed, when the session is stopped, or
when a block cannot be written. The files then contain everything up to `position` and nothing after
it. A block is written before the counter is updated, so a reader can read all bytes before the
counter's position.
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
    """An unexpected error ended a recording. The message contains the traceback."""


class PositionCounter(Protocol):
    """The interface of a counter for the recorded position."""

    def set(self, value: int) -> None:
        """Store a value with release ordering."""


class Events(Protocol):
    """The interface for receiving recording events."""

    def started(self) -> None:
        """Called before the first block is recorded. The segment file already exists."""

    def progressed(self, position: int) -> None:
        """Called after each duty cycle with the recorded position."""

    def stopped(self, position: int) -> None:
        """Called when the recording has stopped, with its stop position."""


class RecordingSession:
    """Records one image into segment files. Only one thread may use it."""

    def __init__(
        self,
        image: Image,
        writer: SegmentWriter,
        counter: PositionCounter,
        io_max_length: int = FILE_IO_MAX_LENGTH,
        events: Events | None = None,
    ) -> None:
        """Create a session. The positions of the image and of the writer must be equal."""
        assert image.position == writer.position, (image.position, writer.position)
        self._image, self._writer, self._counter = image, writer, counter
        self._block_length = min(image.term_length, io_max_length)
        self._events = events
        self.failure: DriverError | None = None
        """The error that ended the recording prematurely, or None."""
        self.is_done = False
        self._is_announced = False
        counter.set(writer.position)

    @property
    def position(self) -> int:
        """The position up to which the image has been recorded."""
        return self._writer.position

    def do_work(self) -> int:
        """Record one block. Returns the block's length in bytes."""
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
        """End the recording at the current position. Repeated calls have no effect."""
        if not self.is_done:
            self.is_done = True
            self._writer.close()
            self._counter.set(self._writer.position)
            if self._events is not None:
                self._events.stopped(self._writer.position)

    def fail(self, error: Exception) -> None:
        """End the recording after an unexpected error. Does not raise."""
        trace = "".join(traceback.format_exception(error))
        self.failure = RecordingDefect(f"internal error of the recording: {error!r}\n{trace}")
        with suppress(Exception):
            self.stop()
