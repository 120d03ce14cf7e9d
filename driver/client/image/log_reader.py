"""Reads frames and blocks from a log, and updates the subscriber position counter.

    committed frames              position ->
    +------+------+------+-----+------+
    | DATA | DATA | DATA | PAD | DATA | ...
    +------+------+------+-----+------+

A poll never crosses the end of a term. The position counter is stored after the handlers return, so
the driver never reuses memory that a handler is still reading. The position never decreases and
does not change once the reader is closed, because the driver may have reused the counter.

Every method loads the log's array first and checks `is_closed` afterwards. Closing releases the
array but never unmaps it. A log therefore stays mapped while a reader, compiled kernel or view uses
it. `fragment_reader` reads messages.
"""

import io
import os
import weakref
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

import numpy as np

from windtunnel.driver.base.atomics import put_i64_release
from windtunnel.driver.client.compiled_loops import BLOCK_READER, Blocks
from windtunnel.driver.client.image.fragment_handlers import (
    BlockHandler,
    FrameHandler,
    RawBlockHandler,
)
from windtunnel.driver.client.image.header import (
    AT,
    END_OFFSET,
    FRAME_TYPE,
    LENGTH,
    TERM_OFFSET,
    Row,
)
from windtunnel.driver.client.image.native_poll import ReaderState
from windtunnel.driver.cnc import counters
from windtunnel.driver.logbuffer import position as positions
from windtunnel.driver.logbuffer import reader
from windtunnel.driver.logbuffer.log_buffer import LogBuffer
from windtunnel.driver.wire.data import ALIGNMENT, HEADER_LENGTH
from windtunnel.driver.wire.frame_type import PAD

_Result = TypeVar("_Result")

FRAMES_PER_WALK = 256
"""Maximum number of frames that one call of the compiled loop describes. A longer poll makes
several calls."""


class LogReader:
    """Reads frames and blocks from a log buffer. Only one thread at a time may use the reader."""

    def __init__(
        self, log: LogBuffer, values: np.ndarray, position_counter_id: int, session_id: int
    ) -> None:
        self._mapped = log
        self._log = log.log
        self._view = memoryview(log.log)
        self._values = values
        self._position_at = position_counter_id * counters.COUNTER_LENGTH
        self._state = ReaderState(log, self._view, values, self._position_at)
        self._state.position = int(counters.get(values, position_counter_id))
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
        self, log: np.ndarray, at: int, limit: int, frame_limit: int
    ) -> tuple[list[Row], int]:
        """Return the fields of the next frames, and the position after the last frame."""
        base = at & ~self._mask
        count, end = reader.poll_frames(
            log, self._mapped.base(at), self.term_length, at - base, limit - base, self._rows,
            min(frame_limit, FRAMES_PER_WALK),
        )  # fmt: skip
        return self._rows[:count].tolist(), base + int(end)

    def _limit(self, limit_position: int) -> int:
        """Return the position at which a poll must end: the end of the current term, or
        `limit_position` if it is lower.
        """
        return min((self._state.position | self._mask) + 1, limit_position)

    def _advance(self, position: int) -> None:
        if position > self._state.position and not self.is_closed:
            self._state.position = position
            # Use release order, because the handlers have finished with the frames before this
            # position.
            put_i64_release(self._values, self._position_at, position)

    def check_position(self, position: int) -> None:
        """Raise ValueError unless a position is aligned to a frame and lies between the current
        position and the end of the term.
        """
        reached = self._state.position
        limit = (reached | self._mask) + 1
        if not reached <= position <= limit:
            raise ValueError(
                f"position {position}: expected {reached} to {limit}, the end of the term"
            )
        if position % ALIGNMENT:
            raise ValueError(f"position {position}: expected a multiple of {ALIGNMENT}")

    def poll_frames(self, handler: FrameHandler, frame_limit: int = FRAMES_PER_WALK) -> int:
        """Call handler(position, frame) for each frame, including padding frames. `frame` contains
        the header and the payload.

        `position` is the position of the frame's first byte. For a padding frame, only the header
        is passed. If the handler raises, its frame counts as consumed.
        Returns: the number of frames, at most FRAMES_PER_WALK, or 0 if the reader is closed
        """
        log, view = self._log, self._view
        if self.is_closed:
            return 0
        at, count = self._state.position, 0
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
        """Return the log offset, the length and the term id of the next block of whole frames."""
        at = self._state.position
        offset = at & self._mask
        base = self._mapped.base(at)
        limit = min(offset + block_length_limit, self.term_length)
        end = int(reader.block(log, base, self.term_length, offset, limit))
        term_id = int(positions.term_id(at, self.position_bits_to_shift, self.initial_term_id))
        return base + offset, end - offset, term_id

    def block_poll(self, handler: BlockHandler, block_length_limit: int) -> int:
        """Call handler(block, session_id, term_id, position) for a block of whole frames.

        A padding frame is a separate block.
        Returns: the number of consumed bytes, or 0 if the reader is closed
        """
        log, view = self._log, self._view
        if self.is_closed:
            return 0
        at, length, term_id = self._block(log, block_length_limit)
        if length > 0:
            start = self._state.position
            try:
                handler(view[at : at + length], self.session_id, term_id, start)
            finally:
                self._advance(start + length)
        return length

    def run_loop(self, loop: Callable[..., _Result], *arguments: object) -> _Result | None:
        """Call loop(blocks, *arguments), a compiled function that reads any number of blocks (see
        `compiled_loops`), without the GIL if it was compiled with `nogil`.

        A loop should return within milliseconds, because it does not notice that the reader is
        closed. If it raises, the blocks that it consumed remain consumed.
        Returns: the result of the loop, or None if the reader is closed
        """
        log = self._log
        if self.is_closed:
            return None
        state = np.zeros(1, BLOCK_READER)
        state[0] = (
            self._state.position, self.term_length, self.position_bits_to_shift, self._position_at,
        )  # fmt: skip
        try:
            return loop(Blocks(state, log, self._values), *arguments)
        finally:
            self._advance(int(state[0].position))

    def raw_poll(self, handler: RawBlockHandler, block_length_limit: int) -> int:
        """Call handler(file, file_offset, length, session_id, term_id) for a block of whole frames.

        The arguments suit `os.sendfile`. The file stays open for reading while a reference to it
        exists.
        Returns: the number of consumed bytes, or 0 if the reader is closed
        """
        log = self._log
        if self.is_closed:
            return 0
        at, length, term_id = self._block(log, block_length_limit)
        if length > 0:
            start, file = self._state.position, self._file
            if file is None:
                file = self._file = _opened(self._mapped.path)
            try:
                handler(file, at, length, self.session_id, term_id)
            finally:
                self._advance(start + length)
        return length

    def _release_log(self) -> None:
        """Drop the references to the log when the reader is closed."""
        self._log = np.empty(0, dtype=np.uint8)
        self._view = memoryview(b"")
        self._state.close()
        self._file = None


def _opened(path: Path) -> io.FileIO:
    """Open a file for reading. The descriptor is closed when the returned object is
    garbage-collected.

    It is not closed explicitly, because a handler may still use it, and the system could reuse a
    closed descriptor for another file.
    """
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    file = io.FileIO(descriptor, closefd=False)
    weakref.finalize(file, os.close, descriptor)
    return file
