"""The media driver put together: settings in, a directory with a living `cnc.dat` out.

    with MediaDriver(Context(dir=...)) as driver:       threads of its own
        ...
    with MediaDriver(Context(dir=..., threading_mode=INVOKER)) as driver:
        driver.invoke()                                 turns are taken by whoever calls

Each agent of a threaded driver runs its kernel in quanta, without the GIL. Source: spec 10.2, 10.4
and 10.5, Aeron 1.53.
"""

import random
import threading
import traceback
from collections.abc import Callable
from types import TracebackType
from typing import Self

from windtunnel.driver.base import idle
from windtunnel.driver.base.clock import Clock, SystemClock
from windtunnel.driver.base.errors import DriverError
from windtunnel.driver.base.shutdown_signal import ShutdownSignal
from windtunnel.driver.base.system import NS_PER_MS
from windtunnel.driver.channel.resolver import Resolver
from windtunnel.driver.cnc import cnc_file, ring_buffer
from windtunnel.driver.command.command_type import ErrorCode
from windtunnel.driver.media.channel_sockets import Sockets, UdpSockets
from windtunnel.driver.media.name_resolver import SystemResolver
from windtunnel.driver.media_driver import composition, precompile
from windtunnel.driver.media_driver.agent import duty_cycle
from windtunnel.driver.media_driver.agent.cpu_affinity import pin_thread
from windtunnel.driver.media_driver.agent.timer_slack import wake_on_time
from windtunnel.driver.media_driver.conductor import conductor_state, shared_agents
from windtunnel.driver.media_driver.conductor.conductor import Conductor
from windtunnel.driver.media_driver.conductor.conductor_state import ConductorState
from windtunnel.driver.media_driver.conductor.endpoints.socket_buffer_check import (
    check_socket_buffers,
    probe_buffers,
)
from windtunnel.driver.media_driver.context import INVOKER, SHARED, SHARED_NETWORK, Context
from windtunnel.driver.media_driver.directory import leave_directory, take_directory, tell
from windtunnel.driver.media_driver.image.loss_report import LossReport
from windtunnel.driver.media_driver.receiver import receiver
from windtunnel.driver.media_driver.receiver.receiver_state import ReceiverState
from windtunnel.driver.media_driver.sender import sender
from windtunnel.driver.media_driver.sender.sender_state import SenderState

QUANTUM_NS = 10 * NS_PER_MS
"""How long a kernel runs before its thread looks whether it should stop."""


