"""The agent that replays: all runs in turn, whoever's thread it runs in.

    conductor --add, abort--> [ inbox ] --> runs --> [ changed ] --take_change--> conductor

The two queues are all that conductor and replayer share, so each may have a thread of its own.
"""

from collections import deque
from collections.abc import Callable

from windtunnel.driver.archive.replay.replay_run import ReplayRun, ReplayState
from windtunnel.driver.client.errors import ClientTerminatedError


class Replayer:
    """Takes turns with every run."""

    def __init__(self, on_turn: Callable[[int], object] = lambda now_ns: None) -> None:
        """`on_turn` is told the time at each turn."""
        self._on_turn = on_turn
        self._runs: list[ReplayRun] = []
        self._inbox: deque[tuple[ReplayRun, bool]] = deque()
        self._changed: deque[tuple[ReplayRun, ReplayState]] = deque()

    def add(self, run: ReplayRun) -> None:
        """Run that from now on."""
        self._inbox.append((run, False))

    def abort(self, run: ReplayRun) -> None:
        """End it; it is told by `take_change` like one that ended by itself."""
        self._inbox.append((run, True))

    def do_work(self, now_ns: int) -> int:
        """One block of each run. Returns an amount of work."""
        self._on_turn(now_ns)
        work_count = 0
        while self._inbox:
            run, is_over = self._inbox.popleft()
            work_count += 1
            if is_over:
                self._abort(run)
            else:
                self._runs.append(run)
        has_ended = False
        for run in self._runs:
            before = run.state
            if before != ReplayState.ENDED:
                work_count += self._turn(run, now_ns)
            if run.state not in (before, ReplayState.RUNNING):
                self._changed.append((run, run.state))
            elif before == ReplayState.ENDED:
                self._changed.append((run, before))
            has_ended = has_ended or run.state == ReplayState.ENDED
        if has_ended:
            self._runs = [run for run in self._runs if run.state != ReplayState.ENDED]
        return work_count

    def _turn(self, run: ReplayRun, now_ns: int) -> int:
        """One block; an error that nobody foresaw ends this replay alone."""
        try:
            return run.do_work(now_ns)
        except ClientTerminatedError:
            raise
        except Exception as error:
            run.fail(error)
            return 1

    def _abort(self, run: ReplayRun) -> None:
        try:
            run.abort()
        except Exception as error:
            run.fail(error)

    def take_change(self) -> tuple[ReplayRun, ReplayState] | None:
        """A run that may be said to have begun (CONNECTING), or that has ended."""
        return self._changed.popleft() if self._changed else None

    def close(self) -> None:
        """End every run; nobody else takes turns any more."""
        runs = [*self._runs, *(run for run, _ in self._inbox)]
        self._inbox.clear()
        self._runs = []
        for run in runs:
            self._abort(run)
