"""Opens a driver's log files when they appear, and copies them at the end of a run.

    D/publications/17.logbuffer --poll--> open handle --copy--> logs/publications-17.logbuffer
    D/images/23.logbuffer                                       logs.json

A driver deletes a log soon after its stream has closed. An open handle keeps its contents, which
are final once the driver has ended. The contents are not interpreted here.
"""

from __future__ import annotations

import contextlib
import os
import re
from pathlib import Path, PurePath

from windtunnel.harness.artifact.host.log_index import FOLDERS, SUFFIX, LogFacts, write_log_index
from windtunnel.harness.artifact.regular_file import UnsafeFileError, folder_below, open_regular
from windtunnel.harness.artifact.run_dir import HostDir

HELD_MAX = 512
"""Maximum number of open logs. If a run has more streams, only the first logs are copied."""

LOG_LENGTH_MAX = 64 << 20
"""Maximum length of a copied log. A longer log has terms of at least 32 MiB, mostly unused."""

COPIED_BYTES_MAX = 256 << 20
"""Maximum number of bytes copied per host, not counting zeros."""

BLOCK_LENGTH = 1 << 16
_NAME = re.compile(rf"(-?[0-9]{{1,19}}){re.escape(SUFFIX)}")


class LogHolder:
    """The open logs of one driver. `poll` must be called often enough to see short-lived logs."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._handles: dict[tuple[str, int], int] = {}
        self._too_many: set[tuple[str, int]] = set()

    def poll(self) -> None:
        """Open every log that appeared since the last call."""
        above, name = self._directory.parent, self._directory.name
        for folder in FOLDERS:
            # The driver is not trusted: it may have made links or FIFOs in place of logs.
            with contextlib.suppress(OSError), folder_below(above, PurePath(name, folder)) as path:
                self._hold_all(folder, path)

    def _hold_all(self, folder: str, path: Path) -> None:
        for name in os.listdir(path):
            if found := _NAME.fullmatch(name):
                self._hold(folder, int(found[1]), path / name)

    def _hold(self, folder: str, registration_id: int, path: Path) -> None:
        key = folder, registration_id
        if key in self._handles or key in self._too_many:
            return
        if len(self._handles) >= HELD_MAX:
            self._too_many.add(key)
            return
        # It may have been deleted since the folder was read.
        with contextlib.suppress(FileNotFoundError, UnsafeFileError), open_regular(path) as file:
            self._handles[key] = os.dup(file.fileno())

    def copy(self, files: HostDir) -> None:
        """Copy all logs, write the index file, and close the logs."""
        remaining_bytes = COPIED_BYTES_MAX
        logs = [
            LogFacts(*key, length=0, left_out=f"the limit of {HELD_MAX} open logs was reached")
            for key in sorted(self._too_many)
        ]
        for (folder, registration_id), handle in sorted(self._handles.items()):
            length = os.fstat(handle).st_size
            left_out = ""
            if length > LOG_LENGTH_MAX:
                left_out = f"expected at most {LOG_LENGTH_MAX} bytes, found {length}"
            else:
                target = files.log_buffer(folder, registration_id)
                target.parent.mkdir(parents=True, exist_ok=True)
                copied = _copy(handle, length, target, remaining_bytes)
                remaining_bytes -= copied
                if remaining_bytes < 0:
                    target.unlink()
                    remaining_bytes += copied
                    left_out = f"the host's logs exceed the limit of {COPIED_BYTES_MAX} bytes"
            logs.append(LogFacts(folder, registration_id, length, left_out))
            os.close(handle)
        self._handles.clear()
        write_log_index(files.log_index, logs)


def _copy(handle: int, length: int, target: Path, remaining_bytes: int) -> int:
    """Copy the blocks of a log that are not all zeros. Stops when more than `remaining_bytes` bytes
    are copied. Returns the number of bytes copied.
    """
    copied = 0
    with target.open("wb") as output:
        output.truncate(length)
        offset = _data_from(handle, 0, length)
        while offset < length and copied <= remaining_bytes:
            block = os.pread(handle, min(BLOCK_LENGTH, length - offset), offset)
            if not block:
                break
            if block.strip(b"\0"):
                output.seek(offset)
                output.write(block)
                copied += len(block)
            offset = _data_from(handle, offset + len(block), length)
    return copied


def _data_from(handle: int, offset: int, length: int) -> int:
    """Return the offset of the first data in a sparse file at or after `offset`, or `length` if
    there is none.
    """
    if offset >= length:
        return length
    try:
        return os.lseek(handle, offset, os.SEEK_DATA)
    except OSError:  # ENXIO: no data until the end
        return length
