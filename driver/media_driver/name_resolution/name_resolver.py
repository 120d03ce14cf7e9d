"""The conductor's name resolver, which looks up unknown names asynchronously.

    resolve(host, key)    numeric ---------------------------------> address
                          NameSource.substitute(host) --> numeric -> address
                                                      '-> a name --> Lookups; NamePendingError
                                                                     until the lookup is done

A command with a pending lookup is set aside and executed again, so its lookups are kept with it
(see `waiting_commands`). Counters show the maximum duration of lookups, and the number of lookups
that took longer than a threshold. Source: spec 7.3 and 8.1, Aeron 1.53.
"""

from typing import Protocol

import numpy as np

from windtunnel.driver.base.clock import Clock
from windtunnel.driver.channel.resolver import NetworkInterface, Resolver, UnknownHostError
from windtunnel.driver.cnc import counters
from windtunnel.driver.media.name_resolver import numeric_address
from windtunnel.driver.media_driver.agent import system_counters
from windtunnel.driver.media_driver.command_error import NamePendingError
from windtunnel.driver.media_driver.name_resolution.lookups import Lookup, Lookups


class NameSource(Protocol):
    """A source of host names and addresses that does not use the operating system's resolver."""

    def substitute(self, host: str, key: str) -> str:
        """Return the name or numeric address that replaces a host. Returns the host itself if the
        source does not replace it.

        Raises UnknownHostError if the source specifies that the host has no address.
        """

    @property
    def is_polled(self) -> bool:
        """Whether `do_work` must run periodically, because other drivers send to it."""

    def do_work(self, now_ns: int) -> int:
        """Run one duty cycle of the name source. Returns the work count."""

    def close(self) -> None:
        """Close the name source."""


class EmptyNameSource:
    """A NameSource without names. The operating system's resolver looks up all hosts."""

    is_polled = False

    def substitute(self, host: str, key: str) -> str:
        return host

    def do_work(self, now_ns: int) -> int:
        return 0

    def close(self) -> None:
        pass


class CommandLookups:
    """The name lookups of one command, by host and channel parameter."""

    def __init__(self) -> None:
        self.by_name: dict[tuple[str, str], Lookup] = {}

    @property
    def is_done(self) -> bool:
        """Whether all lookups of the command are done, so that the command can run again."""
        return all(lookup.is_done for lookup in self.by_name.values())


class NameResolver:
    """The conductor's `Resolver`, with separate lookup queues for commands and re-resolution."""

    def __init__(
        self,
        names: NameSource,
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
        self._current = CommandLookups()
        self.may_submit = True
        """Whether the command being executed may start a lookup now."""

    def resolve(self, host: str, key: str) -> tuple[str, int]:
        """Return the address of a host that the current command names. Raises NamePendingError
        while the lookup is in progress.
        """
        numeric = numeric_address(host)
        if numeric is not None:
            return numeric
        self._commands.collect()
        lookups = self._current.by_name
        lookup = lookups.get((host, key))
        if lookup is None and self.may_submit:
            lookup = lookups[host, key] = self._submit(self._commands, host, key)
        if lookup is None or not lookup.is_done:
            raise NamePendingError(f"{key}={host} is being looked up")
        return lookup.result()

    def on_command_end(self) -> None:
        """Discard the finished command's lookup results. The next command starts new lookups."""
        self._current = CommandLookups()

    def exchange_lookups(self, lookups: CommandLookups | None = None) -> CommandLookups:
        """Replace the current lookups with those of another command, or with none for a new
        command. Returns the replaced lookups.
        """
        previous, self._current = self._current, lookups or CommandLookups()
        return previous

    def submit(self, host: str, key: str) -> Lookup:
        """Start a background lookup of a host for re-resolution."""
        numeric = numeric_address(host)
        if numeric is None:
            return self._submit(self._background, host, key)
        lookup = Lookup(host, key)
        lookup.finish(numeric)
        return lookup

    def interfaces(self) -> list[NetworkInterface]:
        return self._system.interfaces()

    @property
    def is_polled(self) -> bool:
        """Whether `do_work` must run periodically: for the name source, or to collect lookups."""
        in_progress = self._commands.in_progress + self._background.in_progress
        return self._names.is_polled or in_progress > 0

    def do_work(self, now_ns: int) -> int:
        """Collect finished lookups and run the name source. Returns the work count."""
        work_count = self._commands.collect() + self._background.collect()
        return work_count + self._names.do_work(now_ns)

    def close(self) -> None:
        """Stop the lookup threads and discard pending lookups."""
        self._names.close()
        self._commands.close()
        self._background.close()

    def _submit(self, lookups: Lookups, host: str, key: str) -> Lookup:
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
            return lookups.submit(substitute, key, host, self._measure)
        known.finish(numeric, self._clock.now_ns() - started_ns)
        self._measure(known)
        return known

    def _measure(self, lookup: Lookup) -> None:
        longest = system_counters.NAME_RESOLVER_MAX_TIME
        counters.propose_max_release(self._values, longest, lookup.duration_ns)
        if lookup.duration_ns > self._threshold_ns:
            exceeded = system_counters.NAME_RESOLVER_TIME_THRESHOLD_EXCEEDED
            counters.increment(self._values, exceeded)
