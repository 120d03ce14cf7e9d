"""A simulated host whose driver is the real C driver.

    Host ---- RealHost: the same clients, events and mailboxes; a CDriver instead of ours

The simulator's kernel for many hosts runs the driver's duty cycle as a whole. Where it needs the
built-in driver's agents for their types, it receives those of a driver that never runs.
"""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from random import Random

import numpy as np
from numpy.typing import NDArray

from windtunnel.driver.channel.socket_address import SocketAddress
from windtunnel.driver.cnc.cnc_file import open_existing
from windtunnel.driver.media.channel_sockets import LinkSockets
from windtunnel.driver.media.link import make_links
from windtunnel.driver.media_driver.composition import AgentStates, MakeAgents, make_agents
from windtunnel.driver.media_driver.context import INVOKER, Context
from windtunnel.driver.media_driver.media_driver import MediaDriver
from windtunnel.harness.scenario.resolved.case import Case
from windtunnel.harness.scenario.schema.host_event import DEFAULT_TIMEOUTS, TimeoutsCase
from windtunnel.harness.simulator.real_driver import fast_calls, simulated_machine
from windtunnel.harness.simulator.real_driver.c_driver import CDriver, turn_address
from windtunnel.harness.simulator.real_driver.simulated_machine import SimulatedMachine
from windtunnel.harness.simulator.world.host import RING_BYTES, Host
from windtunnel.harness.simulator.world.host_memory import HostMemory
from windtunnel.harness.simulator.world.running_part import HostParts
from windtunnel.harness.simulator.world.single_interface import OneInterface
from windtunnel.harness.simulator.world.virtual_time import NS_PER_MS, START_NS, VirtualClock
from windtunnel.harness.simulator.world.world_state import Agents

CLIENT_INTERVAL_NS = NS_PER_MS
"""Interval between duty cycles of a client's conductor."""
_template: list[MediaDriver] = []


class RealHost(Host):
    """A simulated host with the real C driver."""

    def __init__(
        self,
        name: str,
        address: str,
        directory: Path,
        clock: VirtualClock,
        parts: HostParts,
        machine: SimulatedMachine,
        index: int,
        ring_bytes: int = RING_BYTES,
        timeouts: TimeoutsCase = DEFAULT_TIMEOUTS,
    ) -> None:
        """Start the host's driver. `index` is the host's index in `machine`, and `ring_bytes` the
        capacity of each socket.

        The send buffers of channels do not limit the mailboxes. If a socket only accepts the first
        datagrams of a batch, the driver sends the whole batch again in its next duty cycle. A
        mailbox drains only between duty cycles, so if it were smaller than a batch, the driver
        would send the same datagrams forever.
        """
        self._machine, self._index = machine, index
        self._killed: list[CDriver] = []
        memory = HostMemory(ring_bytes)
        super().__init__(
            name, address, directory, clock, parts, 0, CLIENT_INTERVAL_NS, memory, timeouts
        )
        self._client_interval_ns = CLIENT_INTERVAL_NS

    def _start(self, create_agents: MakeAgents = make_agents) -> None:
        self._machine.sockets.set_links(self._index, self._links)
        with self._machine.running(self._index), self._parts.driver:
            self._real = CDriver(self.directory, self._variables)
            # The first duty cycles complete the directory.
            self._real.do_work()
        self._cnc = open_existing(self.directory, writable=True)
        conductor, sender, receiver = _agents_of_template(self.directory.parent)
        conductor = conductor._replace(counters=self._cnc.counters_values)
        self.agents = Agents(conductor, sender, receiver, self._links)
        self.native = (turn_address(), self._real.address)
        self.is_running = True
        self._has_fresh_heartbeat = True

    def invoke_driver(self) -> None:
        self._require_running()
        with self._machine.running(self._index), self._parts.driver:
            self._real.do_work()

    def turn(self, *, is_requested: bool) -> bool:
        now_ns = self.clock.now_ns()
        self._shell_ns = now_ns + self._shell_interval_ns
        if self.is_running:
            self._has_fresh_heartbeat = True
        if now_ns < self._client_ns:
            return False
        self._client_ns = now_ns + self._client_interval_ns
        self._invoke_clients()
        return True

    def kill_driver(self) -> None:
        self.is_running = False
        self._machine.sockets.close_all(self._index)
        self._killed.append(self._real)

    def restart_driver(self) -> None:
        self._start()
        self._shell_ns = self.clock.now_ns()

    def close(self) -> None:
        """Close the clients, then the drivers, including killed drivers."""
        for client in self._clients:
            client.client.close()
        alive = [] if self._real in self._killed else [self._real]
        with self._machine.running(self._index), self._parts.driver:
            for each in (*alive, *self._killed):
                each.close()


def _agents_of_template(memory: Path) -> AgentStates:
    """Return the agents of a built-in driver that never runs, because the compiled kernels need
    arguments of these types.
    """
    if not _template:
        folder = Path(tempfile.mkdtemp(prefix="template-", dir=memory))
        clock = VirtualClock(np.full(1, START_NS), np.zeros(1, dtype=np.int64))
        links = make_links(1)
        _template.append(
            MediaDriver(
                Context(dir=folder, dir_delete_on_start=True, threading_mode=INVOKER),
                clock=clock,
                sockets=LinkSockets(links, SocketAddress("127.0.0.1", 0)),
                resolver=OneInterface("127.0.0.1"),
                links=links,
                seed=0,
            )
        )
        shutil.rmtree(folder)
    return _template[0].agents


@contextmanager
def open_machine(
    case: Case,
    time_ns: NDArray[np.int64],
    steps_ns: NDArray[np.int64],
    current: NDArray[np.int64],
) -> Iterator[SimulatedMachine]:
    """Create a simulated machine that executes the real drivers' system calls until the context
    ends.

    `time_ns` begins with the world's monotonic time, `steps_ns` has the sum of all steps of each
    host's clock, and `current` begins with the index of the host whose driver is running.
    """
    rng = Random(f"real drivers {case.seed}")
    machine = SimulatedMachine(
        time_ns,
        steps_ns,
        current,
        tuple(each.address for each in case.hosts),
        tuple(rng.getrandbits(63) for _ in case.hosts),
    )
    simulated_machine.calls.append(machine)
    fast_calls.open_world(time_ns, steps_ns, current)
    try:
        yield machine
    finally:
        fast_calls.close_world()
        simulated_machine.calls.remove(machine)
