"""The replayer agent, which runs all replays in the calling thread.

    conductor --add, abort--> [ inbox ] --> runs --> [ changed ] --take_change--> conductor

The conductor and the replayer share only the two queues, so they may run in separate threads.
"""

from collections import deque
from collections.abc import Callable

from windtunnel.driver.archive.replay.replay_run import ReplayRun, ReplayState
from windtunnel.driver.client.errors import ClientTerminatedError


class Replayer:
    """Runs the duty cycles of all replays."""

    def __init__(self, on_turn: Callable[[int], object] = lambda now_ns: None) -> None:
        """Create a replayer. At the start of each duty cycle, `on_turn` is called with the time."""
        self._on_turn = on_turn
        self._runs: list[ReplayRun] = []
        self._inbox: deque[tuple[ReplayRun, bool]] = deque()
        self._changed: deque[tuple[ReplayRun, ReplayState]] = deque()

    def add(self, run: ReplayRun) -> None:
        """Add a replay. It runs for the first time in the next duty cycle."""
        self._inbox.append((run, False))

    def abort(self, run: ReplayRun) -> None:
        """Abort a replay. `take_change` then returns it like any other replay that has ended."""
        self._inbox.append((run, True))

    def do_work(self, now_ns: int) -> int:
        """Send one block of each replay. Returns the amount of work done."""
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
                work_count += self._run(run, now_ns)
            if run.state not in (before, ReplayState.RUNNING):
                self._changed.append((run, run.state))
            elif before == ReplayState.ENDED:
                self._changed.append((run, before))
            has_ended = has_ended or run.state == ReplayState.ENDED
        if has_ended:
            self._runs = [run for run in self._runs if run.state != ReplayState.ENDED]
        return work_count

    def _run(self, run: ReplayRun, now_ns: int) -> int:
        """Run one duty cycle of a replay. An unexpected error ends only this replay."""
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
        """Remove and return a replay that has opened its file (CONNECTING) or has ended. Returns
        None if no replay has changed.
        """
        return self._changed.popleft() if self._changed else None

    def close(self) -> None:
        """End every replay. Call this only when no other thread runs the replayer."""
        runs = [*self._runs, *(run for run, _ in self._inbox)]
        self._inbox.clear()
        self._runs = []
        for run in runs:
            self._abort(run)
