"""The shutdown signal of the sampler, a flag that it checks between its passes.

A threading.Event cannot be used: the signal handler would wait for a lock that the interrupted
thread may hold, which is likely on an overloaded host.
"""

from __future__ import annotations

import signal
from types import FrameType


class ShutdownSignal:
    """A flag that is set when the process has to end."""

    def __init__(self) -> None:
        self.is_set = False

    @classmethod
    def install(cls) -> ShutdownSignal:
        """Return a flag that is set on SIGTERM and SIGINT."""
        flag = cls()
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, flag.set_flag)
        return flag

    def set_flag(self, number: int = 0, frame: FrameType | None = None) -> None:
        """Set the flag; usable as a signal handler."""
        self.is_set = True
