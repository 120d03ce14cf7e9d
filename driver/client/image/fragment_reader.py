"""Reads a session's fragments through Python handlers, through compiled handlers, or in batches.

    poll             calls a Python handler for each fragment       30 ns per fragment
    poll_kernel      calls a handler compiled by numba               20 ns
    poll_batch       copies into arrays, calls no handler            10 ns

The times are for messages of 32 bytes that are already in the log. `poll` and `controlled_poll` run
in machine code where that is available (see `native_poll`). In Python they take 400 ns per
fragment.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from windtunnel.driver.client.image import compiled_poll, fragment_batch, native_poll
from windtunnel.driver.client.image.fragment_batch import FragmentBatch
from windtunnel.driver.client.image.fragment_handlers import ControlledHandler, FragmentHandler
from windtunnel.driver.client.image.header import (
    AT,
    END,
    END_OFFSET,
    FRAME_TYPE,
    LENGTH,
    TERM_OFFSET,
    Row,
)
from windtunnel.driver.client.image.header import Action as Action
from windtunnel.driver.client.image.header import Header as Header
from windtunnel.driver.client.image.log_reader import FRAMES_PER_WALK, LogReader
from windtunnel.driver.client.image.native_poll import NO_LIMIT, ReaderState
from windtunnel.driver.kernels.python_method import replace_methods, restore_methods
from windtunnel.driver.logbuffer import reader
from windtunnel.driver.logbuffer.log_buffer import LogBuffer
from windtunnel.driver.wire.frame_type import PAD

_NATIVE = {"poll": native_poll.poll, "controlled_poll": native_poll.controlled_poll}
"""The methods that have an equivalent in machine code."""


class FragmentReader(LogReader):
    """Reads the data frames of a log. Only one thread at a time may use it."""

    def __init__(
        self, log: LogBuffer, values: np.ndarray, position_counter_id: int, session_id: int
    ) -> None:
        super().__init__(log, values, position_counter_id, session_id)
        self._header = self._new_header()
        self._state.use(self._header, self._poll_in_python, self._controlled_poll_in_python)
        self._replace_polls(is_compiled=False)

    def _new_header(self) -> Header:
        raise NotImplementedError

    def _replace_polls(self, *, is_compiled: bool) -> None:
        """Replace polls of this object by the same functions in machine code."""
        replace_methods(self, FragmentReader, _NATIVE, self._state, is_compiled=is_compiled)
        # Another thread may have closed the reader during the compilation.
        if self.is_closed:
            restore_methods(self, _NATIVE)

    def _release_log(self) -> None:
        super()._release_log()
        restore_methods(self, _NATIVE)

    @property
    def native_state(self) -> ReaderState | None:
        """The state for native polls, or None if this object's polls are not native."""
        return self._state if vars(self).keys() >= _NATIVE.keys() else None

    def _walk(
        self, log: np.ndarray, at: int, limit: int, frame_limit: int
    ) -> tuple[list[Row], int]:
        """Return the fields of the next data frames, and the position after the last frame. Skips
        padding frames, unlike `_walk_frames`.
        """
        base = at & ~self._mask
        count, end = reader.poll(
            log, self._mapped.base(at), self.term_length, at - base, limit - base, self._rows,
            min(frame_limit, FRAMES_PER_WALK),
        )  # fmt: skip
        return self._rows[:count].tolist(), base + int(end)

    def poll(self, handler: FragmentHandler, fragment_limit: int = 10) -> int:
        """Call `handler` for up to `fragment_limit` data fragments.

        Returns the number of fragments, or 0 if the image is closed. If the handler raises, its
        fragment counts as consumed.
        """
        if not self.is_closed and "poll" not in vars(self):
            self._replace_polls(is_compiled=True)
        return self._poll_in_python(handler, fragment_limit)

    def _poll_in_python(self, handler: FragmentHandler, fragment_limit: int = 10) -> int:
        return self.bounded_poll(handler, NO_LIMIT, fragment_limit)

    def bounded_poll(
        self, handler: FragmentHandler, limit_position: int, fragment_limit: int = 10
    ) -> int:
        """Poll like `poll`, but read only fragments that start before `limit_position`."""
        log, view = self._log, self._view
        if self.is_closed:
            return 0
        at, limit = self._state.position, self._limit(limit_position)
        base, count, header = at & ~self._mask, 0, self._header
        try:
            while count < fragment_limit and at < limit:
                rows, end = self._walk(log, at, limit, fragment_limit - count)
                if end == at:
                    break
                for row in rows:
                    if self.is_closed:
                        return count
                    at = base + row[END_OFFSET]
                    count += 1
                    header.wrap(row, base)
                    handler(view[row[AT] : row[AT] + row[LENGTH]], header)
                at = end
        finally:
            self._advance(at)
        return count

    def controlled_poll(self, handler: ControlledHandler, fragment_limit: int = 10) -> int:
        """Poll like `poll`, but with a handler that returns an Action for each fragment.

        Returns the number of consumed fragments. A fragment with ABORT is not consumed.
        """
        if not self.is_closed and "controlled_poll" not in vars(self):
            self._replace_polls(is_compiled=True)
        return self._controlled_poll_in_python(handler, fragment_limit)

    def _controlled_poll_in_python(
        self, handler: ControlledHandler, fragment_limit: int = 10
    ) -> int:
        return self.bounded_controlled_poll(handler, NO_LIMIT, fragment_limit)

    def bounded_controlled_poll(
        self, handler: ControlledHandler, limit_position: int, fragment_limit: int = 10
    ) -> int:
        """Poll like `controlled_poll`, but read only fragments before `limit_position`."""
        log, view = self._log, self._view
        if self.is_closed:
            return 0
        at, limit = self._state.position, self._limit(limit_position)
        base, count, header = at & ~self._mask, 0, self._header
        try:
            while count < fragment_limit and at < limit:
                rows, end = self._walk(log, at, limit, fragment_limit - count)
                if end == at:
                    break
                for row in rows:
                    if self.is_closed:
                        return count
                    at = base + row[END_OFFSET]
                    count += 1
                    header.wrap(row, base)
                    action = handler(view[row[AT] : row[AT] + row[LENGTH]], header)
                    if action == Action.ABORT:
                        at = base + row[TERM_OFFSET]
                        return count - 1
                    if action == Action.BREAK:
                        return count
                    if action == Action.COMMIT:
                        self._advance(at)
                at = end
        finally:
            self._advance(at)
        return count

    def controlled_peek(
        self, initial_position: int, handler: ControlledHandler, limit_position: int = NO_LIMIT
    ) -> int:
        """Call `handler` for fragments without changing the image's position.

        `initial_position` must be between the current position and the end of its term. COMMIT acts
        like CONTINUE. A fragment with ABORT does not count as read. Returns the position after the
        last complete message or padding frame that was read. The next peek can start there, and
        `position` may be set to it.
        """
        log, view = self._log, self._view
        if self.is_closed:
            return initial_position
        self.check_position(initial_position)
        at, limit = initial_position, self._limit(limit_position)
        base, header = self._state.position & ~self._mask, self._header
        complete = initial_position
        while at < limit:
            rows, end = self._walk_frames(log, at, limit, FRAMES_PER_WALK)
            if end == at:
                break
            for row in rows:
                if row[FRAME_TYPE] != PAD:
                    header.wrap(row, base)
                    action = handler(view[row[AT] : row[AT] + row[LENGTH]], header)
                    if action == Action.ABORT:
                        return complete
                    if header.flags & END:
                        complete = base + row[END_OFFSET]
                    if action == Action.BREAK or self.is_closed:
                        return complete
                else:
                    complete = base + row[END_OFFSET]
            at = end
        return complete

    def poll_batch(self, batch: FragmentBatch, fragment_limit: int = NO_LIMIT) -> int:
        """Append copies of the next fragments to the batch until it is full.

        Returns the number of added fragments, or 0 if the image is closed. Raises ValueError if the
        batch is too small for a full fragment of this session.
        """
        log = self._log
        if self.is_closed:
            return 0
        batch.check_room(self.mtu_length)
        at = self._state.position
        base = at & ~self._mask
        added, end = fragment_batch.collect(
            log, self._mapped.base(at), self.term_length, at - base, base, batch.state,
            batch.fragments, batch.payload, fragment_limit,
        )  # fmt: skip
        self._advance(base + int(end))
        return int(added)

    def poll_kernel(
        self, handler: Callable[..., Any], state: Any, fragment_limit: int = NO_LIMIT
    ) -> int:
        """Call a handler compiled by numba for each fragment, without Python calls between them.

        handler(buffer, offset, length, header, state) -> None or an Action
            buffer  uint8[n], the whole log; the payload is buffer[offset : offset + length]
            header  record with position, frame_flags, session_id, stream_id, term_id, term_offset,
                    reserved_value, all int64
            state   the argument `state`: an array, a record array, or a tuple of them

        The handler must not access bytes outside the payload, because numba checks no bounds. The
        first poll with a handler compiles the loop, which takes about a second per handler and
        process. The GIL is released during the poll. If the handler raises, its fragment counts as
        consumed.

        Returns the number of consumed fragments, or 0 if the image is closed.
        """
        log = self._log
        if self.is_closed:
            return 0
        walk = compiled_poll.walk_of(handler)
        at = self._state.position
        base, header = at & ~self._mask, compiled_poll.make_header(at)
        count = 0
        try:
            count = walk(
                handler, log, self._mapped.base(at), self.term_length, at - base, base, header,
                state, fragment_limit,
            )  # fmt: skip
        finally:
            self._advance(int(header[0]["next_position"]))
        return int(count)
