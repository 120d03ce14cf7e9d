"""A simulated host: one driver with its agents, and its clients.

    host ---- driver ---- can be paused and resumed, or killed and replaced by a successor
          `-- clients     one per program; each can be paused independently

The driver's directory is in memory and is removed with the host. The world provides the clock.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from random import Random
from types import MappingProxyType
from typing import Any, Self

from windtunnel.driver.channel.socket_address import SocketAddress
from windtunnel.driver.client.aeron import Aeron
from windtunnel.driver.client.context import from_environment as client_context
from windtunnel.driver.media.channel_sockets import LinkSockets
from windtunnel.driver.media_driver.composition import MakeAgents, make_agents
from windtunnel.driver.media_driver.context import INVOKER, KIB, MIB, Context
from windtunnel.driver.media_driver.context import from_environment as driver_context
from windtunnel.driver.media_driver.media_driver import MediaDriver
from windtunnel.harness.scenario.schema.host_event import DEFAULT_TIMEOUTS, TimeoutsCase
from windtunnel.harness.simulator.support import Unsupported
from windtunnel.harness.simulator.world.host_memory import HostMemory
from windtunnel.harness.simulator.world.host_socket import HostSocket
from windtunnel.harness.simulator.world.running_part import HostParts
from windtunnel.harness.simulator.world.single_interface import OneInterface
from windtunnel.harness.simulator.world.virtual_time import NS_PER_MS, VirtualClock
from windtunnel.harness.simulator.world.world_state import Agents

RING_BYTES = 1 << 21
"""Default capacity of a simulated socket in each direction. Only a defect can fill it."""
SHELL_INTERVAL_NS = 10 * NS_PER_MS
"""Maximum interval between duty cycles of a conductor's Python part, as in a threaded driver.
"""
NOT_NATIVE = (0, 0)
"""Value of `native` for a host with the built-in driver."""
NO_SETTINGS: Mapping[str, str] = MappingProxyType({})
CLIENT_INTERVAL_NS = 16 * NS_PER_MS
"""Interval between duty cycles of a client's conductor when its driver sends nothing."""


@dataclass(eq=False)
class HostClient:
    """An Aeron client of a program on a simulated host. The client can be paused."""

    client: Aeron
    is_paused: bool = False


