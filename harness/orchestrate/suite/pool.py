"""Runs made one after the other here, or several at once in processes of their own.

    orders --> worker 1 --\\
           --> worker 2 ----> events as they come, and what came of each run
           --> worker n --/

Runs share nothing: each has a lab of its own name and addresses, and each worker is an interpreter
that makes one run at a time. A signal reaches this process alone; it asks the workers to end, and
waits until each has tidied up. A worker that dies costs its run; the keeper of its lab cleans up.
"""

from __future__ import annotations

import contextlib
import os
import signal
import socket
import sys
import time
from collections import deque
from collections.abc import Callable, Sequence
from multiprocessing.connection import Connection, wait

from windtunnel.harness.installation import ROOT
from windtunnel.harness.orchestrate.cancel import Cancellation
from windtunnel.harness.orchestrate.event import OnEvent, RunEvent
from windtunnel.harness.orchestrate.labs.namespaces import environment
from windtunnel.harness.orchestrate.processes import fork_server_client
from windtunnel.harness.orchestrate.processes.process import Companion
from windtunnel.harness.orchestrate.run.one_run import CANCELLED, RunResult, make_run, teller
from windtunnel.harness.orchestrate.run.run_spec import RunSpec
from windtunnel.harness.orchestrate.suite import worker

OnMade = Callable[[int, RunResult], None]
"""Is told the index of an order and what came of it."""

WORKER = worker.__name__
END_TIMEOUT_S = 400.0
"""Longer than any way back of a run: all its waits for processes to end."""


def jobs_by_default() -> int:
    """Return how many runs at once this machine carries: two drivers and a relay want two cores."""
    return max(1, len(os.sched_getaffinity(0)) // 2)


def make_runs(
    orders: Sequence[RunSpec],
    *,
    jobs: int,
    on_event: OnEvent,
    on_made: OnMade,
    cancellation: Cancellation,
) -> None:
    """Make all runs, at most `jobs` at once; raises Cancelled after all is tidied up and told."""
    if jobs == 1 or len(orders) == 1:
        for index, order in enumerate(orders):
            if index == 1:
                fork_server_client.warm()
            tell = teller(order, index, len(orders), on_event)
            make_run(order, tell, cancellation, _telling(index, on_made))
        return
    crew = _Crew(orders, min(jobs, len(orders)), on_event, on_made, cancellation)
    try:
        crew.work()
    finally:
        with cancellation.shielded():
            crew.end()


def _telling(index: int, on_made: OnMade) -> Callable[[RunResult], None]:
    return lambda made: on_made(index, made)


def _to_nobody(*_: object) -> None:
    """Who listens to what is not told any more."""


class _Worker:
    """A process that makes runs, and the one it is at, if any."""

    def __init__(self, count: int) -> None:
        ours, theirs = socket.socketpair()
        argv = [sys.executable, "-m", WORKER]
        argv += [str(theirs.fileno()), str(count), str(os.getpid())]
        self._process = Companion(argv, env=environment(), cwd=ROOT, keep=theirs.fileno())
        theirs.close()
        self.connection = Connection(ours.detach())
        self.index: int | None = None
        self.started_ns = 0

    def take(self, index: int, order: RunSpec) -> None:
        self.index, self.started_ns = index, time.time_ns()
        # One that has died is found out by listening to it.
        with contextlib.suppress(OSError):
            self.connection.send((index, order))

    def ask_to_end(self) -> None:
        with contextlib.suppress(OSError):
            self.connection.send(None)
        if self.index is not None:
            self._process.terminate()

    def reap(self, timeout_s: float) -> int:
        """Return the exit code; minus a signal's number, such as ours if it had to be killed."""
        code = self._process.end(timeout_s)
        self.connection.close()
        return code


class _Crew:
    """The workers, and the orders that none has taken yet."""

    def __init__(
        self,
        orders: Sequence[RunSpec],
        size: int,
        on_event: OnEvent,
        on_made: OnMade,
        cancellation: Cancellation,
    ) -> None:
        self._orders = orders
        self._waiting = deque(range(len(orders)))
        self._size = size
        self._on_event = on_event
        self._on_made = on_made
        self._cancellation = cancellation
        self._workers: list[_Worker] = []
        self._is_ending = False

    def work(self) -> None:
        """Return when every order is made."""
        while True:
            with self._cancellation.shielded():
                self._hand_out()
            if not self._busy():
                return
            ready = wait([each.connection for each in self._workers])
            # A message that is half read when a signal comes would spoil all that follow it.
            with self._cancellation.shielded():
                self._listen(ready)

    def _busy(self) -> list[_Worker]:
        return [each for each in self._workers if each.index is not None]

    def _hand_out(self) -> None:
        idle = [each for each in self._workers if each.index is None]
        while self._waiting and (idle or len(self._workers) < self._size):
            if not idle:
                self._workers.append(_Worker(len(self._orders)))
                idle.append(self._workers[-1])
            index = self._waiting.popleft()
            idle.pop().take(index, self._orders[index])

    def _listen(self, ready: Sequence[object]) -> None:
        for speaker in [each for each in self._workers if each.connection in ready]:
            try:
                message = speaker.connection.recv()
            except (EOFError, OSError):
                self._bury(speaker)
            else:
                self._hear(speaker, message)

    def _hear(self, speaker: _Worker, message: RunEvent | RunResult) -> None:
        if isinstance(message, RunEvent):
            self._on_event(message)
        elif speaker.index is not None:
            index, speaker.index = speaker.index, None
            self._on_made(index, message)

    def _bury(self, dead: _Worker) -> None:
        """Part with a worker that has ended, and tell what its run came to if it was at one."""
        self._workers.remove(dead)
        code = dead.reap(END_TIMEOUT_S)
        if dead.index is None:
            return
        outcome, text = "HARNESS", f"the process that made the run ended with exit code {code}"
        if self._is_ending and code in (0, -signal.SIGTERM):
            outcome, text = CANCELLED, "cancelled before its begin"
        self._on_made(dead.index, RunResult(outcome, text, dead.started_ns, time.time_ns()))

    def end(self) -> None:
        """Have all workers end, those in the middle of a run by its way back."""
        self._is_ending = True
        for each in self._workers:
            each.ask_to_end()
        deadline_s = time.monotonic() + END_TIMEOUT_S
        failure: Exception | None = None
        while self._workers and (left_s := deadline_s - time.monotonic()) > 0:
            try:
                self._listen(wait([each.connection for each in self._workers], left_s))
            except Exception as error:
                # Who breaks down is told no more; the workers must tidy up all the same.
                failure, self._on_event, self._on_made = error, _to_nobody, _to_nobody
        for each in self._workers:
            each.reap(0.0)
        if failure is not None:
            raise failure
