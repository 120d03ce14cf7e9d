"""The logs that a client has mapped, shared by all who read or write the same file.

A log is let go a while after its last user, so that a thread in the middle of a poll finishes on
living memory.
"""

import threading
from dataclasses import dataclass
from pathlib import Path

from driver.logbuffer.log_buffer import LogBuffer

RESOURCE_LINGER_NS = 3_000_000_000
"""How long a log without users stays mapped. Source: Aeron 1.53 client."""


@dataclass
class _Mapped:
    log: LogBuffer
    users: int


class LogBuffers:
    """Maps each file once."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._mapped: dict[Path, _Mapped] = {}
        self._lingering: list[tuple[int, LogBuffer]] = []

    def acquire(self, path: Path) -> LogBuffer:
        """The log of a file, mapped if it is not yet."""
        with self._lock:
            entry = self._mapped.get(path)
            if entry is None:
                entry = self._mapped[path] = _Mapped(LogBuffer.map(path), 0)
            entry.users += 1
            return entry.log

    def release(self, log: LogBuffer, now_ns: int) -> None:
        """One user less."""
        with self._lock:
            entry = self._mapped[log.path]
            entry.users -= 1
            if entry.users == 0:
                del self._mapped[log.path]
                self._lingering.append((now_ns + RESOURCE_LINGER_NS, log))

    def on_timer(self, now_ns: int) -> None:
        """Unmap what has lingered long enough."""
        with self._lock:
            due = [log for deadline_ns, log in self._lingering if now_ns >= deadline_ns]
            self._lingering = [item for item in self._lingering if now_ns < item[0]]
        for log in due:
            log.close()

    def close(self) -> None:
        """Unmap everything."""
        with self._lock:
            for entry in self._mapped.values():
                entry.log.close()
            for _, log in self._lingering:
                log.close()
            self._mapped.clear()
            self._lingering.clear()
