"""The load generators for one measurement. Each is a process that counts messages in a shared file.

    with Loads(case, ...) as loads:
        loads.wait_until_flowing()
        loads.count        messages or round trips so far
        loads.finish()     stop, or raise MeasurementError if a message is missing

Every failure is a MeasurementError: a load generator exited or reported a fault, or a wait timed
out.
"""

import contextlib
import sys
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from types import TracebackType
from typing import Self

from windtunnel.harness.artifact.run.bench_board import Board, Command, Fault, State
from windtunnel.harness.bench.plan import BenchCase, Kind, stream_id
from windtunnel.harness.orchestrate.processes.process import LocalProcess

ROLES: dict[Kind, tuple[str, ...]] = {
    "stream": ("source", "sink"),
    "echo": ("ping", "pong"),
    "offer": ("offer",),
    "poll": ("poll",),
    "archive": ("archive",),
}
"""The roles of sender and receiver for each kind of case. A single load generator has both
roles.
"""

LOOK_S = 0.002
FLOW_LIMIT_S = 180.0
"""Timeout in seconds for the first message, long enough to compile kernels."""
DRAIN_LIMIT_S = 10.0
END_LIMIT_S = 15.0


class MeasurementError(Exception):
    """A measurement is invalid. The message gives the reason."""


class Loads:
    """The load generator processes for one driver or archive, as a context manager."""

    def __init__(
        self,
        case: BenchCase,
        folder: Path,
        *,
        aeron_dir: Path,
        channels: tuple[str, str],
        idle: str,
        limit_s: float,
        environment: Mapping[str, str],
        more: tuple[str, ...] = (),
    ) -> None:
        self._folder = folder
        self._arguments = [
            *("--aeron-dir", str(aeron_dir)),
            *("--channel", channels[0]),
            *("--reply-channel", channels[1]),
            *("--stream-id", str(stream_id(case))),
            *("--message-length", str(case.message_length)),
            *("--idle", idle),
            *("--limit", str(limit_s)),
            *more,
        ]
        self._environment = environment
        self._roles = ROLES[case.kind]
        self.boards: dict[str, Board] = {}
        self._processes: dict[str, LocalProcess] = {}
        self._counting = self._roles[1] if case.kind == "stream" else self._roles[0]

    def __enter__(self) -> Self:
        self._folder.mkdir(parents=True, exist_ok=True)
        try:
            for role in self._roles:
                self._start(role)
        except BaseException:
            self._kill()
            raise
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if kind is None:
            for board in self.boards.values():
                board.order = Command.LEAVE
            for process in self._processes.values():
                process.wait(END_LIMIT_S)
        self._kill()

    def _start(self, role: str) -> None:
        board = self.boards[role] = Board.create(self._folder / f"{role}.board")
        command = [sys.executable, "-m", "windtunnel.harness.workload.bench.bench_load", role]
        self._processes[role] = LocalProcess(
            role,
            [*command, "--board", str(board.path), *self._arguments],
            env=self._environment,
            cwd=Path.cwd(),
            log=self._folder / f"{role}.log",
        )

    def _kill(self) -> None:
        for process in self._processes.values():
            with contextlib.suppress(OSError):
                process.kill()

    @property
    def count(self) -> int:
        """The number of messages that have arrived in order, or of completed round trips."""
        return self.boards[self._counting].message_count

    @property
    def board(self) -> Board:
        """The shared file (counter board) in which a load generator counts messages or round
        trips.
        """
        return self.boards[self._counting]

    def check(self) -> None:
        """Raise MeasurementError if a load generator has ended or has reported a fault."""
        for role, board in self.boards.items():
            if board.fault is not Fault.NONE:
                raise MeasurementError(f"{role}: {board.fault_text}")
        for role, process in self._processes.items():
            code = process.poll()
            if code is not None:
                tail = process.tail(1)
                raise MeasurementError(f"{role} ended with exit code {code}: {tail}")

    def wait_until_flowing(self) -> None:
        """Wait until the first messages have arrived. Raises MeasurementError if a load generator
        fails or the timeout expires.
        """
        self.wait(lambda: self.count > 0, FLOW_LIMIT_S, "no message has arrived")

    def sleep(self, seconds: float) -> None:
        """Sleep while the load generators run, then check that none has failed."""
        time.sleep(seconds)
        self.check()

    def finish(self) -> None:
        """Stop sending, and wait until every sent message has arrived. Raises MeasurementError if a
        message is missing or a load generator fails.
        """
        first, second = (self.boards[role] for role in (self._roles[0], self._roles[-1]))
        first.order = Command.STOP
        self.wait(lambda: first.state is State.ENDED, DRAIN_LIMIT_S, "the sender did not stop")
        sent = first.message_count
        self.wait(
            lambda: second.message_count >= sent,
            DRAIN_LIMIT_S,
            f"not all of the {sent} messages sent arrived",
        )
        # The ping process may stop after an offer, before its message has returned.
        if second.message_count > sent + (self._roles[0] == "ping"):
            raise MeasurementError(f"sent {sent} messages, received {second.message_count}")

    def wait(
        self,
        condition: Callable[[], bool],
        limit_s: float,
        problem: str,
    ) -> None:
        """Wait for a condition. Raises MeasurementError if a load generator fails or the timeout
        expires.
        """
        deadline_s = time.monotonic() + limit_s
        while not condition():
            self.check()
            if time.monotonic() > deadline_s:
                raise MeasurementError(f"{problem} within {limit_s:g} s")
            time.sleep(LOOK_S)
