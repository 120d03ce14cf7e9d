"""The archive's error log, which contains errors that cannot be sent to a client."""

from typing import Protocol

import numpy as np

from windtunnel.driver.base.clock import Clock
from windtunnel.driver.cnc.error_log import ErrorLog

GENERIC = -1
WARNING = 1
WARNINGS_MAX = 1_000
"""The maximum number of distinct warnings in the log, so clients cannot fill the log."""


class ErrorCounter(Protocol):
    """The interface of an error counter."""

    def increment(self) -> int:
        """Add one to the counter."""


class ArchiveErrors:
    """Writes the error log of one archive. Only the conductor's thread uses it."""

    def __init__(self, log: np.ndarray, clock: Clock) -> None:
        self._log = ErrorLog(log, clock)
        self._warnings: set[str] = set()
        self.counter: ErrorCounter | None = None
        """The counter of errors, which is set once it is allocated."""

    def record(self, text: str, code: int = GENERIC) -> None:
        """Log an error. A repeated error only increases the count of its entry."""
        self._log.record(code, text)
        if self.counter is not None:
            self.counter.increment()

    def warn(self, text: str) -> None:
        """Log a warning about an error that a client or another archive has caused."""
        if text not in self._warnings and len(self._warnings) >= WARNINGS_MAX:
            text = f"more than {WARNINGS_MAX} different warnings"
        self._warnings.add(text)
        self.record(f"WARN - {text}", WARNING)
