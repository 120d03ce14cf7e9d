"""Asynchronous name lookups by the operating system, in worker threads.

    conductor   submit() --> [requests] --> workers: getaddrinfo --> [responses] --> collect()

A Lookup changes only in `collect`, in the conductor's thread. A worker accesses no shared memory
mapping, so a blocked worker can be abandoned at shutdown. Another worker is started for each lookup
in progress, up to a limit, because one name without an answer must not delay the others. Without
worker threads (INVOKER mode), `submit` resolves the name synchronously.
"""

import threading
from collections.abc import Callable
from queue import Empty, SimpleQueue

from windtunnel.driver.base.clock import Clock
from windtunnel.driver.base.errors import DriverError
from windtunnel.driver.channel.resolver import Resolver, UnknownHostError

ResolvedAddress = tuple[str, int]
"""A numeric address and its scope id."""


class Lookup:
    """A name lookup, with its result once it is done."""

    def __init__(self, host: str, key: str) -> None:
        self.host = host
        self.key = key
        """The channel parameter or setting that contains the host name, for error messages."""
        self.duration_ns = 0
        """Duration of the lookup in nanoseconds."""
        self._outcome: ResolvedAddress | DriverError | None = None

    @property
    def is_done(self) -> bool:
        return self._outcome is not None

    def finish(self, outcome: ResolvedAddress | DriverError, duration_ns: int = 0) -> None:
        """Set the result of the lookup, which is either an address or an error."""
        self._outcome = outcome
        self.duration_ns = duration_ns

    def result(self) -> ResolvedAddress:
        """Return the resolved address of a lookup that is done, or raise its error."""
        assert self._outcome is not None, f"{self.host} is still being looked up"
        if isinstance(self._outcome, DriverError):
            raise self._outcome
        return self._outcome


_Request = tuple[Lookup, str, Callable[[Lookup], None] | None]


class Lookups:
    """A queue of name lookups, which are started in order."""

    def __init__(
        self, system: Resolver, clock: Clock, *, is_threaded: bool, workers_max: int = 1
    ) -> None:
        self._system = system
        self._clock = clock
        self._is_threaded = is_threaded
        self._workers_max = workers_max
        self._worker_count = 0
        self.in_progress = 0
        """The number of lookups that were submitted and not collected."""
        self._requests: SimpleQueue[_Request | None] = SimpleQueue()
        self._responses: SimpleQueue[tuple[_Request, ResolvedAddress | DriverError, int]] = (
            SimpleQueue()
        )

    def submit(
        self,
        host: str,
        key: str,
        name: str | None = None,
        on_done: Callable[[Lookup], None] | None = None,
    ) -> Lookup:
        """Start a lookup of `host`.

        Error messages contain `name`, or `host` if `name` is None. `collect` calls `on_done` when
        the lookup is done.
        """
        request = (Lookup(name or host, key), host, on_done)
        self.in_progress += 1
        if not self._is_threaded:
            self._resolve(request)
            self.collect()
        else:
            if self._worker_count < min(self.in_progress, self._workers_max):
                self._worker_count += 1
                threading.Thread(target=self._work, name="windtunnel-names", daemon=True).start()
            self._requests.put(request)
        return request[0]

    def collect(self) -> int:
        """Set the results of the lookups that are done. Returns the number of these lookups."""
        count = 0
        while True:
            try:
                (lookup, _, on_done), outcome, duration_ns = self._responses.get_nowait()
            except Empty:
                return count
            self.in_progress -= 1
            lookup.finish(outcome, duration_ns)
            if on_done is not None:
                on_done(lookup)
            count += 1

    def close(self) -> None:
        """Request that the worker threads stop after they have completed the lookups that were
        submitted.
        """
        for _ in range(self._worker_count):
            self._requests.put(None)

    def _work(self) -> None:
        while (request := self._requests.get()) is not None:
            self._resolve(request)

    def _resolve(self, request: _Request) -> None:
        lookup, host, _ = request
        started_ns = self._clock.now_ns()
        outcome: ResolvedAddress | DriverError
        try:
            outcome = self._system.resolve(host, lookup.key)
        except Exception as error:
            # Always respond, since a command may wait for the response. The conductor reports the
            # error.
            is_named = isinstance(error, DriverError) and lookup.host == host
            prefix = "" if is_named else f"{lookup.key}={lookup.host}: "
            outcome = UnknownHostError(f"{prefix}{error}")
        self._responses.put((request, outcome, self._clock.now_ns() - started_ns))
