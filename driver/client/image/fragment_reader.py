"""Reading a session's fragments: plain, controlled, bounded, ahead of its time, in batches, and by
handlers that are machine code themselves.

    poll             a Python handler, a call a fragment                     400 ns a fragment
    poll_kernel      a compiled handler, called from within the walk          20 ns
    poll_batch       copied into arrays, nobody is called                     10 ns

The figures are of messages of 32 bytes that lie ready.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from windtunnel.driver.client.image import compiled_poll, fragment_batch
from windtunnel.driver.client.image.fragment_batch import FragmentBatch
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
from windtunnel.driver.logbuffer import reader
from windtunnel.driver.wire.frame_type import PAD

FragmentHandler = Callable[[memoryview, Header], object]
ControlledHandler = Callable[[memoryview, Header], Action | None]

NO_LIMIT = (1 << 63) - 1


class FragmentReader(LogReader):
    """Reads the data frames of one log, in one thread at a time."""

    def _new_header(self) -> Header:
        raise NotImplementedError

    def _walk(self, log: np.ndarray, at: int, limit: int, wanted: int) -> tuple[list[Row], int]:
        """Like `_walk_frames`, passing over padding."""
        base = at & ~self._mask
        count, end = reader.poll(
            log, self._mapped.base(at), self.term_length, at - base, limit - base, self._rows,
            min(wanted, FRAMES_PER_WALK),
        )  # fmt: skip
        return self._rows[:count].tolist(), base + int(end)

    def poll(self, handler: FragmentHandler, fragment_limit: int = 10) -> int:
        """Hand out up to `fragment_limit` data fragments. Returns how many; 0 once it is closed.

        When the handler raises, the fragment that it was given counts as read.
        """
        return self.bounded_poll(handler, NO_LIMIT, fragment_limit)

    def bounded_poll(
        self, handler: FragmentHandler, limit_position: int, fragment_limit: int = 10
    ) -> int:
        """`poll` that begins no fragment at or beyond `limit_position`."""
        log, view = self._log, self._view
        if self.is_closed:
            return 0
        at, limit = self._position, self._limit(limit_position)
        base, count, header = at & ~self._mask, 0, self._new_header()
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
                    header.point_at(row, base)
                    handler(view[row[AT] : row[AT] + row[LENGTH]], header)
                at = end
        finally:
            self._advance(at)
        return count

    def controlled_poll(self, handler: ControlledHandler, fragment_limit: int = 10) -> int:
        """`poll` whose handler says after each fragment what shall happen next, by an Action.

        Returns: how many fragments were taken; one that was answered with ABORT was not
        """
        return self.bounded_controlled_poll(handler, NO_LIMIT, fragment_limit)

    def bounded_controlled_poll(
        self, handler: ControlledHandler, limit_position: int, fragment_limit: int = 10
    ) -> int:
        """`controlled_poll` that begins no fragment at or beyond `limit_position`."""
        log, view = self._log, self._view
        if self.is_closed:
            return 0
        at, limit = self._position, self._limit(limit_position)
        base, count, header = at & ~self._mask, 0, self._new_header()
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
                    header.point_at(row, base)
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
        """Look at what lies between two positions without moving this image's own.

        `initial_position` lies between the present position and the end of its term. COMMIT means
        CONTINUE here; a fragment that was answered with ABORT does not count as seen.
        Returns: the position behind the last whole message or padding that was seen; from there the
                 next peek goes on, and there `position` may be set
        """
        log, view = self._log, self._view
        if self.is_closed:
            return initial_position
        self.check_position(initial_position)
        at, limit = initial_position, self._limit(limit_position)
        base, header, complete = self._position & ~self._mask, self._new_header(), initial_position
        while at < limit:
            rows, end = self._walk_frames(log, at, limit, FRAMES_PER_WALK)
            if end == at:
                break
            for row in rows:
                if row[FRAME_TYPE] != PAD:
                    header.point_at(row, base)
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
        """Copy data fragments behind what is in the batch, as many as it has room for.

        Returns: how many were added; 0 once it is closed. Raises ValueError for a batch that could
        not hold a single full fragment of this session
        """
        log = self._log
        if self.is_closed:
            return 0
        batch.check_room(self.mtu_length)
        at = self._position
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
        """Call a handler that numba compiled for each fragment, without leaving machine code.

        handler(buffer, offset, length, header, state) -> None or an Action
            buffer  uint8[n], the whole log; the payload is buffer[offset : offset + length]
            header  record with position, frame_flags, session_id, stream_id, term_id, term_offset,
                    reserved_value, all int64
            state   what was given here: an array, a record array, or a tuple of them
        The handler must stay within its payload: numba checks no bounds. Its first poll compiles
        the walk with the handler in it, about a second a handler and process; the GIL is not held
        while it runs. When the handler raises, the fragment that it was given counts as read.
        Returns: how many fragments were taken; 0 once it is closed
        """
        log = self._log
        if self.is_closed:
            return 0
        walk = compiled_poll.walk_for(handler)
        at = self._position
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
