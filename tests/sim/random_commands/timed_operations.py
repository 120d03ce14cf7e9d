"""Random operations in which time passes."""

from collections.abc import Sequence
from itertools import chain
from random import Random

from tests.peer.random_commands.channels import Places
from tests.peer.random_commands.drivers import DriverUnderTest
from tests.peer.random_commands.operations import Operations
from tests.sim.random_commands.simulated_hosts import (
    CLIENT_LIVENESS_NS,
    IMAGE_LIVENESS_NS,
    MS,
    UNBLOCK_NS,
    Worlds,
)
from windtunnel.driver.logbuffer import appender

MARGIN_NS = 1_000 * MS
"""Drivers look for timeouts every so often, and not at the same time as each other."""
KEEPALIVE_NS = 500 * MS


class TimedOperations(Operations):
    """Operations of the clients on a simulated host, and of the host itself."""

    def __init__(
        self, random: Random, worlds: Worlds, index: int, drivers: Sequence[DriverUnderTest],
        places: Places, peers: Sequence[Operations],
    ) -> None:  # fmt: skip
        super().__init__(random, drivers, places, peers)
        self._worlds, self._index = worlds, index
        self._kinds += [
            (4, self._wait), (3, self._fall_silent), (4, self._pause), (4, self._abandon_claim),
        ]  # fmt: skip

    def keep_alive(self) -> None:
        for driver in self._drivers:
            driver.keep_alive(self.clients)

    def _pass_time(self, length_ns: int) -> None:
        """Let time pass, in which all clients but those that fell silent send keepalives."""
        while length_ns > 0:
            for each in (self, *self._peers):
                each.keep_alive()
            self._worlds.advance(min(length_ns, KEEPALIVE_NS))
            for driver in chain(*(each._drivers for each in (self, *self._peers))):
                driver.receive()
            length_ns -= KEEPALIVE_NS

    def _wait(self) -> None:
        length_ms = self._random.choice((10, 300, 1_500, 4_000, 15_000))
        self.done.append(f"wait {length_ms} ms")
        self._pass_time(length_ms * MS)

    def _fall_silent(self) -> None:
        """Let a client die: the drivers free what it owns."""
        if len(self.clients) < 2:
            return
        client = self._random.choice(self.clients)
        self._forget_client(client)
        self.done.append(f"{client} dies")
        self._pass_time(CLIENT_LIVENESS_NS + MARGIN_NS)

    def _pause(self) -> None:
        """Pause the driver. Its clients go on, and so do the other hosts.

        After a long pause, the driver times them out before it reads their keepalives.
        """
        lengths = (100 * MS, IMAGE_LIVENESS_NS // 2, IMAGE_LIVENESS_NS + MARGIN_NS)
        length_ns = self._random.choice(lengths)
        self.done.append(f"pause of {length_ns // MS} ms")
        self._worlds.pause(self._index)
        self._pass_time(length_ns)
        self._worlds.resume(self._index)
        if length_ns > CLIENT_LIVENESS_NS:
            for client in list(self.clients):
                self._forget_client(client)
        self._pass_time(MARGIN_NS)

    def _abandon_claim(self) -> None:
        """Claim space in the log of a publication, and leave it to the drivers."""
        name = self._one_of(self._ready_publications())
        if not name:
            return
        length, limit, results = self._random.choice((1, 100)), self._limit(name), []

        def claim(driver: DriverUnderTest) -> None:
            log, rows = driver.log_of(name)
            results.append(int(appender.claim(rows, log, limit, length)))

        self._on_all(f"claim of {length} bytes of {name}", claim)
        assert results[0] == results[1], f"positions: {results}"
        self._pass_time(UNBLOCK_NS + MARGIN_NS)
