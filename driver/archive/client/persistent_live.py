"""Subscribes to the live stream for a persistent subscription.

This module does not access the recording. The persistent subscription switches between the live
stream and the recording.
"""

from collections.abc import Callable

from windtunnel.driver.archive.client.errors import ArchiveTimeoutError
from windtunnel.driver.archive.client.persistent_setup import PersistentParams
from windtunnel.driver.base.clock import Clock
from windtunnel.driver.client import Aeron, Image, RegistrationError, Subscription
from windtunnel.driver.command.command_type import ErrorCode as DriverErrorCode


class LiveStream:
    """The live stream that a persistent subscription reads. `add` subscribes to it."""

    def __init__(
        self,
        aeron: Aeron,
        params: PersistentParams,
        clock: Clock,
        timeout_ns: int,
        on_error: Callable[[Exception], object],
    ) -> None:
        self._aeron, self._params, self._clock = aeron, params, clock
        self._timeout_ns, self._on_error = timeout_ns, on_error
        self._subscription: Subscription | None = None
        self._registration_id: int | None = None
        self._deadline_ns = 0

    @property
    def is_added(self) -> bool:
        """Return whether `add` has been called and the subscription is not closed."""
        return self._registration_id is not None or self._subscription is not None

    def add(self) -> None:
        """Ask the driver to add the subscription, without waiting for the response. `image` returns
        the subscription's first image.
        """
        self._registration_id = self._aeron.async_add_subscription(
            self._params.live_channel, self._params.live_stream_id
        )

    def image(self) -> Image | None:
        """Return the live stream's first image, or None until it arrives.

        Reports an overdue image once. If the driver rejects the subscription only for now, reports
        the error, and `add` must be called again. Raises RegistrationError if it rejects it for
        good.
        """
        if self._registration_id is not None:
            registration_id, self._registration_id = self._registration_id, None
            try:
                self._subscription = self._aeron.get_subscription(registration_id)
            except RegistrationError as error:
                if error.code != DriverErrorCode.RESOURCE_TEMPORARILY_UNAVAILABLE:
                    raise
                self._on_error(error)
                return None
            if self._subscription is None:
                self._registration_id = registration_id
                return None
            self._deadline_ns = self._clock.now_ns() + self._timeout_ns
        if self._subscription is None:
            return None
        if self._subscription.images:
            return self._subscription.images[0]
        if self._deadline_ns and self._clock.now_ns() > self._deadline_ns:
            self._deadline_ns = 0
            self._on_error(
                ArchiveTimeoutError(
                    f"no image of the live stream {self._params.live_stream_id} on "
                    f"{self._params.live_channel} yet; still waiting"
                )
            )
        return None

    def close(self) -> None:
        """Close the subscription."""
        if self._registration_id is not None:
            self._aeron.abandon(self._registration_id)
        if self._subscription is not None:
            self._subscription.close()
        self._registration_id = self._subscription = None
