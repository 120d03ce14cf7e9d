"""Images. An image is the stream of one session, as a subscription reads it.

`fragment_reader` and `log_reader` implement the polls. A closed image keeps the values that its
properties had when it closed.
"""

from __future__ import annotations

from typing import Protocol

import numpy as np

from windtunnel.driver.client.image.fragment_reader import FragmentReader
from windtunnel.driver.client.image.header import Header
from windtunnel.driver.logbuffer import descriptor
from windtunnel.driver.logbuffer.log_buffer import LogBuffer


class RejectingSubscription(Protocol):
    """The interface through which an image asks its subscription to reject the image."""

    def reject_image(self, image_correlation_id: int, position: int, reason: str) -> None:
        """Send the command that rejects an image, and wait for the response."""

    def async_reject_image(self, image_correlation_id: int, position: int, reason: str) -> int:
        """Send the command that rejects an image, without waiting for the response."""


class Image(FragmentReader):
    """The stream of one session in a subscription. Only one thread at a time may poll it."""

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
        subscription: RejectingSubscription | None = None,
    ) -> None:
        super().__init__(log, values, position_counter_id, session_id)
        self.correlation_id = correlation_id
        self.subscription = subscription
        self.subscription_registration_id = subscription_registration_id
        self.source_identity = source_identity
        """The publisher's source address as `address:port`, or `aeron:ipc` for IPC."""
        self.join_position = self._state.position
        """The stream position at which the subscription began to read."""
        self._final_position = self._final_end_of_stream = 0
        self._final_eos = self._final_revoked = False

    def _new_header(self) -> Header:
        return Header(self)

    @property
    def position(self) -> int:
        """The position up to which the subscriber has read the image. It is constant once the image
        is closed.

        It may be set to the beginning of a later frame, up to the end of the term. Other values
        raise ValueError.
        """
        return self._final_position if self.is_closed else self._state.position

    @position.setter
    def position(self, position: int) -> None:
        if not self.is_closed:
            self.check_position(position)
            self._advance(position)

    @property
    def end_of_stream_position(self) -> int:
        """The position at which the stream ends, or the largest int64 while it is unknown."""
        log = self._log
        if self.is_closed:
            return self._final_end_of_stream
        return int(descriptor.end_of_stream_position_acquire(log, self._mapped.meta_at))

    @property
    def is_end_of_stream(self) -> bool:
        """Whether the whole stream has been read."""
        if self.is_closed:
            return self._final_eos
        return self._state.position >= self.end_of_stream_position

    @property
    def is_publication_revoked(self) -> bool:
        """Whether the publisher revoked the stream. If so, the image ends even if parts of it have
        not been read.
        """
        log = self._log
        if self.is_closed:
            return self._final_revoked
        return bool(descriptor.is_publication_revoked(log, self._mapped.meta_at))

    @property
    def active_transport_count(self) -> int:
        """The number of active transports: sockets that received the stream within the image
        liveness timeout. It is 0 once the image is closed.
        """
        log = self._log
        if self.is_closed:
            return 0
        return int(descriptor.active_transport_count_acquire(log, self._mapped.meta_at))

    def reject(self, reason: str) -> None:
        """Reject the image: send the reason to the publisher, and end the image after a timeout.

        `reason` has at most 1023 bytes. Waits for the driver's response. Raises RegistrationError,
        also for an image that the driver has already removed, and ClosedError if the subscription
        is closed.
        """
        if self.subscription is not None:
            self.subscription.reject_image(self.correlation_id, self.position, reason)

    def async_reject(self, reason: str) -> None:
        """Reject the image like `reject`, without waiting for the driver's response.

        An error of the driver is passed to the client's error handler.
        """
        if self.subscription is not None:
            self.subscription.async_reject_image(self.correlation_id, self.position, reason)

    def is_in(self, log: LogBuffer) -> bool:
        """Return whether the image reads from the given log."""
        return self._mapped is log

    def on_unavailable(self) -> LogBuffer:
        """Close the image. Returns the image's log for the client conductor to release.

        Called by the client conductor. Only the first call stores the final values, because a later
        call could not distinguish the end of the stream from an interruption.
        """
        if not self.is_closed:
            self._final_end_of_stream = self.end_of_stream_position
            self._final_revoked = self.is_publication_revoked
            self._final_position = self._state.position
            self._final_eos = self._final_position >= self._final_end_of_stream
            self.is_closed = True
            self._release_log()
        return self._mapped
