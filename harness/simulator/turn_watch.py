"""Detects code in a simulation that runs forever while virtual time stands still.

    watching thread, every POLL_S:  time has moved                    -> restart the count
                                    more than CPU_LIMIT_S were used   -> on_stuck, in this thread

Virtual time does not move while the processor works, so no timeout on virtual time can end such a
run. The limit is CPU time of this process, which does not depend on the machine's load. Time in
which a kernel is compiled does not count.

Neither compiled code nor Python code can be interrupted from outside, so `on_stuck` must end
the process.
"""

from __future__ import annotations

import os
import sys
import threading
import time
from collections.abc import Callable
from functools import cache
from types import FrameType
from typing import Self

CPU_LIMIT_S = 20.0
"""Maximum CPU time at one virtual time. A turn takes microseconds, and Python code milliseconds."""
POLL_S = 0.5
_COMPILER = "numba"

OnStuck = Callable[[float, FrameType | None], None]
"""Function that receives the CPU time in seconds, and the frame of the watched thread."""


class TurnWatch:
    """Watches, during its context, the thread that entered it."""

    def __init__(
        self,
        now_ns: Callable[[], int],
        on_stuck: OnStuck,
        *,
        cpu_s: Callable[[], float] = time.process_time,
        limit_s: float = CPU_LIMIT_S,
        poll_s: float = POLL_S,
    ) -> None:
        """Prepare a watch. `now_ns` returns the virtual time, `cpu_s` the CPU time of the process.

        `on_stuck` is called once, in another thread.
        """
        self._now_ns, self._on_stuck, self._cpu_s = now_ns, on_stuck, cpu_s
        self._limit_s, self._poll_s = limit_s, poll_s
        self._since_ns, self._since_s = 0, 0.0
        self._watched = 0
        self._is_told = False

    def __enter__(self) -> Self:
        self._watched = threading.get_ident()
        self._since_ns, self._since_s = self._now_ns(), self._cpu_s()
        _poller(os.getpid(), self._poll_s).add(self)
        return self

    def __exit__(self, *_: object) -> None:
        _poller(os.getpid(), self._poll_s).remove(self)

    def look(self) -> None:
        """Compare virtual time and CPU time with those of the last look. Reports stuck code."""
        now_ns, cpu_s = self._now_ns(), self._cpu_s()
        frame = sys._current_frames().get(self._watched)
        if now_ns != self._since_ns or _is_compiling(frame):
            self._since_ns, self._since_s = now_ns, cpu_s
        elif cpu_s - self._since_s > self._limit_s and not self._is_told:
            self._is_told = True
            self._on_stuck(cpu_s - self._since_s, frame)


class _Poller:
    """Looks at all current watches from one thread, which ends once there are none.

    A swarm enters a watch for each of its short trials, and a thread for each would cost more.
    """

    def __init__(self, poll_s: float) -> None:
        self._poll_s = poll_s
        self._lock = threading.Lock()
        self._watches: list[TurnWatch] = []
        self._is_running = False

    def add(self, watch: TurnWatch) -> None:
        with self._lock:
            self._watches.append(watch)
            if not self._is_running:
                self._is_running = True
                threading.Thread(target=self._poll, name="turn watch", daemon=True).start()

    def remove(self, watch: TurnWatch) -> None:
        """Remove a watch. It is not looked at after this call."""
        with self._lock:
            self._watches.remove(watch)

    def _poll(self) -> None:
        while True:
            time.sleep(self._poll_s)
            with self._lock:
                if not self._watches:
                    self._is_running = False
                    return
                for watch in self._watches:
                    watch.look()


@cache
def _poller(process: int, poll_s: float) -> _Poller:
    """Return the poller of a process. A forked process does not have its parent's threads."""
    del process
    return _Poller(poll_s)


def _is_compiling(frame: FrameType | None) -> bool:
    """Return whether a thread is compiling a kernel."""
    while frame is not None:
        if str(frame.f_globals.get("__name__")).partition(".")[0] == _COMPILER:
            return True
        frame = frame.f_back
    return False
