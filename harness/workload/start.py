"""Starts the publishers of one stream together, when all of them are connected.

    publisher   connected --> "ready" --> SIGUSR1 --> first message
    runner                    all ready --'

A publisher that started late would find the subscriber so far ahead that its status messages are
out of range for it, and would never catch up.
"""

import signal
import time
from types import FrameType

from windtunnel.harness.workload.progress import print_line
from windtunnel.harness.workload.stop import Stop

IDLE_S = 0.0001


class Start:
    """Whether the runner has signalled the start."""

    def __init__(self) -> None:
        self.given = False
        signal.signal(signal.SIGUSR1, self._on_signal)

    def _on_signal(self, number: int, frame: FrameType | None) -> None:
        self.given = True

    def wait(self, stop: Stop) -> None:
        """Print `ready`, and wait for the start signal. Raises Stopped."""
        print_line("ready")
        while not self.given:
            stop.check()
            time.sleep(IDLE_S)
