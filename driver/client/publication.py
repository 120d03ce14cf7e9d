"""Writing to a stream: a publication that many threads share, and one that belongs to a single
thread.

An offer answers the stream's new position, or a negative code of
`driver.logbuffer.publication_result`: try again later (BACK_PRESSURED), at once (ADMIN_ACTION), or
when somebody listens (NOT_CONNECTED).
"""

from __future__ import annotations

from collections.abc import Sequence
from types import TracebackType
from typing import TYPE_CHECKING

import numpy as np

from driver.base.atomics import get_i64_acquire
from driver.base.jit import kernel
from driver.cnc import counters
from driver.logbuffer import appender, descriptor, position
from driver.logbuffer import publication_result as result
from driver.logbuffer.log_buffer import LogBuffer

if TYPE_CHECKING:
    from driver.client.conductor import ClientConductor

Message = bytes | bytearray | memoryview | np.ndarray


@kernel
def _offer(state, log, values, limit_at, source, source_at, length, reserved_value):
    limit = get_i64_acquire(values, limit_at)
    return appender.offer(state, log, limit, source, source_at, length, reserved_value)


@kernel
def _offer_vectored(state, log, values, limit_at, source, ranges, reserved_value):
    limit = get_i64_acquire(values, limit_at)
    return appender.offer_vectored(state, log, limit, source, ranges, reserved_value)


@kernel
def _claim(state, log, values, limit_at, length):
    return appender.claim(state, log, get_i64_acquire(values, limit_at), length)


def as_bytes(message: Message) -> np.ndarray:
    """Any bytes-like object as uint8[n], without copying; what is not contiguous is copied."""
    if isinstance(message, np.ndarray):
        return np.ascontiguousarray(message).reshape(-1).view(np.uint8)
    return np.frombuffer(message, dtype=np.uint8)


class Claim:
    """A frame of the log that waits for its payload.

    Commit or abort it soon: the stream stands still until then.
    """

    def __init__(self, log: np.ndarray, claim_at: int, frame_length: int) -> None:
        self._log = log
        self._claim_at = claim_at
        self.payload: memoryview = memoryview(log)[claim_at + 32 : claim_at + frame_length]
        """Where the message is written."""

    def commit(self) -> bool:
        """Let readers see it. Returns False when the driver unblocked the stream meanwhile."""
        return bool(appender.commit(self._log, self._claim_at))

    def abort(self) -> bool:
        """Give it up; readers pass over it."""
        return bool(appender.abort(self._log, self._claim_at))


class Publication:
    """One end of a stream, for writing; `is_exclusive` ones belong to one thread."""

    def __init__(
        self,
        conductor: ClientConductor,
        log: LogBuffer,
        *,
        channel: str,
        registration_id: int,
        original_registration_id: int,
        limit_counter_id: int,
        channel_status_id: int,
    ) -> None:
        self._conductor = conductor
        self._mapped = log
        # Emptied on closing, after `is_closed` is set. Whoever writes takes the log first and looks
        # at `is_closed` then: so a close by another thread never leaves a kernel without memory.
        self._log = log.log
        self._meta_at = log.meta_at
        self._appender = appender.attach(log.log, log.meta_at)
        state = self._appender[0]
        self._values = conductor.counter_values
        self._limit_at = limit_counter_id * counters.COUNTER_LENGTH
        self.channel = channel
        self.registration_id = registration_id
        self.original_registration_id = original_registration_id
        self.channel_status_id = channel_status_id
        self.session_id, self.stream_id = int(state.session_id), int(state.stream_id)
        self.initial_term_id = log.initial_term_id
        self.term_length, self.mtu_length = log.term_length, log.mtu_length
        self.max_payload_length = int(state.max_payload_length)
        self.max_message_length = int(state.max_message_length)
        self.is_exclusive = bool(state.is_exclusive)
        self.is_closed = False
        self.close_reason = ""
        """Why the client closed it, if it was not its owner."""

    def offer(
        self,
        message: Message,
        offset: int = 0,
        length: int | None = None,
        reserved_value: int = 0,
    ) -> int:
        """Write one message, in fragments if it is long.

        Shapes:  `length` bytes of `message` from `offset`; to its end where None
        Returns: the new position, or a code; ERROR for a message beyond `max_message_length`
        """
        log = self._log
        if self.is_closed:
            return result.CLOSED
        source = as_bytes(message)
        if length is None:
            length = source.size - offset
        return int(
            _offer(
                self._appender,
                log,
                self._values,
                self._limit_at,
                source,
                offset,
                length,
                reserved_value,
            )
        )

    def offer_parts(self, parts: Sequence[Message], reserved_value: int = 0) -> int:
        """Write one message that is given in parts, one after the other."""
        log = self._log
        if self.is_closed:
            return result.CLOSED
        arrays = [as_bytes(part) for part in parts]
        lengths = np.array([array.size for array in arrays], dtype=np.int64)
        source = np.concatenate(arrays) if arrays else np.empty(0, dtype=np.uint8)
        ranges = np.stack([np.cumsum(lengths) - lengths, lengths], axis=1)
        return int(
            _offer_vectored(
                self._appender,
                log,
                self._values,
                self._limit_at,
                source,
                ranges,
                reserved_value,
            )
        )

    def offer_batch(
        self, messages: np.ndarray, lengths: np.ndarray, first: int = 0
    ) -> tuple[int, int]:
        """Write many messages that lie back to back, until one is refused.

        Shapes:  messages uint8[sum(lengths[first:])], from message `first` on; lengths int64[m]
        Returns: (messages written, answer to the last offer)
        """
        log = self._log
        if self.is_closed:
            return 0, result.CLOSED
        written, answer = appender.offer_batch(
            self._appender,
            log,
            self._values,
            self._limit_at,
            messages,
            0,
            lengths,
            first,
            lengths.size - first,
        )
        return int(written), int(answer)

    def try_claim(self, length: int) -> Claim | int:
        """Claim one frame to fill in place, `length` up to `max_payload_length`, else a code."""
        log = self._log
        if self.is_closed:
            return result.CLOSED
        answer = int(_claim(self._appender, log, self._values, self._limit_at, length))
        if answer < 0:
            return answer
        state = self._appender[0]
        return Claim(log, int(state.claim_at), int(state.claim_length))

    @property
    def position(self) -> int:
        """Where the next message goes; CLOSED after close."""
        log = self._log
        if self.is_closed:
            return result.CLOSED
        return int(descriptor.producer_position(log, self._meta_at))

    @property
    def position_limit(self) -> int:
        """Up to where the driver allows writing; CLOSED after close."""
        if self.is_closed:
            return result.CLOSED
        return int(get_i64_acquire(self._values, self._limit_at))

    @property
    def max_possible_position(self) -> int:
        """Where the stream runs out of term ids."""
        return int(position.max_possible(self.term_length))

    @property
    def is_connected(self) -> bool:
        """Whether somebody listens."""
        log = self._log
        if self.is_closed:
            return False
        return bool(descriptor.is_connected_acquire(log, self._meta_at))

    def close(self) -> None:
        """Stop writing; what was written still reaches the listeners."""
        if not self.is_closed:
            self.is_closed = True
            self._conductor.release_publication(self)

    def on_client_closed(self, reason: str) -> LogBuffer:
        """For the client's conductor: the publication is over. Returns the log to let go of."""
        self.is_closed = True
        self.close_reason = reason
        self._log = np.empty(0, dtype=np.uint8)
        return self._mapped

    def __enter__(self) -> Publication:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()
