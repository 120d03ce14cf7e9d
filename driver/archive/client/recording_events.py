"""What an archive tells everybody about its recordings, where that is enabled.

    started    an image is being recorded, from its join position on
    progress   how far it is; only the newest is worth anything, so some are left out
    stopped    where it ended

The start position is always where the image joined: for a recording that was extended it is the
join, not the beginning. Source: archive-protocol 5.9.
"""

from collections.abc import Callable
from dataclasses import dataclass

from windtunnel.driver.archive.client.response_reader import ResponseReader
from windtunnel.driver.archive.protocol.responses import (
    RecordingProgress,
    RecordingStarted,
    RecordingStopped,
)
from windtunnel.driver.client import Subscription


@dataclass(frozen=True, kw_only=True)
class RecordingEventHandlers:
    """Who is told what; None: nobody."""

    on_started: Callable[[RecordingStarted], object] | None = None
    on_progress: Callable[[RecordingProgress], object] | None = None
    on_stopped: Callable[[RecordingStopped], object] | None = None


class RecordingEvents:
    """The events of one subscription; polled by one thread at a time."""

    def __init__(self, subscription: Subscription, handlers: RecordingEventHandlers) -> None:
        self._reader = ResponseReader(subscription)
        self._handlers = handlers

    @property
    def subscription(self) -> Subscription:
        """Where the events come from."""
        return self._reader.subscription

    def poll(self, limit: int = 10) -> int:
        """Hand out up to `limit` events. Returns how many."""
        handlers, count = self._handlers, 0
        while count < limit and (message := self._reader.next()) is not None:
            if isinstance(message, RecordingStarted):
                _tell(handlers.on_started, message)
            elif isinstance(message, RecordingProgress):
                _tell(handlers.on_progress, message)
            elif isinstance(message, RecordingStopped):
                _tell(handlers.on_stopped, message)
            else:
                continue
            count += 1
        return count


def _tell(handler: Callable[..., object] | None, event: object) -> None:
    if handler is not None:
        handler(event)
