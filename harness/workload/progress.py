"""Reports a stream's progress to the runner a few times per second."""

import sys
import time

REPORT_S = 0.1
JOINED = "joined"
"""The line that a subscriber prints when it has its first image."""


def print_line(line: str) -> None:
    """Print a line for the runner in a single write.

    `print` writes a line and its end separately, so another thread's line could come between them.
    """
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


class Progress:
    """Counts bytes, and prints `progress <bytes>/<total>` periodically."""

    def __init__(self, total_bytes: int) -> None:
        self.total_bytes = total_bytes
        self._reported_s = 0.0
        self.count_bytes = 0

    def add(self, length_bytes: int) -> None:
        self.count_bytes += length_bytes

    def report(self, *, last: bool = False) -> None:
        """Print the progress, unless the last report was too recent."""
        now_s = time.monotonic()
        if last or now_s - self._reported_s >= REPORT_S:
            self._reported_s = now_s
            print_line(f"progress {self.count_bytes}/{self.total_bytes}")
