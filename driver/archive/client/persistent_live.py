"""The live side of a persistent subscription: asked for, awaited, read, left.

Knows nothing of the recording; where the two meet is the persistent subscription's to see.
"""

from collections.abc import Callable

from windtunnel.driver.archive.client.errors import ArchiveTimeoutError
from windtunnel.driver.archive.client.persistent_setup import PersistentParams
from windtunnel.driver.base.clock import Clock
from windtunnel.driver.client import Aeron, Image, Subscription


class LiveStream:
    """A subscription to what is published now; there is none until it is asked for."""

    def __init__(
        self,
        aeron: Aeron,
        params: PersistentParams,
        clock: Clock,
        patience_ns: int,
        tell: Callable[[Exception], object],
    ) -> None:
        self._aeron, self._params, self._clock = aeron, params, clock
        self._patience_ns, self._tell = patience_ns, tell
        self._subscription: Subscription | None = None
        self._asked: int | None = None
        self._deadline_ns = 0

    @property
    def is_wanted(self) -> bool:
        """Whether it was asked for."""
        return self._asked is not None or self._subscription is not None

    def ask(self) -> None:
        """Ask for the subscription; `image` looks for it."""
        self._asked = self._aeron.async_add_subscription(
            self._params.live_channel, self._params.live_stream_id
        )

    def image(self) -> Image | None:
        """The first image, once there is one; that none comes in time is told once.

        Raises RegistrationError where the driver refuses the subscription
        """
        if self._asked is not None:
            asked, self._asked = self._asked, None
            self._subscription = self._aeron.get_subscription(asked)
            if self._subscription is None:
                self._asked = asked
                return None
            self._deadline_ns = self._clock.now_ns() + self._patience_ns
        if self._subscription is None:
            return None
        if self._subscription.images:
            return self._subscription.images[0]
        if self._deadline_ns and self._clock.now_ns() > self._deadline_ns:
            self._deadline_ns = 0
            self._tell(
                ArchiveTimeoutError(
                    f"nobody publishes on {self._params.live_channel} stream "
                    f"{self._params.live_stream_id}, or it does not arrive; waiting on"
                )
            )
        return None

    def close(self) -> None:
        """Let go of it."""
        if self._asked is not None:
            self._aeron.abandon(self._asked)
        if self._subscription is not None:
            self._subscription.close()
        self._asked = self._subscription = None
