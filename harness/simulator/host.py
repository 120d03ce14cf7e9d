"""A host of a simulated world: one driver whose agents the world steps, and one client.

Their directory lies in memory and is removed with them. Refuses to know the time: the clock is the
world's.
"""

from __future__ import annotations

from pathlib import Path
from types import TracebackType
from typing import Any, Self

from driver.channel.socket_address import SocketAddress
from driver.client.aeron import Aeron
from driver.client.context import ClientContext
from driver.media import link
from driver.media.channel_sockets import LinkSockets
from driver.media_driver.context import INVOKER, KIB, MIB, Context
from driver.media_driver.media_driver import MediaDriver
from harness.simulator.virtual_time import NS_PER_MS, VirtualClock
from harness.simulator.world_state import Agents

MAILBOXES = 16
RING_BYTES = 1 << 21
"""Of one mailbox, each way: a socket buffer that nothing but a defect of ours can fill."""
SHELL_INTERVAL_NS = 10 * NS_PER_MS
"""Longest time between two turns of what is Python in a conductor, as in a threaded driver."""
CLIENT_INTERVAL_NS = 16 * NS_PER_MS
"""Between two turns of a client's conductor when its driver says nothing."""


class Host:
    """One host: its driver, its client, and their turns in Python."""

    def __init__(
        self,
        name: str,
        address: str,
        directory: Path,
        clock: VirtualClock,
        seed: int,
        shell_interval_ns: int = SHELL_INTERVAL_NS,
        ring_bytes: int = RING_BYTES,
    ) -> None:
        """`shell_interval_ns` is the longest time between two turns of its Python, `ring_bytes`
        what each of its sockets holds."""
        self.name = name
        self.address = address
        self.directory = directory
        self._clock = clock
        self._shell_interval_ns = shell_interval_ns
        self._client_interval_ns = max(CLIENT_INTERVAL_NS, shell_interval_ns)
        self.errors: list[Exception] = []
        """What the client could tell nobody else."""
        self._links = link.make_links(MAILBOXES, ring_bytes)
        self.driver = MediaDriver(
            Context(
                dir=directory,
                threading_mode=INVOKER,
                perform_storage_checks=False,
                counters_buffer_length=MIB,
                loss_report_buffer_length=64 * KIB,
                # Each page of a file is touched as it is made: fewer of them, sooner done.
                file_page_size=MIB,
            ),
            clock=clock,
            sockets=LinkSockets(self._links, SocketAddress(address, 0)),
            links=self._links,
            seed=seed,
        )
        self.client = Aeron(
            context=ClientContext(dir=directory, error_handler=self.errors.append),
            clock=clock,
            invoked=True,
        )
        self._shell_ns = self._client_ns = clock.now_ns()

    @property
    def agents(self) -> Agents:
        """What the world's kernel steps."""
        conductor, sender, receiver = self.driver.agents
        return Agents(conductor, sender, receiver, self._links)

    @property
    def counter_values(self) -> Any:
        """The driver's counter values, uint8[n]."""
        return self.driver.agents[0].counters

    @property
    def next_ns(self) -> int:
        """When Python is wanted here at the latest."""
        return min(self._shell_ns, self._client_ns)

    def turn(self, *, is_wanted: bool) -> None:
        """Let driver and client do in Python what is due, or all if a kernel asked for it."""
        now_ns = self._clock.now_ns()
        work_count = 0
        if is_wanted or now_ns >= self._shell_ns:
            self._shell_ns = now_ns + self._shell_interval_ns
            work_count = self.driver.conductor.do_work(now_ns)
        if work_count or now_ns >= self._client_ns:
            self._client_ns = now_ns + self._client_interval_ns
            self.client.invoke()

    def close(self) -> None:
        """End the client, then the driver."""
        self.client.close()
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
