"""Questions to the operating system, which may take seconds, asked where nobody waits for them.

    conductor   ask() --> [questions] --> worker: getaddrinfo --> [answers] --> collect()

A Lookup changes only in `collect`, so the conductor never sees it half done. The worker touches no
shared memory: one that hangs in a name server when the driver ends is left behind. Without a
thread the question is answered at once, for drivers that are invoked.
"""

import threading
from collections.abc import Callable
from queue import Empty, SimpleQueue

from windtunnel.driver.base.clock import Clock
from windtunnel.driver.base.errors import DriverError
from windtunnel.driver.channel.resolver import Resolver, UnknownHostError

Answer = tuple[str, int]
"""A numeric address and its scope id."""


class Lookup:
    """One question; its answer is there once it is done."""

    def __init__(self, host: str, key: str) -> None:
        self.host = host
        self.key = key
        """What the host was given for, for the text of an error."""
        self.duration_ns = 0
        """How long the operating system took."""
        self._outcome: Answer | DriverError | None = None

    @property
    def is_done(self) -> bool:
        return self._outcome is not None

    def finish(self, outcome: Answer | DriverError, duration_ns: int = 0) -> None:
        """Give the answer, or the error that stands for it."""
        self._outcome = outcome
        self.duration_ns = duration_ns

    def result(self) -> Answer:
        """The answer, or the error raised; only when done."""
        assert self._outcome is not None, f"{self.host} is still being looked up"
        if isinstance(self._outcome, DriverError):
            raise self._outcome
        return self._outcome


_Asked = tuple[Lookup, str, Callable[[Lookup], None] | None]


class Lookups:
    """One lane of questions, answered in order."""

    def __init__(self, system: Resolver, clock: Clock, *, is_threaded: bool) -> None:
        self._system = system
        self._clock = clock
        self._is_threaded = is_threaded
        self._worker: threading.Thread | None = None
        self._questions: SimpleQueue[_Asked | None] = SimpleQueue()
        self._answers: SimpleQueue[tuple[_Asked, Answer | DriverError, int]] = SimpleQueue()

    def ask(
        self,
        host: str,
        key: str,
        name: str | None = None,
        on_done: Callable[[Lookup], None] | None = None,
    ) -> Lookup:
        """Ask for a host that is called `name` when its failure is told, its own name by default.

        `on_done` is called in the turn that collects the answer.
        """
        asked = (Lookup(name or host, key), host, on_done)
        if not self._is_threaded:
            self._answer(asked)
            self.collect()
        else:
            if self._worker is None:
                self._worker = threading.Thread(
                    target=self._work, name="windtunnel-names", daemon=True
                )
                self._worker.start()
            self._questions.put(asked)
        return asked[0]

    def collect(self) -> int:
        """Hand out the answers that came in. Returns how many."""
        count = 0
        while True:
            try:
                (lookup, _, on_done), outcome, duration_ns = self._answers.get_nowait()
            except Empty:
                return count
            lookup.finish(outcome, duration_ns)
            if on_done is not None:
                on_done(lookup)
            count += 1

    def close(self) -> None:
        """Let the worker end after the question it is at."""
        self._questions.put(None)

    def _work(self) -> None:
        while (asked := self._questions.get()) is not None:
            self._answer(asked)

    def _answer(self, asked: _Asked) -> None:
        lookup, host, _ = asked
        started_ns = self._clock.now_ns()
        outcome: Answer | DriverError
        try:
            outcome = self._system.resolve(host, lookup.key)
        except Exception as error:
            # Whatever it was, somebody waits for an answer; the conductor tells of this one.
            is_named = isinstance(error, DriverError) and lookup.host == host
            prefix = "" if is_named else f"{lookup.key}={lookup.host}: "
            outcome = UnknownHostError(f"{prefix}{error}")
        self._answers.put((asked, outcome, self._clock.now_ns() - started_ns))
