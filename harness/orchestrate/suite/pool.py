"""Executes runs, sequentially in this process or in parallel in worker processes.

    specs --> worker 1 --\\
          --> worker 2 ----> events, and the result of each run
          --> worker n --/

Runs share nothing: each has a lab with its own name and addresses, and each worker is an
interpreter that executes one run at a time. Only this process receives signals. It then requests
the workers to end, and waits until all of them have cleaned up. If a worker dies, its run is lost,
and the cleanup watchdog removes its lab.
"""

from __future__ import annotations

import contextlib
import os
import signal
import socket
import sys
import time
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from multiprocessing.connection import Connection, wait
from types import MappingProxyType

from windtunnel.harness.installation import ROOT
from windtunnel.harness.orchestrate.cancel import Cancellation
from windtunnel.harness.orchestrate.event import OnEvent, RunEvent
from windtunnel.harness.orchestrate.labs.namespaces import environment
from windtunnel.harness.orchestrate.processes import fork_server_client
from windtunnel.harness.orchestrate.processes.process import HelperProcess
from windtunnel.harness.orchestrate.run.one_run import (
    CANCELLED,
    RunResult,
    event_emitter,
    execute_run,
)
from windtunnel.harness.orchestrate.run.run_spec import RunSpec
from windtunnel.harness.orchestrate.suite import worker

OnResult = Callable[[int, RunResult], None]
"""A callback that receives the index of a specification and the result of its run."""

WORKER = worker.__name__
END_TIMEOUT_S = 400.0
"""Time limit for a worker to end. It is longer than a run takes to finish, including all waits."""


def default_jobs() -> int:
    """Return the default number of parallel runs: half the number of processors."""
    return max(1, len(os.sched_getaffinity(0)) // 2)


def execute_runs(
    specs: Sequence[RunSpec],
    *,
    jobs: int,
    on_event: OnEvent,
    on_result: OnResult,
    cancellation: Cancellation,
) -> None:
    """Execute all runs, up to `jobs` in parallel. Raises Cancelled after cleanup if cancelled."""
    if jobs == 1 or len(specs) == 1:
        for index, spec in enumerate(specs):
            if index == 1:
                fork_server_client.load_kernels()
            emit = event_emitter(spec, index, len(specs), on_event)
            execute_run(spec, emit, cancellation, _with_index(index, on_result))
        return
    workers = _WorkerPool(specs, min(jobs, len(specs)), on_event, on_result, cancellation)
    try:
        workers.work()
    finally:
        with cancellation.shielded():
            workers.end()


def _with_index(index: int, on_result: OnResult) -> Callable[[RunResult], None]:
    return lambda result: on_result(index, result)


def _ignore(*_: object) -> None:
    """Do nothing. This function replaces the callbacks after one of them has failed."""


class Worker:
    """A worker process, and the index of its current run, or None if it is idle."""

    def __init__(self, count: int, variables: Mapping[str, str] = MappingProxyType({})) -> None:
        """Start a worker for `count` runs, with additional environment variables."""
        own_socket, child_socket = socket.socketpair()
        env = {**environment(), **variables}
        argv = [sys.executable, "-m", WORKER]
        argv += [str(child_socket.fileno()), str(count), str(os.getpid())]
        self._process = HelperProcess(argv, env=env, cwd=ROOT, keep=child_socket.fileno())
        child_socket.close()
        self.connection = Connection(own_socket.detach())
        self.index: int | None = None
        self.started_ns = 0

    def assign(self, index: int, spec: RunSpec) -> None:
        """Have an idle worker execute a run."""
        self.index, self.started_ns = index, time.time_ns()
        # A worker's death is detected when its connection is read.
        with contextlib.suppress(OSError):
            self.connection.send((index, spec))

    def request_end(self) -> None:
        """Have the worker end. A run in progress is cancelled."""
        with contextlib.suppress(OSError):
            self.connection.send(None)
        if self.index is not None:
            self._process.terminate()

    def reap(self, timeout_s: float) -> int:
        """Wait until the worker ends, and kill it on timeout. Returns its exit code."""
        code = self._process.end(timeout_s)
        self.connection.close()
        return code


class _WorkerPool:
    """A pool of worker processes, and the specifications of the runs that no worker executes
    yet.
    """

    def __init__(
        self,
        specs: Sequence[RunSpec],
        size: int,
        on_event: OnEvent,
        on_result: OnResult,
        cancellation: Cancellation,
    ) -> None:
        self._specs = specs
        self._waiting = deque(range(len(specs)))
        self._size = size
        self._on_event = on_event
        self._on_result = on_result
        self._cancellation = cancellation
        self._workers: list[Worker] = []
        self._is_ending = False

    def work(self) -> None:
        """Assign runs to workers until all runs have ended."""
        while True:
            with self._cancellation.shielded():
                self._assign_runs()
            if not self._busy():
                return
            ready = wait([each.connection for each in self._workers])
            # A signal in the middle of a message would corrupt all later messages.
            with self._cancellation.shielded():
                self._receive(ready)

    def _busy(self) -> list[Worker]:
        return [each for each in self._workers if each.index is not None]

    def _assign_runs(self) -> None:
        idle = [each for each in self._workers if each.index is None]
        while self._waiting and (idle or len(self._workers) < self._size):
            if not idle:
                self._workers.append(Worker(len(self._specs)))
                idle.append(self._workers[-1])
            index = self._waiting.popleft()
            idle.pop().assign(index, self._specs[index])

    def _receive(self, ready: Sequence[object]) -> None:
        for sender in [each for each in self._workers if each.connection in ready]:
            try:
                message = sender.connection.recv()
            except (EOFError, OSError):
                self._remove_worker(sender)
            else:
                self._handle_message(sender, message)

    def _handle_message(self, sender: Worker, message: RunEvent | RunResult) -> None:
        if isinstance(message, RunEvent):
            self._on_event(message)
        elif sender.index is not None:
            index, sender.index = sender.index, None
            self._on_result(index, message)

    def _remove_worker(self, dead: Worker) -> None:
        """Remove a worker process that has ended. If a run was assigned to it, report the run as
        failed or cancelled.
        """
        self._workers.remove(dead)
        code = dead.reap(END_TIMEOUT_S)
        if dead.index is None:
            return
        outcome, text = "HARNESS", f"the worker process of the run ended with exit code {code}"
        if self._is_ending and code in (0, -signal.SIGTERM):
            outcome, text = CANCELLED, "cancelled before its start"
        self._on_result(dead.index, RunResult(outcome, text, dead.started_ns, time.time_ns()))

    def end(self) -> None:
        """End all workers. A worker that is executing a run finishes it first."""
        self._is_ending = True
        for each in self._workers:
            each.request_end()
        deadline_s = time.monotonic() + END_TIMEOUT_S
        failure: Exception | None = None
        while self._workers and (left_s := deadline_s - time.monotonic()) > 0:
            try:
                self._receive(wait([each.connection for each in self._workers], left_s))
            except Exception as error:
                # A callback that has failed is not called again, but the workers must still clean
                # up.
                failure, self._on_event, self._on_result = error, _ignore, _ignore
        for each in self._workers:
            each.reap(0.0)
        if failure is not None:
            raise failure
