"""Concurrent publications. Several threads and clients may write to the stream of one publication.

An offer returns the new stream position, or a negative code from
`driver.logbuffer.publication_result`. Retry BACK_PRESSURED later, ADMIN_ACTION immediately, and
NOT_CONNECTED when a subscriber is connected. CLOSED and MAX_POSITION_EXCEEDED are permanent.

Every method loads the log's array first and checks `is_closed` afterwards. Closing releases the
array but never unmaps it. A running compiled kernel is therefore safe if another thread closes the
publication.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from operator import index
from typing import Protocol, TypeVar

import numpy as np

from windtunnel.driver.base.atomics import get_i64_acquire
from windtunnel.driver.client import channel_status
from windtunnel.driver.client.compiled_loops import PublicationLog
from windtunnel.driver.client.conductor_protocol import Conductor
from windtunnel.driver.client.destinations import SendDestinations
from windtunnel.driver.client.publication import native_offer, supplied_offer
from windtunnel.driver.client.publication.claim import Claim, claim_frame
from windtunnel.driver.client.publication.message import (
    Message,
    as_bytes,
    as_integer,
    as_lengths,
    as_writable_bytes,
)
from windtunnel.driver.client.publication.supplied_offer import ReservedValueSupplier
from windtunnel.driver.client.stored_kernels import load_stored
from windtunnel.driver.cnc import counters
from windtunnel.driver.kernels.jit import kernel
from windtunnel.driver.kernels.python_method import replace_methods, restore_methods
from windtunnel.driver.logbuffer import appender, descriptor, position
from windtunnel.driver.logbuffer import publication_result as result
from windtunnel.driver.logbuffer.log_buffer import LogBuffer
from windtunnel.driver.wire.data import HEADER_LENGTH

_Result = TypeVar("_Result")


@kernel
def _offer(state, log, values, limit_at, source, source_at, length, reserved_value):
    limit = get_i64_acquire(values, limit_at)
    return appender.offer(state, log, limit, source, source_at, length, reserved_value)


@kernel
def _offer_vectored(state, log, values, limit_at, source, ranges, reserved_value):
    limit = get_i64_acquire(values, limit_at)
    return appender.offer_vectored(state, log, limit, source, ranges, reserved_value)


_NATIVE = {"offer": native_offer.offer}
"""The methods that have an equivalent in machine code."""


class PublicationConductor(Conductor, Protocol):
    """The client conductor's interface for publications."""

    def release_publication(self, publication: Publication, *, revoke: bool = False) -> None:
        """Close the publication and remove it from the driver."""


