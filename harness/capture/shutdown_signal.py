"""Being asked to end: a signal leaves a note, which the sampler looks at between its passes.

An event of the threading module will not do: its handler would wait for a lock that the very
thread it has interrupted may hold, and a host that is pressed hard makes that likely.
"""

from __future__ import annotations

import signal
from types import FrameType


class ShutdownSignal:
    """Whether anybody asked this process to end."""

    def __init__(self) -> None:
        self.is_left = False

    @classmethod
    def on_signals(cls) -> ShutdownSignal:
        """One that hears SIGTERM and SIGINT."""
        note = cls()
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, note.leave)
        return note

    def leave(self, number: int = 0, frame: FrameType | None = None) -> None:
        self.is_left = True
