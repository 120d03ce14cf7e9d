"""Calls the application's handlers for the client conductor.

The conductor's tables may be inconsistent while a handler runs, so calls that would change them
raise ReentrantCallError. An exception in a handler is passed to the error handler, and the client
continues.
"""

import logging
from collections.abc import Callable

from windtunnel.driver.client.errors import ReentrantCallError
from windtunnel.driver.client.handlers import CloseHandler, CounterHandler, ErrorHandler
from windtunnel.driver.cnc.counters_reader import CountersReader

_LOGGER = logging.getLogger("windtunnel.driver.client")


class Callbacks:
    """The handlers of a client. The conductor's lock is held while a handler runs."""

    def __init__(self, error_handler: ErrorHandler | None) -> None:
        self._error_handler = error_handler
        self._is_running = False
        self.available_counter: dict[int, CounterHandler] = {}
        self.unavailable_counter: dict[int, CounterHandler] = {}
        self.close: dict[int, CloseHandler] = {}

    def require_not_in_callback(self) -> None:
        """Raise ReentrantCallError if a handler is running."""
        if self._is_running:
            raise ReentrantCallError("a handler of the client conductor must not call this method")

    def call(self, handler: Callable[..., object] | None, *arguments: object) -> None:
        """Call a handler, unless it is None. Reports an exception that the handler raises."""
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
        """Pass an error to the error handler, or log it if there is no error handler."""
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
        """Call each of the `handlers` with a counter that was allocated or freed."""
        for handler in tuple(handlers.values()):
            self.call(handler, reader, registration_id, counter_id)
