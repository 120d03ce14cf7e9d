"""A host of a simulated world: one driver whose agents the world steps, and its clients.

    host ---- driver ---- stands still, goes on; dies, and is followed by another
          `-- guests      the clients of its programs; each stands still or goes by itself

The driver's directory lies in memory and is removed with the host. Refuses to know the time: the
clock is the world's.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from random import Random
from types import TracebackType
from typing import Any, Self

from windtunnel.driver.channel.socket_address import SocketAddress
from windtunnel.driver.client.aeron import Aeron
from windtunnel.driver.client.context import from_environment as client_context
from windtunnel.driver.media import link
from windtunnel.driver.media.channel_sockets import LinkSockets
from windtunnel.driver.media_driver.context import INVOKER, KIB, MIB, Context
from windtunnel.driver.media_driver.context import from_environment as driver_context
from windtunnel.driver.media_driver.media_driver import MediaDriver
from windtunnel.harness.scenario.schema.host_event import DEFAULT_TIMEOUTS, TimeoutsCase
from windtunnel.harness.simulator.world.single_interface import OneInterface
from windtunnel.harness.simulator.world.virtual_time import NS_PER_MS, VirtualClock
from windtunnel.harness.simulator.world.world_state import Agents

MAILBOXES = 16
RING_BYTES = 1 << 21
"""Of one mailbox, each way: a socket buffer that nothing but a defect of ours can fill."""
SHELL_INTERVAL_NS = 10 * NS_PER_MS
"""Longest time between two turns of what is Python in a conductor, as in a threaded driver."""
CLIENT_INTERVAL_NS = 16 * NS_PER_MS
"""Between two turns of a client's conductor when its driver says nothing."""


@dataclass(eq=False)
class Guest:
    """A program's client."""

    client: Aeron
    is_paused: bool = False


class Host:
    """One host: its driver, its clients, and their turns in Python."""

    def __init__(
        self,
        name: str,
        address: str,
        directory: Path,
        clock: VirtualClock,
        seed: int,
        shell_interval_ns: int = SHELL_INTERVAL_NS,
        ring_bytes: int = RING_BYTES,
        timeouts: TimeoutsCase = DEFAULT_TIMEOUTS,
    ) -> None:
        """`shell_interval_ns` is the longest time between two turns of its Python, `ring_bytes`
        what each of its sockets holds, `timeouts` those of driver and clients."""
        self.name = name
        self.address = address
        self.directory = directory
        self._clock = clock
        self._seed = seed
        self._shell_interval_ns = shell_interval_ns
        self._client_interval_ns = max(CLIENT_INTERVAL_NS, shell_interval_ns)
        self._variables = timeouts.variables
        self.errors: list[Exception] = []
        """What the clients could tell nobody else."""
        self._links = link.make_links(MAILBOXES, ring_bytes)
        self._guests: list[Guest] = []
        self._start()
        self._shell_ns = self._client_ns = clock.now_ns()

    def _start(self) -> None:
        self.driver = MediaDriver(
            self._context(),
            clock=self._clock,
            sockets=LinkSockets(self._links, SocketAddress(self.address, 0)),
            resolver=OneInterface(self.address),
            links=self._links,
            seed=self._seed,
        )
        self.agents = Agents(*self.driver.agents, self._links)
        """What the world's kernels step."""
        self.is_working = True
        """Whether its driver lives and does not stand still."""
        self._has_told = True
        """Whether its driver has shown that it lives since it last stood still."""

    def _context(self) -> Context:
        return driver_context(
            self._variables,
            dir=self.directory,
            # A driver that was killed looks alive for a while.
            dir_delete_on_start=True,
            threading_mode=INVOKER,
            perform_storage_checks=False,
            counters_buffer_length=MIB,
            loss_report_buffer_length=64 * KIB,
            # Each page of a file is touched as it is made: fewer of them, sooner done.
            file_page_size=MIB,
        )

    @property
    def counter_values(self) -> Any:
        """The driver's counter values, uint8[n]."""
        return self.agents.conductor.counters

    @property
    def next_ns(self) -> int:
        """When Python is wanted here at the latest."""
        return min(self._shell_ns, self._client_ns)

    def connect(self) -> Guest:
        """A new client of the driver, which must be at work: nobody waits for it here."""
        assert self.is_working, f"the driver of {self.name} stands still"
        if not self._has_told:
            # A client believes nobody who has been silent, and would wait for its word.
            self.driver.conductor.do_work(self._clock.now_ns())
            self._has_told = True
        context = client_context(
            self._variables, dir=self.directory, error_handler=self.errors.append
        )
        guest = Guest(Aeron(context=context, clock=self._clock, invoked=True))
        self._guests.append(guest)
        return guest

    def forget(self, guest: Guest) -> None:
        """A client is gone, without a word to its driver."""
        self._guests.remove(guest)

    @property
    def client(self) -> Aeron:
        """The first client."""
        return self._guests[0].client

    def turn(self, *, is_wanted: bool) -> None:
        """Let driver and clients do in Python what is due, or all if a kernel asked for it."""
        now_ns = self._clock.now_ns()
        work_count = 0
        if is_wanted or now_ns >= self._shell_ns:
            self._shell_ns = now_ns + self._shell_interval_ns
            if self.is_working:
                work_count = self.driver.conductor.do_work(now_ns)
                self._has_told = True
        if work_count or now_ns >= self._client_ns:
            self._client_ns = now_ns + self._client_interval_ns
            for guest in self._guests:
                if not guest.is_paused:
                    guest.client.invoke()

    def pause_driver(self) -> None:
        """The driver stands still: what arrives waits in its sockets."""
        self.is_working = self._has_told = False

    def resume_driver(self) -> None:
        """The driver goes on."""
        self.is_working = True

    def kill_driver(self) -> None:
        """The driver dies: its sockets close, its files stay."""
        self.is_working = False
        self._links.mailboxes["is_open"] = 0

    def restart_driver(self) -> None:
        """Another driver takes the directory of one that was killed."""
        self._seed = Random(self._seed).getrandbits(63)
        self._start()
        self._shell_ns = self._clock.now_ns()

    def close(self) -> None:
        """End the clients, then the driver."""
        for guest in self._guests:
            guest.client.close()
        self.driver.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()
