"""Receives the recording events that an archive publishes if it is configured to do so.

    started    the recording of an image has started at its join position
    progress   the recorded position; some events may be missing
    stopped    the position at which the recording stopped

The start position is the join position of the image, also for an extended recording.
Source: archive-protocol 5.9.
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
    """Callbacks for recording events. Each callback is optional."""

    on_started: Callable[[RecordingStarted], object] | None = None
    on_progress: Callable[[RecordingProgress], object] | None = None
    on_stopped: Callable[[RecordingStopped], object] | None = None


class RecordingEvents:
    """Receives recording events from one subscription. Only one thread at a time may poll it."""

    def __init__(self, subscription: Subscription, handlers: RecordingEventHandlers) -> None:
        self._reader = ResponseReader(subscription)
        self._handlers = handlers

    @property
    def subscription(self) -> Subscription:
        """The subscription that receives the events."""
        return self._reader.subscription

    def poll(self, limit: int = 10) -> int:
        """Deliver up to `limit` recording events to the callbacks. Returns the number of delivered
        events.
        """
        handlers, count = self._handlers, 0
        while count < limit and (message := self._reader.next()) is not None:
            if isinstance(message, RecordingStarted):
                _notify(handlers.on_started, message)
            elif isinstance(message, RecordingProgress):
                _notify(handlers.on_progress, message)
            elif isinstance(message, RecordingStopped):
                _notify(handlers.on_stopped, message)
            else:
                continue
            count += 1
        return count


def _notify(handler: Callable[..., object] | None, event: object) -> None:
    if handler is not None:
        handler(event)
