"""The archive's error log, for errors that cannot be sent to a client, and their counter."""

from typing import Protocol

import numpy as np

from windtunnel.driver.base.clock import Clock
from windtunnel.driver.cnc.error_log import ErrorLog

GENERIC = -1
WARNING = 1
WARNINGS_MAX = 1_000
"""How many different warnings are kept, so that clients cannot fill the log."""


class ErrorCounter(Protocol):
    """Counts errors."""

    def increment(self) -> int:
        """Add one."""


class ArchiveErrors:
    """Writes one archive's error log, in the conductor's thread."""

    def __init__(self, log: np.ndarray, clock: Clock) -> None:
        self._log = ErrorLog(log, clock)
        self._warnings: set[str] = set()
        self.counter: ErrorCounter | None = None
        """Set once the counter is allocated."""

    def record(self, text: str, code: int = GENERIC) -> None:
        """Log an error; a repeated error is counted, not logged again."""
        self._log.record(code, text)
        if self.counter is not None:
            self.counter.increment()

    def warn(self, text: str) -> None:
        """Log a warning about a client's or another archive's error."""
        if text not in self._warnings and len(self._warnings) >= WARNINGS_MAX:
            text = f"more than {WARNINGS_MAX} different warnings"
        self._warnings.add(text)
        self.record(f"WARN - {text}", WARNING)
