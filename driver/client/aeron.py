"""The Aeron client, which adds publications, subscriptions and counters to a media driver.

    with Aeron("/dev/shm/aeron-me") as aeron:
        subscription = aeron.add_subscription("aeron:udp?endpoint=localhost:20121", 1001)
        while True:
            subscription.poll(lambda payload, header: print(bytes(payload)))

The client sends keepalives to the driver in one directory. Closing the client closes all its
publications, subscriptions and counters. Each `add_*` method waits for the driver's response.
`async_add_*` returns a registration id immediately. Pass this id to `get_*` until it returns the
resource. `await aeron.publication(...)`, `subscription` and `counter` are for asyncio.
"""

import threading
from dataclasses import replace
from pathlib import Path
from typing import Self, TypeVar

from windtunnel.driver.base import system
from windtunnel.driver.base.clock import Clock, SystemClock
from windtunnel.driver.client.conductor.conductor import ClientConductor
from windtunnel.driver.client.conductor.resource_factory import ResourceFactory
from windtunnel.driver.client.context import ClientContext, from_environment
from windtunnel.driver.client.errors import ClientTerminatedError, DriverTimeoutError
from windtunnel.driver.client.handlers import CloseHandler, CounterHandler
from windtunnel.driver.cnc import cnc_file
from windtunnel.driver.cnc.cnc_file import CncFile
from windtunnel.driver.cnc.counters_reader import CountersReader
from windtunnel.driver.files import bus_error_guard

_HANDLER = TypeVar("_HANDLER")


def map_cnc_file(context: ClientContext, clock: Clock) -> CncFile:
    """Wait for the driver of a directory, and map its CnC file. Raises StorageError,
    DriverTimeoutError.
    """
    bus_error_guard.install()
    try:
        return cnc_file.connect(context.dir, clock, system.sleep_ns, context.driver_timeout_ms)
    except cnc_file.DriverTimeoutError as error:
        raise DriverTimeoutError(str(error)) from error


