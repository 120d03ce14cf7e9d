"""Detects code in a simulation that works without end while virtual time stands still.

    watching thread, every POLL_S:  time has moved                    -> start anew
                                    more than CPU_LIMIT_S were used   -> on_stuck, in this thread

Virtual time does not move while the processor works, so no timeout on virtual time can end such a
run. The limit is CPU time of this process, which does not depend on the machine's load. Time in
which a kernel is compiled does not count.

Neither compiled code nor Python code can be interrupted from outside, so whoever is told must end
the process.
"""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Callable
from types import FrameType, TracebackType
from typing import Self

CPU_LIMIT_S = 20.0
"""Maximum CPU time at one virtual time. A turn takes microseconds, and Python code milliseconds."""
POLL_S = 0.5
_COMPILER = "numba"

OnStuck = Callable[[float, FrameType | None], None]
"""Function that is told the CPU time in seconds, and where the watched thread is."""


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
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._watch, name="turn watch", daemon=True)
        self._watched = 0

    def __enter__(self) -> Self:
        self._watched = threading.get_ident()
        self._thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._ended.set()
        self._thread.join()

    def _watch(self) -> None:
        since_ns, since_s = self._now_ns(), self._cpu_s()
        while not self._ended.wait(self._poll_s):
            now_ns, cpu_s = self._now_ns(), self._cpu_s()
            frame = sys._current_frames().get(self._watched)
            if now_ns != since_ns or _is_compiling(frame):
                since_ns, since_s = now_ns, cpu_s
            elif cpu_s - since_s > self._limit_s:
                self._on_stuck(cpu_s - since_s, frame)
                return


def _is_compiling(frame: FrameType | None) -> bool:
    """Return whether a thread is compiling a kernel."""
    while frame is not None:
        if str(frame.f_globals.get("__name__")).partition(".")[0] == _COMPILER:
            return True
        frame = frame.f_back
    return False
