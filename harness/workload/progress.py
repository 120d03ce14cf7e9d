"""Telling the runner how far a stream is, a few times a second."""

import sys
import time

TELL_S = 0.1


def say(line: str) -> None:
    """Tell the runner something, in one piece.

    `print` writes a line and its end apart, and another thread's line may come between them.
    """
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


class Progress:
    """Counts bytes and prints `progress <bytes>/<total>` now and then."""

    def __init__(self, total_bytes: int) -> None:
        self.total_bytes = total_bytes
        self._told_s = 0.0
        self.count_bytes = 0

    def add(self, length_bytes: int) -> None:
        self.count_bytes += length_bytes

    def tell(self, *, last: bool = False) -> None:
        """Print, unless it was done a moment ago."""
        now_s = time.monotonic()
        if last or now_s - self._told_s >= TELL_S:
            self._told_s = now_s
            say(f"progress {self.count_bytes}/{self.total_bytes}")