class Publication(SendDestinations):
    """Writes to a stream. Several threads may use it at the same time."""

    _conductor: PublicationConductor

    def __init__(
        self,
        conductor: PublicationConductor,
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
        self._log = log.log
        self._meta_at = log.meta_at
        self._appender = appender.attach(log.log, log.meta_at)
        state = self._appender[0]
        self._values = conductor.counter_values
        self._limit_at = limit_counter_id * counters.COUNTER_LENGTH
        self._native_state = native_offer.OfferState(
            self._log, self._appender, self._values, self._limit_at, self._offer_in_python
        )
        self.channel = channel
        self.registration_id = registration_id
        """The correlation id of the command with which this client added the publication."""
        self.original_registration_id = original_registration_id
        """The correlation id of the command that created the stream, possibly sent by another
        client."""
        self.position_limit_id = limit_counter_id
        self.channel_status_id = channel_status_id
        self.session_id, self.stream_id = int(state.session_id), int(state.stream_id)
        self.initial_term_id = log.initial_term_id
        self.position_bits_to_shift = log.bits
        self.term_length, self.mtu_length = log.term_length, log.mtu_length
        self.max_payload_length = int(state.max_payload_length)
        """The maximum length in bytes of an unfragmented message or of a claim."""
        self.max_message_length = int(state.max_message_length)
        self.is_exclusive = bool(state.is_exclusive)
        self.is_closed = False
        self.close_reason = ""
        """The reason why the publication was closed, or empty while it is open."""
        load_stored(_offer)
        self._replace_offer(is_compiled=False)

    @property
    def is_original(self) -> bool:
        """Whether this publication created the stream, rather than sharing an existing stream."""
        return self.registration_id == self.original_registration_id

    def offer(
        self,
        message: Message,
        offset: int = 0,
        length: int | None = None,
        reserved_value: int | ReservedValueSupplier = 0,
    ) -> int:
        """Write a message, in fragments if it is longer than `max_payload_length`.

        Shapes:  `length` bytes of `message` from `offset`, or up to the end if None
        Returns: the new position, or a code, which is ERROR for a message longer than
                 `max_message_length` as soon as another one could be written. If `reserved_value`
                 is a function, it is called for each frame (see `supplied_offer`)
        """
        if not self.is_closed and "offer" not in vars(self):
            self._replace_offer(is_compiled=True)
        return self._offer_in_python(message, offset, length, reserved_value)

    def _replace_offer(self, *, is_compiled: bool) -> None:
        """Replace `offer` of this object by the same function in machine code."""
        replace_methods(self, Publication, _NATIVE, self._native_state, is_compiled=is_compiled)
        # Another thread may have closed the publication during the compilation.
        if self.is_closed:
            restore_methods(self, _NATIVE)

    def _offer_in_python(
        self,
        message: Message,
        offset: int = 0,
        length: int | None = None,
        reserved_value: int | ReservedValueSupplier = 0,
    ) -> int:
        """Write a message like `offer`, in Python."""
        log = self._log
        if self.is_closed:
            return result.CLOSED
        source, offset = as_bytes(message), as_integer(offset)
        length = source.size - offset if length is None else as_integer(length)
        if callable(reserved_value):
            if offset < 0 or length < 0 or offset + length > source.size:
                return result.ERROR
            return supplied_offer.offer(
                self._appender, log, self._values, self._limit_at,
                source[offset : offset + length], reserved_value,
            )  # fmt: skip
        return int(
            _offer(
                self._appender, log, self._values, self._limit_at, source, offset, length,
                as_integer(reserved_value),
            )
        )  # fmt: skip

    def offer_parts(
        self, parts: Sequence[Message], reserved_value: int | ReservedValueSupplier = 0
    ) -> int:
        """Write a message that is given in several consecutive parts. Returns the same results as
        `offer`.
        """
        log = self._log
        if self.is_closed:
            return result.CLOSED
        arrays = [as_bytes(part) for part in parts]
        lengths = np.array([array.size for array in arrays], dtype=np.int64)
        source = np.concatenate(arrays) if arrays else np.empty(0, dtype=np.uint8)
        if callable(reserved_value):
            return supplied_offer.offer(
                self._appender, log, self._values, self._limit_at, source, reserved_value
            )
        ranges = np.stack([np.cumsum(lengths) - lengths, lengths], axis=1)
        return int(
            _offer_vectored(
                self._appender, log, self._values, self._limit_at, source, ranges,
                as_integer(reserved_value),
            )
        )  # fmt: skip

    def offer_batch(
        self, messages: np.ndarray, lengths: np.ndarray, first: int = 0
    ) -> tuple[int, int]:
        """Write messages that are contiguous in one array, until an offer fails.

        Shapes:  messages uint8[sum(lengths[first:])], from message `first` on; lengths int64[m]
        Returns: (number of messages written, result of the last offer)
        """
        log = self._log
        if self.is_closed:
            return 0, result.CLOSED
        source, counts, first = as_writable_bytes(messages), as_lengths(lengths), as_integer(first)
        written, outcome = appender.offer_batch(
            self._appender, log, self._values, self._limit_at, source, 0, counts, first,
            counts.size - first,
        )  # fmt: skip
        return int(written), int(outcome)

    def run_loop(self, loop: Callable[..., _Result], *arguments: object) -> _Result | None:
        """Call loop(publication, *arguments), a compiled function that writes any number of
        messages (see `compiled_loops`), without the GIL if it was compiled with `nogil`.

        A loop should return within milliseconds, because it does not notice that the publication is
        closed.
        Returns: the result of the loop, or None if the publication is closed
        """
        log = self._log
        if self.is_closed:
            return None
        made = PublicationLog(self._appender, log, self._values, self._limit_at)
        return loop(made, *arguments)

    def try_claim(self, length: int) -> Claim | int:
        """Claim a frame for a payload of `length` bytes, at most `max_payload_length`.

        Returns the claim, or a negative code, which is ERROR for any other length.
        """
        length = int(index(length))
        if not 0 <= length <= self.max_payload_length:
            return result.ERROR
        log = self._log
        if self.is_closed:
            return result.CLOSED
        outcome, at = claim_frame(self._appender, log, self._values, self._limit_at, length)
        if outcome < 0:
            return int(outcome)
        return Claim(log, int(at), length + HEADER_LENGTH, int(outcome))

    @property
    def position(self) -> int:
        """The position of the next message, or CLOSED once the publication is closed."""
        log = self._log
        if self.is_closed:
            return result.CLOSED
        return int(descriptor.producer_position(log, self._meta_at))

    @property
    def position_limit(self) -> int:
        """The position up to which the driver allows writing, or CLOSED once the publication is
        closed.
        """
        if self.is_closed:
            return result.CLOSED
        return int(get_i64_acquire(self._values, self._limit_at))

    @property
    def available_window(self) -> int:
        """The number of bytes that can be written now, or CLOSED once the publication is closed."""
        limit, tail_position = self.position_limit, self.position
        return result.CLOSED if self.is_closed else limit - tail_position

    @property
    def max_possible_position(self) -> int:
        """The highest position that the stream can reach: the end of its last term."""
        return int(position.max_possible(self.term_length))

    @property
    def is_connected(self) -> bool:
        """Whether the stream has a connected subscriber."""
        log = self._log
        if self.is_closed:
            return False
        return bool(descriptor.is_connected_acquire(log, self._meta_at))

    @property
    def channel_status(self) -> int:
        """The status of the channel's socket (see `windtunnel.driver.client.channel_status`)."""
        return channel_status.status(self._conductor.counters, self)

    @property
    def local_socket_addresses(self) -> list[str]:
        """The local addresses of the publication as `address:port`. The list is empty until they
        are known.
        """
        return channel_status.local_addresses(self._conductor.counters, self)

    def close(self) -> None:
        """Close the publication. The driver still delivers the messages that were written.

        Closing it again has no effect. Raises ReentrantCallError if a handler of the client
        conductor calls it.
        """
        if not self.is_closed:
            self._conductor.release_publication(self)

    def is_in(self, log: LogBuffer) -> bool:
        """Return whether the publication writes to the given log."""
        return self._mapped is log

    def on_client_closed(self, reason: str) -> LogBuffer:
        """Close the publication. Returns its log for the client conductor to release."""
        self.is_closed = True
        self.close_reason = reason
        self._log = np.empty(0, dtype=np.uint8)
        self._native_state.close()
        restore_methods(self, _NATIVE)
        return self._mapped

    def __enter__(self) -> Publication:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
