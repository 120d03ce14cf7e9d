"""Reading one session of a stream: a position that moves over the log as frames are polled.

The sub-pos counter is the image's own and is released once at the end of a poll, so that the driver
never takes back what a handler still looks at. A poll never crosses the end of a term.
"""

from collections.abc import Callable

import numpy as np

from driver.base.atomics import put_i64_release
from driver.cnc import counters
from driver.logbuffer import descriptor, reader
from driver.logbuffer.log_buffer import LogBuffer

FRAGMENTS_MAX = 256
"""Most fragments that one poll of an image hands out."""

BEGIN = 0x80
END = 0x40
UNFRAGMENTED = BEGIN | END


class Header:
    """What the driver wrote about one fragment; valid during the handler's call."""

    __slots__ = ("_base_position", "_fragment", "image")

    def __init__(self, image: "Image") -> None:
        self.image = image
        self._fragment: np.record = reader.fragments(1)[0]
        self._base_position = 0

    def _point_at(self, fragment: np.record, base_position: int) -> None:
        self._fragment = fragment
        self._base_position = base_position

    @property
    def position(self) -> int:
        """The stream's position behind this fragment."""
        return self._base_position + int(self._fragment["end_offset"])

    @property
    def flags(self) -> int:
        return int(self._fragment["frame_flags"])

    @property
    def session_id(self) -> int:
        return int(self._fragment["session_id"])

    @property
    def stream_id(self) -> int:
        return int(self._fragment["stream_id"])

    @property
    def term_id(self) -> int:
        return int(self._fragment["term_id"])

    @property
    def term_offset(self) -> int:
        return int(self._fragment["term_offset"])

    @property
    def reserved_value(self) -> int:
        return int(self._fragment["reserved_value"])


FragmentHandler = Callable[[memoryview, Header], None]
BlockHandler = Callable[[memoryview, int, int, int], None]


class Image:
    """One session of a subscription; polled by one thread at a time."""

    def __init__(
        self,
        log: LogBuffer,
        values: np.ndarray,
        *,
        correlation_id: int,
        session_id: int,
        subscription_registration_id: int,
        position_counter_id: int,
        source_identity: str,
    ) -> None:
        self._mapped = log
        self._log = log.log
        self._view = memoryview(log.log)
        self._values = values
        self._position_at = position_counter_id * counters.COUNTER_LENGTH
        self._fragments = reader.fragments(FRAGMENTS_MAX)
        self._header = Header(self)
        self._mask = log.term_length - 1
        self.correlation_id = correlation_id
        self.session_id = session_id
        self.subscription_registration_id = subscription_registration_id
        self.source_identity = source_identity
        self.term_length, self.mtu_length = log.term_length, log.mtu_length
        self.initial_term_id = log.initial_term_id
        self._position = int(counters.get(values, position_counter_id))
        self.join_position = self._position
        self.is_closed = False
        self._final_position = 0
        self._final_end_of_stream = 0
        self._final_eos = False

    @property
    def position(self) -> int:
        """How far this image was read; frozen once it is closed."""
        return self._final_position if self.is_closed else self._position

    @property
    def end_of_stream_position(self) -> int:
        """Where the stream ends; the largest int64 while that is not known."""
        if self.is_closed:
            return self._final_end_of_stream
        return int(descriptor.end_of_stream_position_acquire(self._log, self._mapped.meta_at))

    @property
    def is_end_of_stream(self) -> bool:
        """Whether everything was read and no more will come."""
        if self.is_closed:
            return self._final_eos
        return self._position >= self.end_of_stream_position

    def _advance(self, position: int) -> None:
        if position != self._position and not self.is_closed:
            self._position = position
            # Released after the handlers are done with the frames behind it.
            put_i64_release(self._values, self._position_at, position)

    def poll(self, handler: FragmentHandler, fragment_limit: int = 10) -> int:
        """Hand out up to `fragment_limit` data fragments. Returns how many.

        When the handler raises, the fragment that it was given counts as read.
        """
        if self.is_closed:
            return 0
        start = self._position
        offset = start & self._mask
        base_position = start - offset
        term_at = self._mapped.base(start)
        count, end = reader.poll(
            self._log,
            term_at,
            self.term_length,
            offset,
            self.term_length,
            self._fragments,
            min(fragment_limit, FRAGMENTS_MAX),
        )
        reached = base_position + int(end)
        header = self._header
        try:
            for index in range(count):
                fragment = self._fragments[index]
                header._point_at(fragment, base_position)
                at = int(fragment["at"])
                handler(self._view[at : at + int(fragment["length"])], header)
        except BaseException:
            reached = base_position + int(fragment["end_offset"])
            raise
        finally:
            self._advance(reached)
        return int(count)

    def poll_frames(
        self, handler: Callable[[int, memoryview], None], frame_limit: int = FRAGMENTS_MAX
    ) -> int:
        """Hand out whole frames as they lie in the log, header and padding frames included.

        handler(position, frame): position of the frame's first byte; a padding frame is its header
        alone. When the handler raises, the frame that it was given counts as read.
        Returns: how many frames
        """
        if self.is_closed:
            return 0
        start = self._position
        offset = start & self._mask
        count, end = reader.poll_frames(
            self._log,
            self._mapped.base(start),
            self.term_length,
            offset,
            self.term_length,
            self._fragments,
            min(frame_limit, FRAGMENTS_MAX),
        )
        base_position, reached = start - offset, start - offset + int(end)
        try:
            for index in range(count):
                fragment = self._fragments[index]
                at = int(fragment["at"]) - 32
                length = 32 if fragment["frame_type"] == 0 else 32 + int(fragment["length"])
                handler(base_position + int(fragment["term_offset"]), self._view[at : at + length])
        except BaseException:
            reached = base_position + int(fragment["end_offset"])
            raise
        finally:
            self._advance(reached)
        return int(count)

    def block_poll(self, handler: BlockHandler, block_length_limit: int) -> int:
        """Hand out one run of whole frames: handler(block, session_id, term_id, position).

        A padding frame comes alone. Returns: the bytes that were passed
        """
        if self.is_closed:
            return 0
        start = self._position
        offset = start & self._mask
        term_at = self._mapped.base(start)
        limit = min(offset + block_length_limit, self.term_length)
        end = int(reader.block(self._log, term_at, self.term_length, offset, limit))
        if end > offset:
            count = start // self.term_length
            term_id = (self.initial_term_id + count + (1 << 31)) % (1 << 32) - (1 << 31)
            try:
                handler(
                    self._view[term_at + offset : term_at + end], self.session_id, term_id, start
                )
            finally:
                self._advance(start - offset + end)
        return end - offset

    def on_unavailable(self) -> LogBuffer:
        """For the client's conductor: no more will come. Returns the log to let go of.

        The first call counts: a later one could no longer tell an end from a break.
        """
        if not self.is_closed:
            self._final_end_of_stream = self.end_of_stream_position
            self._final_position = self._position
            self._final_eos = self._final_position >= self._final_end_of_stream
            self.is_closed = True
        return self._mapped
