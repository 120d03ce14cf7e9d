"""Reports how many kernels a compilation has stored in the cache so far."""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

POLL_S = 0.5
REPORT_S = 15.0
"""Time without a new kernel after which the elapsed time is reported. Most of the time is spent on
a few large kernels.
"""
START_MESSAGE = (
    "loading kernels; missing ones are compiled, which takes minutes if there are many. They are "
    "stored one by one, so an interruption loses only those in progress"
)


@dataclass(frozen=True)
class CompileProgress:
    """The number of kernels compiled so far, the approximate number of all kernels to be compiled,
    and the time since the start. The number of all is None if the cache was not empty at the start.
    """

    done: int
    total: int | None
    elapsed_s: float = field(default=0.0, compare=False)

    @property
    def fraction(self) -> float | None:
        """The compiled share of all kernels, at most 1."""
        return None if self.total is None else min(self.done / self.total, 1.0)

    def __str__(self) -> str:
        if self.done == 0 and self.elapsed_s == 0:
            return START_MESSAGE
        of_all = "" if self.total is None else f" of about {self.total}"
        return f"kernels compiled: {self.done}{of_all}, after {self.elapsed_s:.0f} s"


OnProgress = Callable[[CompileProgress], None]


def print_progress(progress: CompileProgress) -> None:
    """Print the start of a compilation to stderr."""
    if progress.done == 0 and progress.elapsed_s == 0:
        print(progress, file=sys.stderr, flush=True)


@contextmanager
def reported(cache: Path, total: int, on_progress: OnProgress) -> Iterator[None]:
    """Call `on_progress` at the start, and from another thread whenever kernels have been stored,
    or none were for REPORT_S.

    `total` is the number of kernels that are compiled into an empty cache.
    """
    before = _count(cache)
    expected = None if before else total
    ended = threading.Event()
    started_s = time.monotonic()

    def watch() -> None:
        known, reported_s = 0, started_s
        while not ended.wait(POLL_S):
            done, now_s = _count(cache) - before, time.monotonic()
            if done > known or now_s - reported_s >= REPORT_S:
                known, reported_s = done, now_s
                on_progress(CompileProgress(done, expected, now_s - started_s))

    on_progress(CompileProgress(0, expected))
    watcher = threading.Thread(target=watch, daemon=True)
    watcher.start()
    try:
        yield
    finally:
        ended.set()
        watcher.join()


def _count(cache: Path) -> int:
    return sum(1 for _ in cache.glob("*/*.image"))