class Host:
    """A simulated host: its driver, its clients, and their Python duty cycles."""

    def __init__(
        self,
        name: str,
        address: str,
        directory: Path,
        clock: VirtualClock,
        parts: HostParts,
        seed: int,
        shell_interval_ns: int = SHELL_INTERVAL_NS,
        memory: HostMemory | None = None,
        timeouts: TimeoutsCase = DEFAULT_TIMEOUTS,
        settings: Mapping[str, str] = NO_SETTINGS,
    ) -> None:
        """Start the host's driver.

        `parts` notes which part of the host runs, `shell_interval_ns` is the maximum interval
        between Python duty cycles, `memory` is that of an earlier host, `timeouts` are the timeouts
        of driver and clients, and `settings` the environment variables of the driver alone.
        """
        self.name = name
        self.address = address
        self.directory = directory
        self.clock = clock
        self._parts = parts
        self._seed = seed
        self._shell_interval_ns = shell_interval_ns
        self._client_interval_ns = max(CLIENT_INTERVAL_NS, shell_interval_ns)
        self.timeouts = timeouts
        self._variables = timeouts.variables
        self._settings = settings
        self.native = NOT_NATIVE
        """Addresses of the C function that runs a real driver's duty cycle, and of the driver."""
        self.errors: list[Exception] = []
        """Errors that the clients had no other way to report."""
        memory = memory or HostMemory(RING_BYTES)
        self._links = memory.links
        self._clients: list[HostClient] = []
        self._start(memory.create_agents)
        self._shell_ns = self._client_ns = clock.now_ns()

    def _start(self, create_agents: MakeAgents = make_agents) -> None:
        with self._parts.driver:
            self.driver = MediaDriver(
                self._context(),
                clock=self.clock,
                sockets=LinkSockets(self._links, SocketAddress(self.address, 0)),
                resolver=OneInterface(self.address),
                links=self._links,
                seed=self._seed,
                create_agents=create_agents,
            )
        self.agents = Agents(*self.driver.agents, self._links)
        """The agents' states, for the simulated world's compiled kernels."""
        self.is_running = True
        """Whether the driver is alive and not paused."""
        self._has_fresh_heartbeat = True
        """Whether the driver has updated its heartbeat since it was last paused."""

    def _context(self) -> Context:
        variables = {**self._settings, **self._variables}
        return _driver_context(self.directory, frozenset(variables.items()))

    @property
    def counter_values(self) -> Any:
        """Return the buffer of the driver's counter values as uint8[n]."""
        return self.agents.conductor.counters

    @property
    def next_ns(self) -> int:
        """Return the time at which the next Python duty cycle is due."""
        return min(self._shell_ns, self._client_ns)

    def now_ns(self) -> int:
        """Return the virtual time."""
        return self.clock.now_ns()

    def connect(self, **settings: Any) -> HostClient:
        """Create a client of the driver, whose conductor the host invokes. The driver must be
        running.
        """
        client = HostClient(self.open_client(**settings))
        self._clients.append(client)
        return client

    def open_client(self, **settings: Any) -> Aeron:
        """Create a client of the driver, which the caller invokes. The driver must be running.

        Time stands still while a call of the client waits for the driver.
        """
        assert self.is_running, f"the driver of {self.name} is paused or dead"
        if not self._has_fresh_heartbeat:
            # A client rejects a driver with a stale heartbeat and would wait for a fresh one.
            self.invoke_driver()
            self._has_fresh_heartbeat = True
        context = client_context(
            self._variables, dir=self.directory, error_handler=self.errors.append,
            driver_agent_invoker=self.invoke_driver, **settings,
        )  # fmt: skip
        return Aeron(context=context, clock=self.clock, invoked=True)

    def drop_client(self, client: HostClient) -> None:
        """Remove a client without closing it."""
        self._clients.remove(client)

    def open_socket(self, port: int) -> HostSocket:
        """Open a UDP socket at a port of this host, of which its driver knows nothing."""
        return HostSocket(self._links, SocketAddress(self.address, port))

    @property
    def client(self) -> Aeron:
        """Return the host's first client."""
        return self._clients[0].client

    def turn(self, *, is_requested: bool) -> bool:
        """Run the Python duty cycles that are due. If `is_requested`, the driver's duty cycle is
        due immediately.

        Returns whether any was due.
        """
        now_ns = self.clock.now_ns()
        work_count, is_due = 0, is_requested or now_ns >= self._shell_ns
        if is_due:
            self._shell_ns = now_ns + self._shell_interval_ns
            if self.is_running:
                with self._parts.driver:
                    work_count = self.driver.conductor.do_work(now_ns)
                self._has_fresh_heartbeat = True
        if work_count or now_ns >= self._client_ns:
            self._client_ns = now_ns + self._client_interval_ns
            self._invoke_clients()
            return True
        return is_due

    def invoke_driver(self) -> None:
        """Run a duty cycle of the driver's conductor: it updates its heartbeat in the CnC file and
        executes commands. Raises Unsupported if the driver is paused or dead.
        """
        self._require_running()
        with self._parts.driver:
            self.driver.conductor.do_work(self.clock.now_ns())

    def _invoke_clients(self) -> None:
        with self._parts.client:
            for client in self._clients:
                if not client.is_paused:
                    client.client.invoke()

    def _require_running(self) -> None:
        if not self.is_running:
            raise Unsupported(
                f"sim does not support a call that waits for the driver of host {self.name} while "
                "it is paused or dead"
            )

    def pause_driver(self) -> None:
        """Pause the driver. Arriving datagrams wait in its sockets."""
        self.is_running = self._has_fresh_heartbeat = False

    def resume_driver(self) -> None:
        """Resume the paused driver."""
        self.is_running = True

    def kill_driver(self) -> None:
        """Kill the driver. Its sockets close, and its files remain."""
        self.is_running = False
        self._links.mailboxes["is_open"] = 0

    def restart_driver(self) -> None:
        """Start a new driver in the killed driver's directory."""
        self._seed = Random(self._seed).getrandbits(63)
        self._start()
        self._shell_ns = self.clock.now_ns()

    def close(self) -> None:
        """Close the clients, then the driver."""
        for client in self._clients:
            client.client.close()
        with self._parts.driver:
            self.driver.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


@lru_cache(maxsize=64)
def _driver_context(directory: Path, variables: frozenset[tuple[str, str]]) -> Context:
    """Return the settings of a driver. The trials of a swarm have few different ones."""
    return driver_context(
        dict(variables),
        dir=directory,
        # A killed driver looks alive until its heartbeat times out.
        dir_delete_on_start=True,
        threading_mode=INVOKER,
        perform_storage_checks=False,
        counters_buffer_length=MIB,
        loss_report_buffer_length=64 * KIB,
        # Each page of a file is touched when it is created: fewer pages take less time.
        file_page_size=MIB,
    )
