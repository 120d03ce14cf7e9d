"""Starting together: publishers of one stream begin when all of them are connected.

    publisher   connected --> "ready" --> SIGUSR1 --> first message
    runner                    all ready --'

A twin that came late would find the reader so far ahead that its status messages mean nothing to
it, and would never catch up.
"""

import signal
import time
from types import FrameType

from windtunnel.harness.workload.progress import say
from windtunnel.harness.workload.stop import Stop

IDLE_S = 0.0001


class Start:
    """Whether the runner has said that all are there."""

    def __init__(self) -> None:
        self.given = False
        signal.signal(signal.SIGUSR1, self._on_signal)

    def _on_signal(self, number: int, frame: FrameType | None) -> None:
        self.given = True

    def wait(self, stop: Stop) -> None:
        """Say that this one is ready, and wait for the others. Raises Stopped."""
        say("ready")
        while not self.given:
            stop.check()
            time.sleep(IDLE_S)
