"""An embedded media driver, which runs the agents and owns the `cnc.dat` file.

    with MediaDriver(Context(dir=...)) as driver:       runs in its own threads
        ...
    with MediaDriver(Context(dir=..., threading_mode=INVOKER)) as driver:
        driver.invoke()                                 runs in the calling thread

Each agent of a threaded driver runs its compiled kernel for a limited time per call, without the
GIL.
Source: spec 10.2, 10.4 and 10.5, Aeron 1.53.
"""

import random
import threading
import traceback
from collections.abc import Callable
from typing import Self

from windtunnel.driver.base import idle
from windtunnel.driver.base.clock import Clock, SystemClock
from windtunnel.driver.base.errors import DriverError
from windtunnel.driver.base.shutdown_signal import ShutdownSignal
from windtunnel.driver.base.system import NS_PER_MS
from windtunnel.driver.channel.resolver import Resolver
from windtunnel.driver.cnc import cnc_file, ring_buffer_reader
from windtunnel.driver.command.command_type import ErrorCode
from windtunnel.driver.files import bus_error_guard
from windtunnel.driver.media.channel_sockets import Sockets, UdpSockets
from windtunnel.driver.media.name_resolver import SystemResolver
from windtunnel.driver.media_driver import composition, precompile
from windtunnel.driver.media_driver.agent import duty_cycle
from windtunnel.driver.media_driver.agent.cpu_affinity import pin_thread
from windtunnel.driver.media_driver.agent.thread_name import name_thread
from windtunnel.driver.media_driver.agent.timer_slack import minimize_timer_slack
from windtunnel.driver.media_driver.composition import AgentStates, MakeAgents
from windtunnel.driver.media_driver.conductor import conductor_state, shared_agents
from windtunnel.driver.media_driver.conductor.conductor import Conductor
from windtunnel.driver.media_driver.conductor.endpoints.socket_buffer_check import (
    check_socket_buffers,
    probe_buffers,
)
from windtunnel.driver.media_driver.context import INVOKER, SHARED, SHARED_NETWORK, Context
from windtunnel.driver.media_driver.directory import (
    claim_directory,
    print_warning,
    release_directory,
)
from windtunnel.driver.media_driver.image.loss_report import LossReport
from windtunnel.driver.media_driver.receiver import receiver
from windtunnel.driver.media_driver.sender import sender

QUANTUM_NS = 1_000 * NS_PER_MS
"""Time in nanoseconds that a compiled kernel runs, unless the driver shuts down. The Python between
two of them takes longer than a duty cycle, and in SHARED mode all agents wait for it."""


