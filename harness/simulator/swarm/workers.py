"""Runs swarm trials in worker processes that may die, for example in a real driver's native code.

    seeds --chunk--> worker --a result per trial, then None--> caller
                       `-- dies: the first trial without a result ended it;
                           a new worker continues with the next trial

A worker prints to a file of its own, whose end becomes part of the description of its death.
"""

from __future__ import annotations

import ctypes
import multiprocessing
import os
import signal
import sys
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from multiprocessing.connection import Connection, wait
from multiprocessing.process import BaseProcess
from pathlib import Path

from windtunnel.harness.simulator.support import Unsupported
from windtunnel.harness.simulator.swarm.result import Result

OUTPUT_LENGTH_MAX = 2_000
_PR_SET_PDEATHSIG = 1

RunChunk = Callable[[list[int]], Iterable[Result]]
"""Runs the trials of the given seeds in a worker."""


@dataclass(eq=False)
class _Worker:
    """A worker process, with the seeds whose trials it has not finished."""

    process: BaseProcess
    connection: Connection
    output: Path
    seeds: list[int] = field(default_factory=list)


class Workers:
    """Processes that run chunks of trials. A process that dies is replaced."""

    def __init__(
        self, jobs: int, run: RunChunk, on_death: Callable[[int, str, bool], Result], memory: Path
    ) -> None:
        """Prepare `jobs` processes, which call `run`.

        `on_death` makes the result of a trial whose process died from its seed, a description, and
        whether a program in the process caused it.
        """
        self._jobs, self._run, self._on_death, self._memory = jobs, run, on_death, memory
        self._context = multiprocessing.get_context("spawn")
        self._workers: list[_Worker] = []
        self._started = 0

    def results(self, chunks: Iterator[list[int]]) -> Iterator[Result]:
        """Run all chunks. Yields each trial's result when it arrives.

        Raises Unsupported if the trials cannot run on this machine.
        """
        try:
            for seeds in chunks:
                self._give(self._start(), seeds)
                if len(self._workers) == self._jobs:
                    break
            while self._workers:
                for ready in wait([each.connection for each in self._workers]):
                    worker = next(each for each in self._workers if each.connection is ready)
                    yield from self._receive(worker, chunks)
        finally:
            for each in self._workers:
                each.process.kill()
                each.process.join()

    def _start(self) -> _Worker:
        own, other = self._context.Pipe()
        output = self._memory / f"worker-{self._started}.txt"
        self._started += 1
        arguments = (other, os.getpid(), output, self._run)
        process = self._context.Process(target=_serve, args=arguments)
        process.start()
        other.close()
        self._workers.append(_Worker(process, own, output))
        return self._workers[-1]

    def _give(self, worker: _Worker, seeds: list[int]) -> None:
        worker.seeds = list(seeds)
        worker.connection.send(worker.seeds)

    def _receive(self, worker: _Worker, chunks: Iterator[list[int]]) -> Iterator[Result]:
        """Receive a message of a worker, and yield the result in it, if any."""
        try:
            message = worker.connection.recv()
        except (EOFError, ConnectionResetError):
            yield from self._replace(worker)
            return
        if isinstance(message, Unsupported):
            raise message
        if message is not None:
            worker.seeds.remove(message.seed)
            yield message
            return
        worker.seeds = []
        following = next(chunks, None)
        if following is not None:
            self._give(worker, following)
        else:
            self._end(worker)

    def _replace(self, worker: _Worker) -> Iterator[Result]:
        """Yield the result of the trial that ended a worker, and start another worker in place of
        it.
        """
        self._end(worker)
        code = worker.process.exitcode or 0
        seed, *rest = worker.seeds
        text, is_native = describe_death(code)
        output = worker.output.read_text(encoding="utf-8", errors="replace")
        yield self._on_death(seed, f"{text} {output[-OUTPUT_LENGTH_MAX:]}".strip(), is_native)
        # An empty chunk makes the new worker ask for the next one.
        self._give(self._start(), rest)

    def _end(self, worker: _Worker) -> None:
        self._workers.remove(worker)
        worker.connection.close()
        worker.process.join()


def describe_death(code: int) -> tuple[str, bool]:
    """Describe how a process died. Returns the description, and whether a program in the process
    caused it.

    A negative exit code is that of a signal. The system kills processes with SIGKILL, for example
    if memory is exhausted.
    """
    if code < 0:
        name = signal.Signals(-code).name
        return f"the process of the trial died of {name}.", -code != signal.SIGKILL
    return f"the process of the trial ended with exit code {code}.", False


def _serve(connection: Connection, parent: int, output: Path, run: RunChunk) -> None:
    """Run chunks until the caller closes the connection."""
    _die_with_parent(parent)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    file = os.open(output, os.O_CREAT | os.O_WRONLY | os.O_TRUNC | os.O_APPEND, 0o600)
    sys.stdout.flush()
    sys.stderr.flush()
    os.dup2(file, 1)
    os.dup2(file, 2)
    while True:
        try:
            seeds = connection.recv()
        except EOFError:
            return
        os.ftruncate(file, 0)
        try:
            for result in run(seeds):
                connection.send(result)
            connection.send(None)
        except Unsupported as error:
            connection.send(error)


def _die_with_parent(parent: int) -> None:
    """Have the Linux kernel kill this process when the parent process dies.

    A worker whose parent has died would otherwise wait for work forever and keep its memory.
    """
    libc = ctypes.CDLL(None)
    if hasattr(libc, "prctl"):
        libc.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != parent:  # The parent died before prctl took effect.
        os.kill(os.getpid(), signal.SIGKILL)
