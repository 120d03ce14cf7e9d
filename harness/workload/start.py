"""Starts all publishers of a stream at the same time, once they are all connected and as many
subscribers have joined as the scenario requires (`starts_with`).

    publisher   connected --> "ready" ------> SIGUSR1 --> first message
    subscriber  has an image --> "joined" --'

If a publisher started late, the subscriber would already be far ahead. The subscriber's status
messages would be out of range for the publisher, which would never catch up.
"""

import signal
import time
from types import FrameType

from windtunnel.harness.workload.progress import print_line
from windtunnel.harness.workload.stop import Stop

IDLE_S = 0.0001


class Start:
    """A flag that the runner's start signal sets."""

    def __init__(self) -> None:
        self.given = False
        signal.signal(signal.SIGUSR1, self._on_signal)

    def _on_signal(self, number: int, frame: FrameType | None) -> None:
        self.given = True

    def wait(self, stop: Stop) -> None:
        """Print `ready`, and wait for the start signal. Raises Stopped if a stop signal arrives
        first.
        """
        print_line("ready")
        while not self.given:
            stop.check()
            time.sleep(IDLE_S)
