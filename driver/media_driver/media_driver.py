"""The media driver put together: settings in, a directory with a living `cnc.dat` out.

    with MediaDriver(Context(dir=...)) as driver:       threads of its own
        ...
    with MediaDriver(Context(dir=..., threading_mode=INVOKER)) as driver:
        driver.invoke()                                 turns are taken by whoever calls

Each agent of a threaded driver runs its kernel in quanta, without the GIL. Source: spec 10.2, 10.4
and 10.5, Aeron 1.53.
"""

import os
import random
import shutil
import threading
import traceback
from collections.abc import Callable
from pathlib import Path
from types import TracebackType
from typing import Self

from driver.base import system
from driver.base.clock import Clock, SystemClock
from driver.base.errors import ActiveDriverError, StorageError
from driver.base.system import NS_PER_MS
from driver.channel.resolver import Resolver
from driver.cnc import cnc_file, counters, ring_buffer
from driver.cnc.cnc_file import CncFile
from driver.cnc.cnc_header import CncHeader
from driver.cnc.counters_manager import CountersManager
from driver.cnc.error_log import ErrorLog
from driver.media.channel_sockets import Sockets, SocketSettings, UdpSockets
from driver.media.name_resolver import SystemResolver
from driver.media.udp_socket import probe_system_buffers
from driver.media_driver import (
    conductor_state,
    duty_cycle,
    receiver,
    receiver_state,
    sender,
    sender_state,
    shared_agents,
    system_counters,
)
from driver.media_driver.agent_proxy import AgentProxy
from driver.media_driver.client_proxy import ClientProxy
from driver.media_driver.conductor import Conductor
from driver.media_driver.context import INVOKER, SHARED, SHARED_NETWORK, Context
from driver.media_driver.facilities import Facilities
from driver.media_driver.loss_report import LossReport
from driver.media_driver.stream_counters import SYSTEM, StreamCounters
from driver.media_driver.subscriber_positions import PositionPool

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
    ) -> None:
        self.context = context.conclude()
        self.clock = clock or SystemClock()
        self._threads: list[threading.Thread] = []
        self._stopping = threading.Event()
        self._is_closed = False
        self.failure: BaseException | None = None
        """What ended an agent's thread, if anything did."""
        take_directory(self.context, self.clock)
        self._cnc = self._create_cnc()
        self._loss_report = LossReport(
            self.context.dir, self.context.loss_report_buffer_length, self.context.file_page_size
        )
        sockets = sockets or UdpSockets(
            SocketSettings(
                sndbuf_length=self.context.socket_sndbuf_length,
                rcvbuf_length=self.context.socket_rcvbuf_length,
                multicast_ttl=self.context.socket_multicast_ttl,
            )
        )
        self._parts, manager = self._make_parts(
            sockets, resolver or SystemResolver(), links, random.Random(seed)
        )
        self.conductor = Conductor(self._parts, manager)
        self._parts.sender_proxy.on_full = self._when_full(self._turn_sender)
        self._parts.receiver_proxy.on_full = self._when_full(self._turn_receiver)
        self._compile()
        self._cnc.set_ready(self.clock.now_ms())

    def _compile(self) -> None:
        """Have every kernel in machine code before anybody hears that there is a driver.

        A quantum that is over at once runs nothing, but compiles all, or loads it from the cache.
        """
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
        ring_buffer.read(self._cnc.to_driver, ring_buffer.make_scratch(self._cnc.to_driver))

    def _create_cnc(self) -> CncFile:
        context = self.context
        return cnc_file.create(
            context.dir,
            CncHeader(
                to_driver_buffer_length=context.conductor_buffer_length,
                to_clients_buffer_length=context.clients_buffer_length,
                counters_metadata_buffer_length=4 * context.counters_buffer_length,
                counters_values_buffer_length=context.counters_buffer_length,
                error_log_buffer_length=context.error_buffer_length,
                client_liveness_timeout_ns=context.client_liveness_timeout_ns,
                start_timestamp_ms=self.clock.now_ms(),
                pid=os.getpid(),
                file_page_size=context.file_page_size,
            ),
            sparse=True,
        )

    def _make_counters(self) -> CountersManager:
        """The driver's own counters come first, each at the id that tools know it by."""
        context, cnc = self.context, self._cnc
        values = cnc.counters_values
        manager = CountersManager(
            cnc.counters_metadata,
            values,
            self.clock,
            context.counters_free_to_reuse_timeout_ns // NS_PER_MS,
        )
        for counter_id, label in enumerate(system_counters.labels(context.threading_mode)):
            key = counter_id.to_bytes(4, "little")
            allocated = manager.allocate(SYSTEM, key, label, counter_id, -1)
            assert allocated == counter_id
        counters.set_release(values, system_counters.AERON_VERSION, system_counters.VERSION_NUMBER)
        counters.set_release(
            values,
            system_counters.CONTROL_PROTOCOL_VERSION,
            system_counters.CONTROL_PROTOCOL_NUMBER,
        )
        counters.set_release(
            values,
            system_counters.BYTES_CURRENTLY_MAPPED,
            cnc.mapping.length + self._loss_report.length,
        )
        return manager

    def _make_parts(
        self, sockets: Sockets, resolver: Resolver, links: object, rng: random.Random
    ) -> tuple[Facilities, CountersManager]:
        context, cnc = self.context, self._cnc
        values = cnc.counters_values
        manager = self._make_counters()
        sending = sender_state.make_sender_state(
            values,
            duty_cycle.make_duty_cycle(
                system_counters.SENDER_MAX_CYCLE_TIME,
                system_counters.SENDER_CYCLE_TIME_THRESHOLD_EXCEEDED,
                context.sender_cycle_threshold_ns,
            ),
            poll_ratio=context.send_to_status_poll_ratio,
            status_timeout_ns=context.status_message_timeout_ns,
            idle_state=context.idle_of(
                "shared_network" if context.threading_mode == SHARED_NETWORK else "sender"
            ),
            links=links,
        )
        receiving = receiver_state.make_receiver_state(
            values,
            duty_cycle.make_duty_cycle(
                system_counters.RECEIVER_MAX_CYCLE_TIME,
                system_counters.RECEIVER_CYCLE_TIME_THRESHOLD_EXCEEDED,
                context.receiver_cycle_threshold_ns,
            ),
            session_limit=context.stream_session_limit,
            liveness_timeout_ns=context.image_liveness_timeout_ns,
            idle_state=context.idle_of("receiver"),
            links=links,
        )
        conducting = conductor_state.make_conductor_state(
            values,
            self._loss_report.report,
            cnc.to_driver,
            sending,
            receiving,
            duty_cycle.make_duty_cycle(
                system_counters.CONDUCTOR_MAX_CYCLE_TIME,
                system_counters.CONDUCTOR_CYCLE_TIME_THRESHOLD_EXCEEDED,
                context.conductor_cycle_threshold_ns,
            ),
            idle_state=context.idle_of(
                "shared" if context.threading_mode == SHARED else "conductor"
            ),
        )
        parts = Facilities(
            context=context,
            clock=self.clock,
            cnc=cnc,
            values=values,
            counters=StreamCounters(manager),
            clients=ClientProxy(cnc.to_clients),
            error_log=ErrorLog(cnc.error_log, self.clock),
            sender=sending,
            receiver=receiving,
            conductor=conducting,
            sender_proxy=AgentProxy(sending.commands, values, system_counters.SENDER_PROXY_FAILS),
            receiver_proxy=AgentProxy(
                receiving.commands, values, system_counters.RECEIVER_PROXY_FAILS
            ),
            positions=PositionPool(conducting.subscribers),
            loss_report=self._loss_report,
            resolver=resolver,
            sockets=sockets,
            system_buffers=probe_system_buffers(),
            random=rng,
        )
        return parts, manager

    def _turn_sender(self) -> int:
        return int(sender.do_work(self._parts.sender, self.clock.now_ns()))

    def _turn_receiver(self) -> int:
        return int(receiver.do_work(self._parts.receiver, self.clock.now_ns()))

    def _when_full(self, turn: Callable[[], int]) -> Callable[[], None]:
        def wait() -> None:
            if self.context.threading_mode in (INVOKER, SHARED):
                turn()
            else:
                threading.Event().wait(0.0001)

        return wait

    def invoke(self) -> int:
        """One turn of every agent, for an INVOKER driver. Returns an amount of work."""
        now_ns = self.clock.now_ns()
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
                target=self._run_agent, args=(run,), name=f"windtunnel-{name}", daemon=True
            )
            self._threads.append(thread)
            thread.start()

    def _run_sender(self, quantum_ns: int) -> None:
        sender.run(self._parts.sender, quantum_ns)

    def _run_receiver(self, quantum_ns: int) -> None:
        receiver.run(self._parts.receiver, quantum_ns)

    def _run_network(self, quantum_ns: int) -> None:
        shared_agents.run_network(self._parts.sender, self._parts.receiver, quantum_ns)

    def _run_agent(self, run: Callable[[int], None]) -> None:
        try:
            while not self._stopping.is_set():
                run(QUANTUM_NS)
        except Exception as error:
            # The only place where anything is caught: an agent that failed ends its driver.
            self.failure = error
            self._parts.record_error(11, "".join(traceback.format_exception(error)))
            self._stopping.set()

    def wait(self, timeout_s: float | None = None) -> bool:
        """Wait until the driver is told to stop or an agent fails. Returns whether it was."""
        return self._stopping.wait(timeout_s)

    def stop(self) -> None:
        """Ask the threads to end; safe in a signal handler."""
        self._stopping.set()

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
        self._loss_report.close()
        self._cnc.set_closed()
        self._cnc.close()
        if self.context.dir_delete_on_shutdown:
            shutil.rmtree(self.context.dir, ignore_errors=True)

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


def take_directory(context: Context, clock: Clock) -> None:
    """Make the driver's directory anew, unless a driver lives in it; nothing old is ever reused."""
    directory: Path = context.dir
    if directory.exists():
        is_active = not context.dir_delete_on_start and cnc_file.is_driver_active(
            directory, clock, system.sleep_ns, context.driver_timeout_ms
        )
        if is_active:
            raise ActiveDriverError(f"a driver is active in {directory} (AERON_DIR)")
        shutil.rmtree(directory)
    try:
        for folder in (directory, directory / "publications", directory / "images"):
            folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise StorageError(f"cannot make {error.filename} (AERON_DIR): {error.strerror}") from error
