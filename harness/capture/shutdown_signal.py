"""The sampler's shutdown signal: a flag that the sampler checks before each sample.

A threading.Event cannot be used, because the signal handler would wait for a lock that the
interrupted thread may hold. This is likely on an overloaded host.
"""

from __future__ import annotations

import signal
from types import FrameType


class ShutdownSignal:
    """A flag that is set when the process must end."""

    def __init__(self) -> None:
        self.is_set = False

    @classmethod
    def install(cls) -> ShutdownSignal:
        """Create a flag that SIGTERM or SIGINT sets."""
        flag = cls()
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, flag.set_flag)
        return flag

    def set_flag(self, number: int = 0, frame: FrameType | None = None) -> None:
        """Set the flag. This method can be used as a signal handler."""
        self.is_set = True
