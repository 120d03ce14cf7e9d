"""The progress of a program that compiles kernels: a line per part, with its duration."""

import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress


@contextmanager
def part(name: str) -> Iterator[None]:
    """Context manager that reports the duration of its block."""
    started_s = time.monotonic()
    yield
    report(started_s, name)


def report(started_s: float, name: str) -> None:
    """Print the seconds since `started_s`. Kernels are also compiled if nothing can be printed."""
    with suppress(OSError):
        print(f"{time.monotonic() - started_s:6.1f} s  {name}", flush=True)
