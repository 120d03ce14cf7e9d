"""Recording one image: its blocks go to the segment writer, then its position to everybody.

    image --block--> SegmentWriter (write, sync) --> position counter

Whoever wants events is told of its beginning, its position after each turn, and its end. It ends
when the stream does, when the image is gone, when it is told to, or when a block cannot be
written; then everything up to `position` is in the files and nothing behind it. The order is such
that whoever sees a position in the counter can read the bytes before it. Source: archive-protocol
5.1.
"""

import traceback
from contextlib import suppress
from typing import Protocol

from windtunnel.driver.archive.recording.segment_writer import SegmentWriter
from windtunnel.driver.base.errors import DriverError, StorageError
from windtunnel.driver.client.image.image import Image

FILE_IO_MAX_LENGTH = 1 << 20


class RecordingDefect(DriverError):
    """An error that nobody foresaw ended a recording; the text says where it was met."""


class PositionCounter(Protocol):
    """What tells others how far the recording is."""

    def set(self, value: int) -> None:
        """Store with release."""


class Events(Protocol):
    """Whoever wants to hear of every recording."""

    def started(self) -> None:
        """Its first file is there."""

    def progressed(self, position: int) -> None:
        """It is that far; told after each turn."""

    def stopped(self, position: int) -> None:
        """It has ended there."""


class RecordingSession:
    """Takes one image into files, in one thread."""

    def __init__(
        self,
        image: Image,
        writer: SegmentWriter,
        counter: PositionCounter,
        io_max_length: int = FILE_IO_MAX_LENGTH,
        events: Events | None = None,
    ) -> None:
        """The writer stands where the image does."""
        assert image.position == writer.position, (image.position, writer.position)
        self._image, self._writer, self._counter = image, writer, counter
        self._block_length = min(image.term_length, io_max_length)
        self._events = events
        self.failure: DriverError | None = None
        """Why a block could not be written, or what else ended it before its time."""
        self.is_done = False
        self._is_announced = False
        counter.set(writer.position)

    @property
    def position(self) -> int:
        """Up to where it is recorded."""
        return self._writer.position

    def do_work(self) -> int:
        """Record one block. Returns how many bytes."""
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
        """End it here; may be called again."""
        if not self.is_done:
            self.is_done = True
            self._writer.close()
            self._counter.set(self._writer.position)
            if self._events is not None:
                self._events.stopped(self._writer.position)

    def fail(self, error: Exception) -> None:
        """End it here because of an error that nobody foresaw; raises none itself."""
        way = "".join(traceback.format_exception(error))
        self.failure = RecordingDefect(f"the recording has met an error: {error!r}\n{way}")
        with suppress(Exception):
            self.stop()
