"""A client: connect to a driver, add publications, subscriptions and counters, close.

    with Aeron("/dev/shm/aeron-me") as aeron:
        subscription = aeron.add_subscription("aeron:udp?endpoint=localhost:20121", 1001)
        while True:
            subscription.poll(lambda payload, header: print(bytes(payload)))

It connects to the driver of a directory and keeps itself alive; what it opened is closed with it.
Each `add_*` waits for the driver. `async_add_*` returns a registration id at once, for `get_*` to
ask whether it is there. `await aeron.publication(...)` and its like are for asyncio.
"""

import threading
from dataclasses import replace
from pathlib import Path
from types import TracebackType
from typing import Self, TypeVar

from windtunnel.driver.base import system
from windtunnel.driver.base.clock import Clock, SystemClock
from windtunnel.driver.client.conductor.conductor import ClientConductor
from windtunnel.driver.client.conductor.registrar import Registrar
from windtunnel.driver.client.conductor.resource_factory import ResourceFactory
from windtunnel.driver.client.context import (
    ClientContext,
    CloseHandler,
    CounterHandler,
    from_environment,
)
from windtunnel.driver.client.errors import ClientTerminatedError, DriverTimeoutError
from windtunnel.driver.cnc import cnc_file
from windtunnel.driver.cnc.counters_reader import CountersReader

_HANDLER = TypeVar("_HANDLER")


class Aeron(ResourceFactory):
    """One client of one driver; its own thread keeps it alive unless it is invoked.

    Without a context the settings come from the environment, and `directory` wins. Any thread may
    use it. Raises DriverTimeoutError where no driver is found in time
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
        try:
            cnc = cnc_file.connect(context.dir, clock, system.sleep_ns, context.driver_timeout_ms)
        except cnc_file.DriverTimeoutError as error:
            raise DriverTimeoutError(str(error)) from error
        conductor = ClientConductor(context, cnc, clock)
        super().__init__(conductor, Registrar(conductor))
        self.counters: CountersReader = conductor.counters
        """All counters of the driver as they are at the moment of looking."""
        callbacks = conductor.callbacks
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
        """Who we are to the driver."""
        return self._conductor.client_id

    @property
    def is_closed(self) -> bool:
        """Whether it was closed, by its program or because it cannot go on."""
        return self._conductor.is_closed

    @property
    def failure(self) -> str:
        """Why it closed by itself; empty otherwise."""
        why = self.termination
        return "" if why is None else str(why)

    @property
    def termination(self) -> ClientTerminatedError | None:
        """The error that closed it by itself; None otherwise."""
        return self._conductor.termination

    def _run(self) -> None:
        while not self._stopping.wait(self.context.idle_sleep_ns / 1e9):
            try:
                self._conductor.do_work()
            except Exception as error:
                # Nobody would notice that this thread is gone: whoever polls must hear of it.
                why = ClientTerminatedError(f"the client's thread failed: {error!r}")
                self._conductor.terminate(why)
                raise

    def invoke(self) -> int:
        """One turn of the conductor, for an invoked client. Returns an amount of work."""
        return self._conductor.do_work()

    def next_correlation_id(self) -> int:
        """A number that no command to this driver and nobody else who asked has.

        Handlers may ask for one too.
        """
        self._conductor.require_not_closed()
        return self._conductor.proxy.next_correlation_id()

    def is_command_active(self, correlation_id: int) -> bool:
        """Whether the driver still owes the answer to a command of an `async_` call."""
        conductor = self._conductor
        with conductor.lock:
            if conductor.registrations.is_active(correlation_id) and not conductor.is_closed:
                conductor.do_work()
            return not conductor.is_closed and conductor.registrations.is_active(correlation_id)

    @property
    def has_active_commands(self) -> bool:
        """Whether the driver still owes any answer."""
        with self._conductor.lock:
            return not self.is_closed and self._conductor.registrations.has_active

    def add_available_counter_handler(self, handler: CounterHandler) -> int:
        """Be told of each counter that comes. Returns an id to remove the handler by."""
        return self._add_handler(self._conductor.callbacks.available_counter, handler)

    def remove_available_counter_handler(self, handler_id: int) -> bool:
        """Be told no longer. Returns whether there was such a handler."""
        return self._remove_handler(self._conductor.callbacks.available_counter, handler_id)

    def add_unavailable_counter_handler(self, handler: CounterHandler) -> int:
        """Be told of each counter that goes. Returns an id to remove the handler by."""
        return self._add_handler(self._conductor.callbacks.unavailable_counter, handler)

    def remove_unavailable_counter_handler(self, handler_id: int) -> bool:
        """Be told no longer. Returns whether there was such a handler."""
        return self._remove_handler(self._conductor.callbacks.unavailable_counter, handler_id)

    def add_close_handler(self, handler: CloseHandler) -> int:
        """Be told once when the client has closed. Returns an id to remove the handler by."""
        return self._add_handler(self._conductor.callbacks.close, handler)

    def remove_close_handler(self, handler_id: int) -> bool:
        """Be told no longer. Returns whether there was such a handler."""
        return self._remove_handler(self._conductor.callbacks.close, handler_id)

    def _add_handler(self, handlers: dict[int, _HANDLER], handler: _HANDLER) -> int:
        with self._conductor.lock:
            self._conductor.require_open()
            handler_id = self.next_correlation_id()
            handlers[handler_id] = handler
            return handler_id

    def _remove_handler(self, handlers: dict[int, _HANDLER], handler_id: int) -> bool:
        with self._conductor.lock:
            self._conductor.callbacks.require_none()
            return handlers.pop(handler_id, None) is not None

    def close(self) -> None:
        """Close everything that this client opened. May be called again.

        Raises ReentrantCallError in a handler of the conductor
        """
        self._conductor.require_no_callback()
        self._stopping.set()
        if self._thread is not None and self._thread is not threading.current_thread():
            self._thread.join()
            self._thread = None
        self._conductor.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()