class Aeron(ResourceFactory):
    """A client of a media driver.

    A separate thread runs the conductor unless the client is invoked. Without a context, the
    settings are from the environment, and `directory` overrides AERON_DIR. All methods are
    thread-safe. Raises DriverTimeoutError if no driver is found within the driver timeout.
    """

    def __init__(
        self,
        directory: str | Path | None = None,
        *,
        context: ClientContext | None = None,
        clock: Clock | None = None,
        invoked: bool = False,
    ) -> None:
        if context is None:
            context = from_environment()
            if directory is not None:
                context = replace(context, dir=Path(directory))
        self.context = context.conclude()
        clock = clock or SystemClock()
        conductor = ClientConductor(context, map_cnc_file(context, clock), clock)
        super().__init__(conductor)
        self.counters: CountersReader = conductor.counters
        """Reader of the driver's counters, with their current values."""
        callbacks = conductor.commands.callbacks
        if context.on_available_counter is not None:
            callbacks.available_counter[0] = context.on_available_counter
        if context.on_unavailable_counter is not None:
            callbacks.unavailable_counter[0] = context.on_unavailable_counter
        if context.on_close is not None:
            callbacks.close[0] = context.on_close
        self._stopping = threading.Event()
        self._thread: threading.Thread | None = None
        if not (invoked or context.use_conductor_agent_invoker):
            self._thread = threading.Thread(target=self._run, name="windtunnel-client", daemon=True)
            self._thread.start()

    @property
    def client_id(self) -> int:
        """The id by which the driver identifies this client."""
        return self._conductor.commands.client_id

    @property
    def is_closed(self) -> bool:
        """Whether the application closed the client or an error terminated it."""
        return self._conductor.commands.is_closed

    @property
    def failure(self) -> str:
        """The message of the error that terminated the client, or an empty string if no error has
        terminated it.
        """
        termination = self.termination
        return "" if termination is None else str(termination)

    @property
    def termination(self) -> ClientTerminatedError | None:
        """The error that terminated the client, or None if no error has terminated it."""
        return self._conductor.commands.termination

    def _run(self) -> None:
        while not self._stopping.wait(self.context.idle_sleep_ns / 1e9):
            try:
                self._conductor.do_work()
            except Exception as error:
                # Without this, threads that poll would not detect that the conductor has stopped.
                self._conductor.terminate(
                    ClientTerminatedError(f"the client's conductor thread failed: {error!r}")
                )
                raise

    def invoke(self) -> int:
        """Run one duty cycle of the conductor, for a client without a conductor thread. Returns the
        work count.
        """
        return self._conductor.do_work()

    def next_correlation_id(self) -> int:
        """Return a new correlation id that is unique among all clients of the driver.

        May be called in handlers.
        """
        self._conductor.commands.require_not_closed()
        return self._conductor.commands.proxy.next_correlation_id()

    def is_command_active(self, correlation_id: int) -> bool:
        """Return whether the command of an `async_` call is still waiting for the driver's
        response.
        """
        commands = self._conductor.commands
        with commands.lock:
            if commands.registrations.is_active(correlation_id) and not commands.is_closed:
                self._conductor.do_work()
            return not commands.is_closed and commands.registrations.is_active(correlation_id)

    @property
    def has_active_commands(self) -> bool:
        """Whether any command of this client is still waiting for the driver's response."""
        with self._conductor.commands.lock:
            return not self.is_closed and self._conductor.commands.registrations.has_active

    def add_available_counter_handler(self, handler: CounterHandler) -> int:
        """Add a handler that is called for each counter that becomes available.

        Returns an id for `remove_available_counter_handler`.
        """
        return self._add_handler(self._conductor.commands.callbacks.available_counter, handler)

    def remove_available_counter_handler(self, handler_id: int) -> bool:
        """Remove a handler for available counters. Returns whether the handler existed."""
        return self._remove_handler(
            self._conductor.commands.callbacks.available_counter, handler_id
        )

    def add_unavailable_counter_handler(self, handler: CounterHandler) -> int:
        """Add a handler that is called for each counter that is freed.

        Returns an id for `remove_unavailable_counter_handler`.
        """
        return self._add_handler(self._conductor.commands.callbacks.unavailable_counter, handler)

    def remove_unavailable_counter_handler(self, handler_id: int) -> bool:
        """Remove a handler for freed counters. Returns whether the handler existed."""
        return self._remove_handler(
            self._conductor.commands.callbacks.unavailable_counter, handler_id
        )

    def add_close_handler(self, handler: CloseHandler) -> int:
        """Add a handler that is called once after the client has closed.

        Returns an id for `remove_close_handler`.
        """
        return self._add_handler(self._conductor.commands.callbacks.close, handler)

    def remove_close_handler(self, handler_id: int) -> bool:
        """Remove a close handler. Returns whether the handler existed."""
        return self._remove_handler(self._conductor.commands.callbacks.close, handler_id)

    def _add_handler(self, handlers: dict[int, _HANDLER], handler: _HANDLER) -> int:
        with self._conductor.commands.lock:
            self._conductor.commands.require_open()
            handler_id = self.next_correlation_id()
            handlers[handler_id] = handler
            return handler_id

    def _remove_handler(self, handlers: dict[int, _HANDLER], handler_id: int) -> bool:
        with self._conductor.commands.lock:
            self._conductor.commands.callbacks.require_not_in_callback()
            return handlers.pop(handler_id, None) is not None

    def close(self) -> None:
        """Close the client and everything that it opened. Closing it again has no effect.

        Raises ReentrantCallError if a handler calls it.
        """
        self._conductor.commands.require_not_in_callback()
        self._stopping.set()
        if self._thread is not None and self._thread is not threading.current_thread():
            self._thread.join()
            self._thread = None
        self._conductor.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
