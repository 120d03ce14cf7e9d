"""What went wrong in an archive and nobody could be told by an answer: noted, and counted."""

from typing import Protocol

import numpy as np

from windtunnel.driver.base.clock import Clock
from windtunnel.driver.cnc.error_log import ErrorLog

GENERIC = -1
WARNING = 1
WARNINGS_MAX = 1_000
"""How many different ones are kept; what clients send shall not leave the log without room."""


class ErrorCounter(Protocol):
    """Tells others how many there were."""

    def increment(self) -> int:
        """Add one."""


class ArchiveErrors:
    """Writes one archive's error log, from its conductor's thread."""

    def __init__(self, log: np.ndarray, clock: Clock) -> None:
        self._log = ErrorLog(log, clock)
        self._warnings: set[str] = set()
        self.counter: ErrorCounter | None = None
        """Set as soon as there is one."""

    def record(self, text: str, code: int = GENERIC) -> None:
        """Note it; one that was there before is counted again."""
        self._log.record(code, text)
        if self.counter is not None:
            self.counter.increment()

    def warn(self, text: str) -> None:
        """Note what somebody else did wrong."""
        if text not in self._warnings and len(self._warnings) >= WARNINGS_MAX:
            text = f"more than {WARNINGS_MAX} different warnings"
        self._warnings.add(text)
        self.record(f"WARN - {text}", WARNING)
