"""Sends commands to the driver and waits for the responses. One lock protects the client's state.

    send_command --> DriverProxy ---> command ring buffer of the driver
    wait         <-- Registrations <- responses that the conductor receives

The conductor runs on its own thread or is invoked. A thread that waits for a response also runs the
duty cycle, so it never waits for the conductor thread to wake up.
Source: driver-protocol 7.6; Aeron 1.53, C and Java clients.
"""

import threading
from collections.abc import Callable
from functools import partial
from typing import Any

from windtunnel.driver.base import system
from windtunnel.driver.base.clock import Clock
from windtunnel.driver.client.conductor.callbacks import Callbacks
from windtunnel.driver.client.conductor.driver_proxy import DriverProxy
from windtunnel.driver.client.conductor.registrations import Registration, Registrations
from windtunnel.driver.client.context import ClientContext
from windtunnel.driver.client.errors import ClientError, ClientTerminatedError, ClosedError
from windtunnel.driver.cnc.cnc_file import CncFile
from windtunnel.driver.command.codec import Command

RESPONSE_POLL_INTERVAL_NS = 200_000


class CommandChannel:
    """Sends a client's commands to the driver, and returns the responses."""

    def __init__(
        self, context: ClientContext, cnc: CncFile, clock: Clock, do_work: Callable[[], int]
    ) -> None:
        """Create the command channel. `do_work` must run one duty cycle of the conductor, which
        receives responses.
        """
        self._context = context
        self._clock = clock
        self._do_work = do_work
        self.lock = threading.RLock()
        self.proxy = DriverProxy(cnc)
        self.client_id = self.proxy.client_id
        self.callbacks = Callbacks(context.error_handler)
        self.registrations = Registrations(self.callbacks.report)
        self.is_closed = False
        self.termination: ClientTerminatedError | None = None
        """The error that terminated the client, or None if the application closed the client."""

    def close(self, termination: ClientTerminatedError | None = None) -> None:
        """Refuse all later commands. `termination` is the error that terminated the client."""
        # Set them in this order, because `require_not_closed` reads both without the lock.
        self.termination = termination
        self.is_closed = True

    def require_not_closed(self) -> None:
        """Raise ClosedError, or the error that terminated the client, if the client is closed.

        Any thread and any handler may call it.
        """
        if self.termination is not None:
            raise type(self.termination)(str(self.termination))
        if self.is_closed:
            raise ClosedError("the client is closed")

    def require_open(self) -> None:
        """Raise an error if the client is closed or a handler is running.

        The caller must hold the lock.
        """
        self.require_not_closed()
        self.callbacks.require_not_in_callback()

    def require_not_in_callback(self) -> None:
        """Raise ReentrantCallError if this thread is running a handler."""
        with self.lock:
            self.callbacks.require_not_in_callback()

    def send_command(
        self,
        build: Callable[[int], Command],
        complete: Callable[[Any], Any] = lambda response: response,
        undo: Callable[[int, int], Command] | None = None,
        *,
        is_collected: bool = True,
    ) -> int:
        """Send the command that `build` creates from a new correlation id. Returns the correlation
        id.

        `complete` converts the response to the result of `wait`. If the response is late, `undo`
        builds the command that releases the resource, from a new correlation id and the id of the
        late response. If the outcome is not collected, an error is passed to the error handler.
        """
        with self.lock:
            self.require_open()
            correlation_id = self.proxy.next_correlation_id()
            deadline_ns = self._clock.now_ns() + self._context.driver_timeout_ms * system.NS_PER_MS
            undo_late = None if undo is None else partial(self._undo, undo, correlation_id)
            self.registrations.add(
                Registration(correlation_id, deadline_ns, complete, undo_late, is_collected)
            )
            try:
                self.proxy.send(build(correlation_id))
            except BaseException:
                self.registrations.abandon(correlation_id)
                raise
            return correlation_id

    def send_unawaited(self, build: Callable[[int], Command]) -> None:
        """Send a command without waiting for its response.

        Has no effect if the client is closed. Errors are passed to the error handler.
        """
        with self.lock:
            if self.is_closed:
                return
            try:
                self.send_command(build, is_collected=False)
            except ClientError as error:
                self.callbacks.report(error)

    def _undo(self, undo: Callable[[int, int], Command], late_id: int) -> None:
        self.send_unawaited(lambda correlation_id: undo(correlation_id, late_id))

    def take(self, correlation_id: int) -> Any:
        """Run a duty cycle. Returns a command's result, or None if the driver has not responded
        yet.

        Raises RegistrationError or CommandTimeoutError once, when the command has failed, and
        ClientError for an unknown id.
        """
        self._do_work()
        with self.lock:
            self.require_open()
            taken = self.registrations.take(correlation_id)
            if taken is None and not self.registrations.is_active(correlation_id):
                raise ClientError(f"correlation id {correlation_id}: no command has this id")
        if taken is None:
            return None
        if taken.error is not None:
            raise taken.error
        return taken.value

    def wait(self, correlation_id: int) -> Any:
        """Run the conductor's duty cycles until the driver has responded to a command.

        Returns the result of `complete`. Raises RegistrationError or CommandTimeoutError.
        """
        try:
            while True:
                self._do_work()
                with self.lock:
                    taken = self.registrations.take(correlation_id)
                    if taken is None:
                        self.require_open()
                if taken is not None:
                    break
                self._let_driver_respond()
        except BaseException:
            with self.lock:
                self.registrations.abandon(correlation_id)
            raise
        if taken.error is not None:
            raise taken.error
        return taken.value

    def _let_driver_respond(self) -> None:
        if self._context.driver_agent_invoker is None:
            system.sleep_ns(RESPONSE_POLL_INTERVAL_NS)
        else:
            self._context.driver_agent_invoker()
