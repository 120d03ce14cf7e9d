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
from windtunnel.harness.bench.plan import ECHO_RATE, BenchCase, Channels, Kind, stream_id
from windtunnel.harness.orchestrate.processes.process import LocalProcess

ROLES: dict[Kind, tuple[str, str]] = {
    "stream": ("source", "sink"),
    "echo": ("ping", "pong"),
    "offer": ("offer", "offer"),
    "poll": ("poll", "poll"),
    "archive": ("archive", "archive"),
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
        channels: Channels,
        idle: str,
        limit_s: float,
        environment: Mapping[str, str],
        more: tuple[str, ...] = (),
    ) -> None:
        self._folder = folder
        self._case, self._channels = case, channels
        self._arguments = [
            *("--aeron-dir", str(aeron_dir)),
            *("--reply-channel", channels.replies),
            *("--stream-id", str(stream_id(case))),
            *("--message-length", str(case.message_length)),
            *("--streams", str(case.streams)),
            *("--sources", str(case.sources)),
            *("--idle", idle),
            *("--limit", str(limit_s)),
            *more,
        ]
        self._environment = environment
        self._sender, self._receiver = ROLES[case.kind]
        self.boards: dict[str, Board] = {}
        """The counter boards by the names of their load generators."""
        self._processes: dict[str, LocalProcess] = {}
        self._senders = _names(self._sender, case.sources)
        self._receivers = _names(self._receiver, case.sinks)
        self._counting = self._receivers if case.kind == "stream" else self._senders

    def __enter__(self) -> Self:
        self._folder.mkdir(parents=True, exist_ok=True)
        try:
            for index, name in enumerate(self._senders):
                self._start(name, self._sender, self._sender_arguments(index))
            if self._receiver != self._sender:
                for name, channel in zip(self._receivers, self._channels.sinks, strict=True):
                    self._start(name, self._receiver, ["--channel", channel])
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

    def _sender_arguments(self, index: int) -> list[str]:
        """Return the arguments that only senders have. `index` is the index of the sender."""
        arguments = ["--channel", self._channels.sources]
        if self._sender == "source":
            arguments += ["--source", str(index)]
        return [*arguments, "--rate", str(ECHO_RATE)] if self._sender == "ping" else arguments

    def _start(self, name: str, role: str, arguments: list[str]) -> None:
        board = self.boards[name] = Board.create(self._folder / f"{name}.board")
        command = [sys.executable, "-m", "windtunnel.harness.workload.bench.bench_load", role]
        self._processes[name] = LocalProcess(
            name,
            [*command, "--board", str(board.path), *self._arguments, *arguments],
            env=self._environment,
            cwd=Path.cwd(),
            log=self._folder / f"{name}.log",
        )

    def _kill(self) -> None:
        for process in self._processes.values():
            with contextlib.suppress(OSError):
                process.kill()

    @property
    def count(self) -> int:
        """The number of messages that have arrived in order at each receiver, or of completed round
        trips.
        """
        return min(self.boards[each].message_count for each in self._counting)

    @property
    def board(self) -> Board:
        """The shared file (counter board) in which a load generator counts messages or round
        trips, the first one if there are several.
        """
        return self.boards[self._counting[0]]

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
        senders = [self.boards[each] for each in self._senders]
        receivers = [self.boards[each] for each in self._receivers]
        for board in senders:
            board.order = Command.STOP
        self.wait(
            lambda: all(board.state is State.ENDED for board in senders),
            DRAIN_LIMIT_S,
            "the sender did not stop",
        )
        sent = sum(board.message_count for board in senders)
        self.wait(
            lambda: all(board.message_count >= sent for board in receivers),
            DRAIN_LIMIT_S,
            f"not all of the {sent} messages sent arrived",
        )
        for board in receivers:
            # The ping process may stop after an offer, before its message has returned.
            if board.message_count > sent + (self._sender == "ping"):
                raise MeasurementError(f"sent {sent} messages, received {board.message_count}")

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


def _names(role: str, count: int) -> list[str]:
    """Return the names of the load generators of a role."""
    return [role] if count == 1 else [f"{role}-{index}" for index in range(count)]
