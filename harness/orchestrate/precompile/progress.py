"""Reports how many kernels a compilation has stored in the cache so far."""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

POLL_S = 0.5
START_MESSAGE = "loading kernels; missing kernels are compiled, which takes about a minute"


@dataclass(frozen=True)
class CompileProgress:
    """The number of kernels compiled so far, and the approximate number of all kernels to be
    compiled. The latter is None if the cache was not empty at the start.
    """

    done: int
    total: int | None

    @property
    def fraction(self) -> float | None:
        """The compiled share of all kernels, at most 1."""
        return None if self.total is None else min(self.done / self.total, 1.0)

    def __str__(self) -> str:
        if self.done == 0:
            return START_MESSAGE
        of_all = "" if self.total is None else f" of about {self.total}"
        return f"kernels compiled: {self.done}{of_all}"


OnProgress = Callable[[CompileProgress], None]


def print_progress(progress: CompileProgress) -> None:
    """Print the start of a compilation to stderr."""
    if progress.done == 0:
        print(progress, file=sys.stderr, flush=True)


@contextmanager
def reported(cache: Path, total: int, on_progress: OnProgress) -> Iterator[None]:
    """Call `on_progress` at the start, and from another thread whenever kernels have been stored.

    `total` is the number of kernels that are compiled into an empty cache.
    """
    before = _count(cache)
    expected = None if before else total
    ended = threading.Event()

    def watch() -> None:
        known = 0
        while not ended.wait(POLL_S):
            done = _count(cache) - before
            if done > known:
                known = done
                on_progress(CompileProgress(done, expected))

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
