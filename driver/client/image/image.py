"""One session of a subscription: who sends it, how far it was read, whether it has ended.

How it is read is in `fragment_reader` and `log_reader`. What is asked of a closed image is answered
from what was true when it closed.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from windtunnel.driver.client.image.fragment_reader import FragmentReader
from windtunnel.driver.client.image.header import Header
from windtunnel.driver.logbuffer import descriptor
from windtunnel.driver.logbuffer.log_buffer import LogBuffer

if TYPE_CHECKING:
    from windtunnel.driver.client.subscription import Subscription


class Image(FragmentReader):
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
        subscription: Subscription | None = None,
    ) -> None:
        super().__init__(log, values, position_counter_id, session_id)
        self.correlation_id = correlation_id
        self.subscription = subscription
        self.subscription_registration_id = subscription_registration_id
        self.source_identity = source_identity
        """Where its publisher sends from, `address:port`; `aeron:ipc` for one of this machine."""
        self.join_position = self._position
        """Where reading began."""
        self._header = Header(self)
        self._final_position = self._final_end_of_stream = 0
        self._final_eos = self._final_revoked = False

    def _new_header(self) -> Header:
        return self._header

    @property
    def position(self) -> int:
        """How far this image was read; frozen once it is closed.

        It may be set: ahead, to where a frame begins, up to the end of the term; else ValueError.
        """
        return self._final_position if self.is_closed else self._position

    @position.setter
    def position(self, position: int) -> None:
        if not self.is_closed:
            self.check_position(position)
            self._advance(position)

    @property
    def end_of_stream_position(self) -> int:
        """Where the stream ends; the largest int64 while that is not known."""
        log = self._log
        if self.is_closed:
            return self._final_end_of_stream
        return int(descriptor.end_of_stream_position_acquire(log, self._mapped.meta_at))

    @property
    def is_end_of_stream(self) -> bool:
        """Whether everything was read and no more will come."""
        if self.is_closed:
            return self._final_eos
        return self._position >= self.end_of_stream_position

    @property
    def is_publication_revoked(self) -> bool:
        """Whether the publisher took the stream back, unread parts included."""
        log = self._log
        if self.is_closed:
            return self._final_revoked
        return bool(descriptor.is_publication_revoked(log, self._mapped.meta_at))

    @property
    def active_transport_count(self) -> int:
        """From how many addresses the stream arrives; 0 once it is closed."""
        log = self._log
        if self.is_closed:
            return 0
        return int(descriptor.active_transport_count_acquire(log, self._mapped.meta_at))

    def reject(self, reason: str) -> None:
        """Refuse the session: its publisher is told why, and it ends here some time later.

        `reason` has at most 1023 bytes. Waits for the driver's answer. Raises RegistrationError
        """
        if self.subscription is not None and not self.is_closed:
            self.subscription.reject_image(self.correlation_id, self.position, reason)

    def on_unavailable(self) -> LogBuffer:
        """For the client's conductor: no more will come. Returns the log to let go of.

        The first call counts: a later one could no longer tell an end from a break.
        """
        if not self.is_closed:
            self._final_end_of_stream = self.end_of_stream_position
            self._final_revoked = self.is_publication_revoked
            self._final_position = self._position
            self._final_eos = self._final_position >= self._final_end_of_stream
            self.is_closed = True
            self._let_go()
        return self._mapped
