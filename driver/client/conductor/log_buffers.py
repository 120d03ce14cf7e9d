"""The log buffers that a client has mapped. Each file is mapped once, and its users are counted.

A log is unmapped some time after its last user released it, because another thread may still be
polling it. Even then, its pages stay mapped while an array of them exists (see
`windtunnel.driver.files.mapping`).
"""

import os
import threading
from dataclasses import dataclass
from pathlib import Path

from windtunnel.driver.base.errors import StorageError
from windtunnel.driver.files import bus_error_guard
from windtunnel.driver.logbuffer.descriptor import PAGE_SIZE_MIN
from windtunnel.driver.logbuffer.log_buffer import LogBuffer


@dataclass
class _Mapped:
    log: LogBuffer
    users: int


class LogBuffers:
    """A client's mapped log buffers, by path."""

    def __init__(
        self, directory: Path, resource_linger_ns: int, *, pre_touch: bool = False
    ) -> None:
        self._directory = os.path.realpath(directory)
        self._resource_linger_ns = resource_linger_ns
        self._pre_touch = pre_touch
        self._lock = threading.Lock()
        self._mapped: dict[Path, _Mapped] = {}
        self._lingering: list[tuple[int, LogBuffer]] = []
        self._lost_total = bus_error_guard.lost_pages_total()
        self._lost: list[LogBuffer] = []

    def acquire(self, path: Path) -> LogBuffer:
        """Return the log buffer of a file, and map the file if necessary. Raises StorageError if
        the file cannot be mapped, or is not below the driver's directory.
        """
        with self._lock:
            entry = self._mapped.get(path)
            if entry is None:
                self._require_below(path)
                log = LogBuffer.map(path)
                if self._pre_touch:
                    # Read one byte per page to prevent page faults in offers and polls.
                    log.log[::PAGE_SIZE_MIN].sum()
                entry = self._mapped[path] = _Mapped(log, 0)
            entry.users += 1
            return entry.log

    def _require_below(self, path: Path) -> None:
        """Raise StorageError for a file outside of the driver's directory. A client writes to the
        files that its driver names, and the driver may be in a container that is not trusted.
        """
        directory = self._directory
        if not os.path.realpath(path).startswith(os.path.join(directory, "")):
            text = f"expected a log buffer below the driver's directory {directory}, found {path}"
            raise StorageError(text)

    def release(self, log: LogBuffer, now_ns: int) -> None:
        """Decrement the number of users of a log. A log without users is unmapped after the linger
        time.
        """
        with self._lock:
            entry = self._mapped.get(log.path)
            if entry is None or entry.log is not log:
                return
            entry.users -= 1
            if entry.users == 0:
                del self._mapped[log.path]
                self._lingering.append((now_ns + self._resource_linger_ns, log))

    def take_lost(self) -> list[LogBuffer]:
        """Return the logs in use that have lost pages since the last call, for example because a
        file was truncated.
        """
        total = bus_error_guard.lost_pages_total()
        if total == self._lost_total:
            return []
        self._lost_total = total
        with self._lock:
            lost = [entry.log for entry in self._mapped.values() if entry.log.lost_pages]
        found = [log for log in lost if log not in self._lost]
        self._lost = lost
        return found

    def on_timer(self, now_ns: int) -> None:
        """Unmap the unused logs whose linger time has expired."""
        with self._lock:
            due = [log for deadline_ns, log in self._lingering if now_ns >= deadline_ns]
            self._lingering = [item for item in self._lingering if now_ns < item[0]]
        for log in due:
            log.close()

    def close(self) -> None:
        """Unmap all logs."""
        with self._lock:
            for entry in self._mapped.values():
                entry.log.close()
            for _, log in self._lingering:
                log.close()
            self._mapped.clear()
            self._lingering.clear()
