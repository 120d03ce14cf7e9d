"""Calling the program's handlers from inside the conductor, safely for both.

While a handler runs, the conductor's own tables are in the middle of a change: whatever would
change them further is refused with a ReentrantCallError. What a handler raises never reaches the
conductor; it goes to the error handler, and the client goes on.
"""

import logging
from collections.abc import Callable

from windtunnel.driver.client.context import CounterHandler, ErrorHandler
from windtunnel.driver.client.errors import ReentrantCallError
from windtunnel.driver.cnc.counters_reader import CountersReader

_LOGGER = logging.getLogger("windtunnel.driver.client")


class Callbacks:
    """One client's handlers. All calls are made under the conductor's lock."""

    def __init__(self, error_handler: ErrorHandler | None) -> None:
        self._error_handler = error_handler
        self._is_running = False
        self.available_counter: dict[int, CounterHandler] = {}
        self.unavailable_counter: dict[int, CounterHandler] = {}
        self.close: dict[int, Callable[[], object]] = {}

    def require_none(self) -> None:
        """Raise ReentrantCallError inside a handler."""
        if self._is_running:
            raise ReentrantCallError("this may not be called from a handler of the conductor")

    def call(self, handler: Callable[..., object] | None, *arguments: object) -> None:
        """Call a handler, if there is one."""
        if handler is None:
            return
        was_running, self._is_running = self._is_running, True
        try:
            handler(*arguments)
        except Exception as error:
            self.report(error)
        finally:
            self._is_running = was_running

    def report(self, error: Exception) -> None:
        """Tell the error handler; without one, the log."""
        if self._error_handler is None:
            _LOGGER.error("error=%r", error)
            return
        try:
            self._error_handler(error)
        except Exception:
            _LOGGER.exception("error handler failed on error=%r", error)

    def on_counter(
        self,
        handlers: dict[int, CounterHandler],
        reader: CountersReader,
        registration_id: int,
        counter_id: int,
    ) -> None:
        """A counter has come or gone."""
        for handler in tuple(handlers.values()):
            self.call(handler, reader, registration_id, counter_id)
