"""How the conductor resolves names: at once what is known, later what the system must be asked.

    resolve(host, key)    numeric ----------------------------> address
                          Names.substitute(host) --> numeric -> address
                                                 '-> a name --> Lookups; NotYetError until answered

A command whose name is still being looked up stays in the ring and is carried out again, so answers
are kept until the conductor says that the command has ended. Every look-up is measured: the longest
so far, and how many were longer than a threshold. Source: spec 7.3 and 8.1, Aeron 1.53.
"""

from typing import Protocol

import numpy as np

from windtunnel.driver.base.clock import Clock
from windtunnel.driver.channel.resolver import NetworkInterface, Resolver, UnknownHostError
from windtunnel.driver.cnc import counters
from windtunnel.driver.media.name_resolver import numeric_address
from windtunnel.driver.media_driver.agent import system_counters
from windtunnel.driver.media_driver.command_error import NotYetError
from windtunnel.driver.media_driver.name_resolution.lookups import Lookup, Lookups


class Names(Protocol):
    """What a driver knows about names without asking the system."""

    def substitute(self, host: str, key: str) -> str:
        """Another name for a host, or its numeric address, or the host itself.

        UnknownHostError when it is known to have no address.
        """

    def do_work(self, now_ns: int) -> int:
        """Take a turn; often. Returns an amount of work."""

    def close(self) -> None:
        """Give back what is open."""


class PlainNames:
    """Nothing is known: every name is for the system."""

    def substitute(self, host: str, key: str) -> str:
        return host

    def do_work(self, now_ns: int) -> int:
        return 0

    def close(self) -> None:
        pass


class NameResolver:
    """The conductor's `Resolver`; commands and re-resolution have a lane each."""

    def __init__(
        self,
        names: Names,
        system: Resolver,
        commands: Lookups,
        background: Lookups,
        values: np.ndarray,
        clock: Clock,
        threshold_ns: int,
    ) -> None:
        self._names = names
        self._system = system
        self._commands = commands
        self._background = background
        self._values = values
        self._clock = clock
        self._threshold_ns = threshold_ns
        self._asked: dict[tuple[str, str], Lookup] = {}

    def resolve(self, host: str, key: str) -> tuple[str, int]:
        """The address of a host in a client's command; NotYetError while it is looked up."""
        numeric = numeric_address(host)
        if numeric is not None:
            return numeric
        self._commands.collect()
        lookup = self._asked.get((host, key))
        if lookup is None:
            lookup = self._asked[host, key] = self._ask(self._commands, host, key)
        if not lookup.is_done:
            raise NotYetError(f"{key}={host} is being looked up")
        return lookup.result()

    def on_command_end(self) -> None:
        """A command was carried out or refused: the next one asks anew."""
        self._asked.clear()

    def submit(self, host: str, key: str) -> Lookup:
        """Look a host up again, behind whatever clients wait for."""
        numeric = numeric_address(host)
        if numeric is None:
            return self._ask(self._background, host, key)
        lookup = Lookup(host, key)
        lookup.finish(numeric)
        return lookup

    def interfaces(self) -> list[NetworkInterface]:
        return self._system.interfaces()

    def do_work(self, now_ns: int) -> int:
        """Collect answers and let the names take their turn. Returns an amount of work."""
        work_count = self._commands.collect() + self._background.collect()
        return work_count + self._names.do_work(now_ns)

    def close(self) -> None:
        """Ask nothing more; look-ups under way are forgotten."""
        self._names.close()
        self._commands.close()
        self._background.close()

    def _ask(self, lane: Lookups, host: str, key: str) -> Lookup:
        started_ns = self._clock.now_ns()
        known = Lookup(host, key)
        try:
            substitute = self._names.substitute(host, key)
        except UnknownHostError as error:
            known.finish(error, self._clock.now_ns() - started_ns)
            self._measure(known)
            return known
        numeric = numeric_address(substitute)
        if numeric is None:
            return lane.ask(substitute, key, host, self._measure)
        known.finish(numeric, self._clock.now_ns() - started_ns)
        self._measure(known)
        return known

    def _measure(self, lookup: Lookup) -> None:
        longest = system_counters.NAME_RESOLVER_MAX_TIME
        counters.propose_max_release(self._values, longest, lookup.duration_ns)
        if lookup.duration_ns > self._threshold_ns:
            exceeded = system_counters.NAME_RESOLVER_TIME_THRESHOLD_EXCEEDED
            counters.increment(self._values, exceeded)
