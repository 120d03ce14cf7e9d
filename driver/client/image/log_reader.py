"""A moving position over the log of one session, and reading it as it lies there: frames, blocks.

    committed frames              position ->
    +------+------+------+-----+------+
    | DATA | DATA | DATA | PAD | DATA | ...
    +------+------+------+-----+------+

A walk never crosses the end of a term. The position is the reader's own; its counter is released
when the handlers are done, so that the driver never takes back what one of them still looks at. It
never moves backwards, and not at all once the reader is closed: the counter may be somebody else's
by then.

Whoever reads takes the log's array first and looks at `is_closed` then; closing lets go of the
array but never unmaps it. So a log stays mapped as long as any reader, kernel or view of it lives.
Knows nothing of messages, see `fragment_reader`.
"""

import io
import os
import weakref
from collections.abc import Callable
from pathlib import Path

import numpy as np

from windtunnel.driver.base.atomics import put_i64_release
from windtunnel.driver.client.image.header import (
    AT,
    END_OFFSET,
    FRAME_TYPE,
    LENGTH,
    TERM_OFFSET,
    Row,
)
from windtunnel.driver.cnc import counters
from windtunnel.driver.logbuffer import position as positions
from windtunnel.driver.logbuffer import reader
from windtunnel.driver.logbuffer.log_buffer import LogBuffer
from windtunnel.driver.wire.data import ALIGNMENT, HEADER_LENGTH
from windtunnel.driver.wire.frame_type import PAD

FRAMES_PER_WALK = 256
"""How many frames one walk of the kernel describes; a poll of more takes several walks."""

FrameHandler = Callable[[int, memoryview], object]
BlockHandler = Callable[[memoryview, int, int, int], object]
RawBlockHandler = Callable[[io.FileIO, int, int, int, int], object]


class LogReader:
    """Reads one log, in one thread at a time."""

    def __init__(
        self, log: LogBuffer, values: np.ndarray, position_counter_id: int, session_id: int
    ) -> None:
        self._mapped = log
        self._log = log.log
        self._view = memoryview(log.log)
        self._values = values
        self._position_at = position_counter_id * counters.COUNTER_LENGTH
        self._position = int(counters.get(values, position_counter_id))
        self._rows = reader.fragments(FRAMES_PER_WALK)
        self._mask = log.term_length - 1
        self._file: io.FileIO | None = None
        self.session_id = session_id
        self.term_length, self.mtu_length = log.term_length, log.mtu_length
        self.initial_term_id = log.initial_term_id
        self.position_bits_to_shift = log.bits
        self.subscriber_position_id = position_counter_id
        self.is_closed = False

    def _walk_frames(
        self, log: np.ndarray, at: int, limit: int, wanted: int
    ) -> tuple[list[Row], int]:
        """Describe frames between two positions of one term: (rows, position behind the last)."""
        base = at & ~self._mask
        count, end = reader.poll_frames(
            log, self._mapped.base(at), self.term_length, at - base, limit - base, self._rows,
            min(wanted, FRAMES_PER_WALK),
        )  # fmt: skip
        return self._rows[:count].tolist(), base + int(end)

    def _limit(self, limit_position: int) -> int:
        """Where a walk from the present position ends at the latest."""
        return min((self._position | self._mask) + 1, limit_position)

    def _advance(self, position: int) -> None:
        if position > self._position and not self.is_closed:
            self._position = position
            # Released after the handlers are done with the frames behind it.
            put_i64_release(self._values, self._position_at, position)

    def check_position(self, position: int) -> None:
        """Raise ValueError unless the reader may move there: ahead, in this term, to a frame."""
        limit = (self._position | self._mask) + 1
        if not self._position <= position <= limit:
            raise ValueError(
                f"position {position}: expected one from {self._position} to {limit}, "
                "where the term ends"
            )
        if position % ALIGNMENT:
            raise ValueError(f"position {position}: expected a multiple of {ALIGNMENT}")

    def poll_frames(self, handler: FrameHandler, frame_limit: int = FRAMES_PER_WALK) -> int:
        """Hand out whole frames as they lie in the log, header and padding frames included.

        handler(position, frame): position of the frame's first byte; a padding frame is its header
        alone. When the handler raises, the frame that it was given counts as read.
        Returns: how many frames, at most FRAMES_PER_WALK; 0 once it is closed
        """
        log, view = self._log, self._view
        if self.is_closed:
            return 0
        at, count = self._position, 0
        base = at & ~self._mask
        try:
            for row in self._walk_frames(log, at, base + self.term_length, frame_limit)[0]:
                if self.is_closed:
                    break
                at = base + row[END_OFFSET]
                count += 1
                begin = row[AT] - HEADER_LENGTH
                end = row[AT] if row[FRAME_TYPE] == PAD else row[AT] + row[LENGTH]
                handler(base + row[TERM_OFFSET], view[begin:end])
        finally:
            self._advance(at)
        return count

    def _block(self, log: np.ndarray, block_length_limit: int) -> tuple[int, int, int]:
        """The next run of whole frames: (where in the log, its length, its term id)."""
        at, offset = self._position, self._position & self._mask
        base = self._mapped.base(at)
        limit = min(offset + block_length_limit, self.term_length)
        end = int(reader.block(log, base, self.term_length, offset, limit))
        term_id = int(positions.term_id(at, self.position_bits_to_shift, self.initial_term_id))
        return base + offset, end - offset, term_id

    def block_poll(self, handler: BlockHandler, block_length_limit: int) -> int:
        """Hand out one run of whole frames: handler(block, session_id, term_id, position).

        A padding frame comes alone. Returns: the bytes that were passed; 0 once it is closed
        """
        log, view = self._log, self._view
        if self.is_closed:
            return 0
        at, length, term_id = self._block(log, block_length_limit)
        if length > 0:
            start = self._position
            try:
                handler(view[at : at + length], self.session_id, term_id, start)
            finally:
                self._advance(start + length)
        return length

    def raw_poll(self, handler: RawBlockHandler, block_length_limit: int) -> int:
        """`block_poll` that tells where in the log's file the run lies, as `os.sendfile` wants it.

        handler(file, file_offset, length, session_id, term_id): the file is open for reading as
        long as somebody holds it. Returns: the bytes that were passed; 0 once it is closed
        """
        log = self._log
        if self.is_closed:
            return 0
        at, length, term_id = self._block(log, block_length_limit)
        if length > 0:
            start, file = self._position, self._file
            if file is None:
                file = self._file = _opened(self._mapped.path)
            try:
                handler(file, at, length, self.session_id, term_id)
            finally:
                self._advance(start + length)
        return length

    def _let_go(self) -> None:
        """The reader is closed: nothing of the log is reachable through it from now on."""
        self._log = np.empty(0, dtype=np.uint8)
        self._view = memoryview(b"")
        self._file = None


def _opened(path: Path) -> io.FileIO:
    """A file for reading whose descriptor lives as long as the object.

    Nobody closes it by hand: the handler that was given it may be in the middle of a call, and a
    descriptor that is closed may be another file's the moment after.
    """
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    file = io.FileIO(descriptor, closefd=False)
    weakref.finalize(file, os.close, descriptor)
    return file
