"""Asking the driver and waiting for its answer, under one lock.

    ask ----> DriverProxy ---> ring of the driver
    wait <--- Registrations <- what `do_work` hears

It runs on a thread of its own, or is invoked; whoever waits for an answer drives it too, so that
adding something never waits for a sleeping thread. Knows nothing of what a command is about.
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

ANSWER_POLL_NS = 200_000


class CommandChannel:
    """One client's conversation with its driver."""

    def __init__(self, context: ClientContext, cnc: CncFile, clock: Clock) -> None:
        self.context = context
        self.clock = clock
        self.lock = threading.RLock()
        self.proxy = DriverProxy(cnc)
        self.client_id = self.proxy.client_id
        self.callbacks = Callbacks(context.error_handler)
        self.registrations = Registrations(self.callbacks.report)
        self.is_closed = False
        self.termination: ClientTerminatedError | None = None
        """Why the client closed, if its program did not close it."""

    def do_work(self) -> int:
        """Hear what the driver says. Returns an amount of work."""
        raise NotImplementedError

    def require_not_closed(self) -> None:
        """Raise where the client is closed, and why; any thread may ask, and so may a handler."""
        if self.termination is not None:
            raise type(self.termination)(str(self.termination))
        if self.is_closed:
            raise ClosedError("the client is closed")

    def require_open(self) -> None:
        """Raise where the client is closed, or in the middle of a handler; under the lock."""
        self.require_not_closed()
        self.callbacks.require_none()

    def require_no_callback(self) -> None:
        """Raise ReentrantCallError where this thread is in the middle of a handler."""
        with self.lock:
            self.callbacks.require_none()

    def ask(
        self,
        make: Callable[[int], Command],
        complete: Callable[[Any], Any] = lambda answer: answer,
        undo: Callable[[int, int], Command] | None = None,
        *,
        is_collected: bool = True,
    ) -> int:
        """Send the command that `make` builds for a new id. Returns the id; `wait` has the rest.

        `complete` turns the answer into what `wait` returns; `undo` builds the command that takes
        back what came too late, of a new id and the one that came. Where the outcome is not
        collected, a refusal goes to the error handler.
        """
        with self.lock:
            self.require_open()
            new = self.proxy.next_correlation_id()
            deadline_ns = self.clock.now_ns() + self.context.driver_timeout_ms * system.NS_PER_MS
            take_back = None if undo is None else partial(self._undo, undo, new)
            self.registrations.add(
                Registration(new, deadline_ns, complete, take_back, is_collected)
            )
            try:
                self.proxy.send(make(new))
            except BaseException:
                self.registrations.abandon(new)
                raise
            return new

    def tell(self, make: Callable[[int], Command]) -> None:
        """Send a command whose answer nobody waits for; nothing happens once we are closed."""
        with self.lock:
            if self.is_closed:
                return
            try:
                self.ask(make, is_collected=False)
            except ClientError as error:
                self.callbacks.report(error)

    def _undo(self, undo: Callable[[int, int], Command], late_id: int) -> None:
        self.tell(lambda new: undo(new, late_id))

    def wait(self, correlation_id: int) -> Any:
        """Drive the conversation until a command is answered.

        Returns: what was made of the answer. Raises RegistrationError, CommandTimeoutError
        """
        try:
            while True:
                self.do_work()
                with self.lock:
                    taken = self.registrations.take(correlation_id)
                    if taken is None:
                        self.require_open()
                if taken is not None:
                    break
                system.sleep_ns(ANSWER_POLL_NS)
        except BaseException:
            with self.lock:
                self.registrations.abandon(correlation_id)
            raise
        if taken.error is not None:
            raise taken.error
        return taken.value