class MediaDriver:
    """One driver in this process."""

    def __init__(
        self,
        context: Context,
        *,
        clock: Clock | None = None,
        sockets: Sockets | None = None,
        resolver: Resolver | None = None,
        links: object = None,
        seed: int | None = None,
        stopping: ShutdownSignal | None = None,
    ) -> None:
        self.context = context.conclude()
        self.clock = clock or SystemClock()
        self._threads: list[threading.Thread] = []
        self._stopping = stopping or ShutdownSignal()
        self._is_closed = False
        self.failure: BaseException | None = None
        """What ended an agent's thread, if anything did."""
        if sockets is None:
            check_socket_buffers(self.context, probe_buffers(self.context), tell)
        take_directory(self.context, self.clock)
        self._cnc = composition.create_cnc(self.context, self.clock)
        try:
            self._set_up(sockets, resolver or SystemResolver(), links, random.Random(seed))
        except BaseException:
            # A file that never becomes ready would hold up the next driver here.
            self._cnc.close()
            (self.context.dir / cnc_file.FILE_NAME).unlink(missing_ok=True)
            raise
        self._cnc.set_ready(self.clock.now_ms())

    def _set_up(
        self, sockets: Sockets | None, resolver: Resolver, links: object, rng: random.Random
    ) -> None:
        self._loss_report = LossReport(
            self.context.dir, self.context.loss_report_buffer_length, self.context.file_page_size
        )
        self._parts, manager = composition.make_parts(
            self.context,
            self.clock,
            self._cnc,
            self._loss_report,
            sockets or UdpSockets(composition.socket_settings(self.context)),
            resolver,
            links,
            rng,
        )
        self.conductor = Conductor(self._parts, manager, self.stop)
        self._parts.sender_proxy.on_full = self._when_full(self._turn_sender)
        self._parts.receiver_proxy.on_full = self._when_full(self._turn_receiver)
        self._compile()

    def _compile(self) -> None:
        """Have every kernel in machine code before anybody hears that there is a driver.

        A quantum that is over at once runs nothing, but compiles all, or loads it from the cache.
        It starts the clock of the duty cycles, so what takes long comes before it.
        """
        precompile.load()
        parts, mode = self._parts, self.context.threading_mode
        if mode == SHARED:
            shared_agents.run_all(parts.conductor, parts.sender, parts.receiver, 0)
        else:
            conductor_state.run(parts.conductor, 0)
            if mode == SHARED_NETWORK:
                self._run_network(0)
            else:
                self._run_sender(0)
                self._run_receiver(0)
        idle.after_turn(parts.conductor.idle, 1)
        ring_buffer.read(self._cnc.to_driver, ring_buffer.make_scratch(self._cnc.to_driver))

    @property
    def agents(self) -> tuple[ConductorState, SenderState, ReceiverState]:
        """The agents' state, for whoever steps their kernels instead of `invoke`."""
        return self._parts.conductor, self._parts.sender, self._parts.receiver

    def _turn_sender(self) -> int:
        return int(sender.do_work(self._parts.sender, self.clock.now_ns()))

    def _turn_receiver(self) -> int:
        return int(receiver.do_work(self._parts.receiver, self.clock.now_ns()))

    def _when_full(self, turn: Callable[[], int]) -> Callable[[], None]:
        def wait() -> None:
            if self._stopping.is_left:
                raise DriverError("the driver is stopping: its agents take no commands any more")
            if self.context.threading_mode in (INVOKER, SHARED):
                turn()
            else:
                threading.Event().wait(0.0001)

        return wait

    def invoke(self) -> int:
        """One turn of every agent, for an INVOKER driver. Returns an amount of work."""
        parts, now_ns = self._parts, self.clock.now_ns()
        for agent in (parts.conductor, parts.sender, parts.receiver):
            duty_cycle.measure(agent.cycle, agent.counters, now_ns)
        work_count = self.conductor.do_work(now_ns) + self.conductor.track(now_ns)
        return work_count + self._turn_sender() + self._turn_receiver()

    def start(self) -> None:
        """Start the threads that the threading mode asks for; an INVOKER driver has none."""
        mode, conductor = self.context.threading_mode, self.conductor
        if mode == SHARED:
            runs = {"shared": conductor.run_all}
        elif mode == SHARED_NETWORK:
            runs = {"conductor": conductor.run, "shared-network": self._run_network}
        elif mode == INVOKER:
            runs = {}
        else:
            runs = {
                "conductor": conductor.run,
                "sender": self._run_sender,
                "receiver": self._run_receiver,
            }
        for name, run in runs.items():
            thread = threading.Thread(
                target=self._run_agent, args=(name, run), name=f"windtunnel-{name}", daemon=True
            )
            self._threads.append(thread)
            thread.start()

    def _run_sender(self, quantum_ns: int) -> None:
        sender.run(self._parts.sender, quantum_ns)

    def _run_receiver(self, quantum_ns: int) -> None:
        receiver.run(self._parts.receiver, quantum_ns)

    def _run_network(self, quantum_ns: int) -> None:
        shared_agents.run_network(self._parts.sender, self._parts.receiver, quantum_ns)

    def _run_agent(self, name: str, run: Callable[[int], None]) -> None:
        try:
            pin_thread(self.context, name, self._parts.record_error)
            wake_on_time()
            while not self._stopping.is_left:
                run(QUANTUM_NS)
        except Exception as error:
            # An agent that failed ends its driver; what a command or a SETUP asks for may fail.
            self.failure = error
            trace = "".join(traceback.format_exception(error))
            self._parts.record_error(ErrorCode.GENERIC_ERROR, trace)
            self._stopping.leave()

    def wait(self, timeout_s: float | None = None) -> bool:
        """Wait until the driver is told to stop or an agent fails. Returns whether it was.

        A main thread with signal handlers gives a limit and looks again, see StopNote.
        """
        return self._stopping.wait(timeout_s)

    def stop(self) -> None:
        """Ask the threads to end; safe in a signal handler."""
        self._stopping.leave()

    def close(self) -> None:
        """Stop the agents, remove their logs, and tell clients that the driver has left.

        May be called again.
        """
        if self._is_closed:
            return
        self._is_closed = True
        self.stop()
        for thread in self._threads:
            thread.join()
        self._threads.clear()
        self.conductor.close()
        self._parts.names.close()
        self._loss_report.close()
        self._cnc.set_closed()
        self._cnc.close()
        leave_directory(self.context)

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()