class MediaDriver:
    """A media driver that runs in this process."""

    def __init__(
        self,
        context: Context,
        *,
        clock: Clock | None = None,
        sockets: Sockets | None = None,
        resolver: Resolver | None = None,
        links: object = None,
        seed: int | None = None,
        shutdown_signal: ShutdownSignal | None = None,
        create_agents: MakeAgents = composition.make_agents,
    ) -> None:
        self.context = context.conclude()
        bus_error_guard.install()
        self.clock = clock or SystemClock()
        self._threads: list[threading.Thread] = []
        self._shutdown = shutdown_signal or ShutdownSignal()
        self._is_closed = False
        self.failure: BaseException | None = None
        """The exception that ended an agent's thread, or None."""
        if sockets is None:
            check_socket_buffers(self.context, probe_buffers(self.context), print_warning)
        claim_directory(self.context, self.clock)
        self._cnc = composition.create_cnc(self.context, self.clock)
        rng = random.Random(seed)
        try:
            self._initialize(sockets, resolver or SystemResolver(), links, rng, create_agents)
        except BaseException:
            # If a cnc.dat file never becomes ready, it delays the next driver in this directory.
            self._cnc.close()
            (self.context.dir / cnc_file.FILE_NAME).unlink(missing_ok=True)
            raise
        self._cnc.set_ready(self.clock.now_ms())

    def _initialize(
        self,
        sockets: Sockets | None,
        resolver: Resolver,
        links: object,
        rng: random.Random,
        create_agents: MakeAgents,
    ) -> None:
        self._loss_report = LossReport(
            self.context.dir,
            self.context.loss_report_buffer_length,
            self.context.file_page_size,
            sparse=not self.context.perform_storage_checks,
        )
        self._resources, manager = composition.make_resources(
            self.context,
            self.clock,
            self._cnc,
            self._loss_report,
            sockets or UdpSockets(composition.socket_settings(self.context)),
            resolver,
            links,
            rng,
            create_agents,
        )
        self.conductor = Conductor(self._resources, manager, self.stop)
        self._gates = []
        if links is None:
            self._gates = composition.open_gates(self._resources.sender, self._resources.receiver)
        self._resources.sender_proxy.on_full = self._when_full(self._sender_duty_cycle)
        self._resources.receiver_proxy.on_full = self._when_full(self._receiver_duty_cycle)
        if links is None:
            self._compile()

    def _compile(self) -> None:
        """Compile all kernels that the agents run, or load them from the cache.

        A run of 0 ns compiles a kernel without running a duty cycle. It also starts the measurement
        of duty cycles, so slow steps come first.
        """
        precompile.precompile_calls()
        resources, mode = self._resources, self.context.threading_mode
        if mode == SHARED:
            shared_agents.run_all(resources.conductor, resources.sender, resources.receiver, 0)
        else:
            conductor_state.run(resources.conductor, 0)
            if mode == SHARED_NETWORK:
                self._run_network(0)
            else:
                self._run_sender(0)
                self._run_receiver(0)
        idle.after_turn(resources.conductor.idle, 1)
        ring_buffer_reader.read(
            self._cnc.to_driver, ring_buffer_reader.make_scratch(self._cnc.to_driver)
        )

    @property
    def agents(self) -> AgentStates:
        """The states of the agents, for a caller that runs the agents itself."""
        resources = self._resources
        return AgentStates(resources.conductor, resources.sender, resources.receiver)

    def _sender_duty_cycle(self) -> int:
        return int(sender.do_work(self._resources.sender, self.clock.now_ns()))

    def _receiver_duty_cycle(self) -> int:
        return int(receiver.do_work(self._resources.receiver, self.clock.now_ns()))

    def _when_full(self, turn: Callable[[], int]) -> Callable[[], None]:
        def wait() -> None:
            if self._shutdown.is_set:
                raise DriverError(
                    "the driver is shutting down and its agents accept no more commands"
                )
            if self.context.threading_mode in (INVOKER, SHARED):
                turn()
            else:
                threading.Event().wait(0.0001)

        return wait

    def invoke(self) -> int:
        """Run one duty cycle of every agent of an INVOKER driver. Returns the work count."""
        resources, now_ns = self._resources, self.clock.now_ns()
        for agent in (resources.conductor, resources.sender, resources.receiver):
            duty_cycle.measure(agent.cycle, agent.counters, now_ns)
        work_count = self.conductor.do_work(now_ns) + self.conductor.track(now_ns)
        return work_count + self._sender_duty_cycle() + self._receiver_duty_cycle()

    def start(self) -> None:
        """Start the threads that the threading mode requires. An INVOKER driver has no threads."""
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
        sender.run(self._resources.sender, quantum_ns)

    def _run_receiver(self, quantum_ns: int) -> None:
        receiver.run(self._resources.receiver, quantum_ns)

    def _run_network(self, quantum_ns: int) -> None:
        shared_agents.run_network(self._resources.sender, self._resources.receiver, quantum_ns)

    def _run_agent(self, name: str, run: Callable[[int], None]) -> None:
        try:
            name_thread(self.context, name)
            pin_thread(self.context, name, self._resources.record_error)
            minimize_timer_slack()
            while not self._shutdown.is_set:
                run(QUANTUM_NS)
        except Exception as error:
            # A failed agent shuts down the driver. Failed commands and SETUPs are handled earlier.
            self.failure = error
            trace = "".join(traceback.format_exception(error))
            self._resources.record_error(ErrorCode.GENERIC_ERROR, trace)
            self.stop()

    def wait(self, timeout_s: float | None = None) -> bool:
        """Wait until a shutdown is requested or an agent fails. Returns False if the timeout passes
        first.

        A main thread with signal handlers must call this function repeatedly with a timeout (see
        ShutdownSignal).
        """
        return self._shutdown.wait(timeout_s)

    def stop(self) -> None:
        """Request that the driver's threads shut down. A signal handler may call this method."""
        self._shutdown.set()
        for state in self.agents:
            state.agent[0].is_stopping = 1

    def close(self) -> None:
        """Stop the agents, delete their log buffers, and mark `cnc.dat` as closed. Repeated calls
        have no effect.
        """
        if self._is_closed:
            return
        self._is_closed = True
        self.stop()
        for thread in self._threads:
            thread.join()
        self._threads.clear()
        self.conductor.close()
        for gate in self._gates:
            gate.close()
        self._resources.names.close()
        self._loss_report.close()
        self._cnc.set_closed()
        self._cnc.close()
        release_directory(self.context)

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
