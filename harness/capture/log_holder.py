"""A driver's log buffers, held from when they appear and copied when all is over.

    D/publications/17.logbuffer --look--> open handle --copy--> logs/publications-17.logbuffer
    D/images/23.logbuffer                                       logs.json

A driver removes a log soon after its stream has closed; whoever holds it open keeps its bytes, and
after the driver's end nothing can change them any more. Refuses to know what the bytes mean.
"""

from __future__ import annotations

import contextlib
import os
from pathlib import Path

from windtunnel.harness.artifact.host.held_log import FOLDERS, SUFFIX, HeldLog, write_held_logs
from windtunnel.harness.artifact.run_dir import HostDir

HELD_MAX = 512
"""Handles; a run with more streams than that keeps the logs of the first ones."""

LOG_LENGTH_MAX = 64 << 20
"""A longer log is not copied: it has terms of 32 MiB or more, of which a run fills a part."""

COPIED_BYTES_MAX = 256 << 20
"""Of one host, zeros not counted."""

BLOCK_LENGTH = 1 << 16


class LogHolder:
    """The logs of one driver; `look` has to be called more often than a log can come and go."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._handles: dict[tuple[str, int], int] = {}
        self._too_many: set[tuple[str, int]] = set()

    def look(self) -> None:
        """Take hold of every log that is new."""
        for folder in FOLDERS:
            try:
                names = os.listdir(self._directory / folder)
            except OSError:
                continue
            for name in names:
                stem = name.removesuffix(SUFFIX)
                if stem != name and stem.lstrip("-").isdecimal():
                    self._hold(folder, int(stem))

    def _hold(self, folder: str, registration_id: int) -> None:
        key = folder, registration_id
        if key in self._handles or key in self._too_many:
            return
        if len(self._handles) >= HELD_MAX:
            self._too_many.add(key)
            return
        path = self._directory / folder / f"{registration_id}{SUFFIX}"
        with contextlib.suppress(FileNotFoundError):  # it has gone since the folder was read
            self._handles[key] = os.open(path, os.O_RDONLY | os.O_CLOEXEC)

    def copy(self, files: HostDir) -> None:
        """Copy all logs, tell which there are, and let go of them."""
        room = COPIED_BYTES_MAX
        logs = [
            HeldLog(*key, length=0, left_out=f"{HELD_MAX} others were held already")
            for key in sorted(self._too_many)
        ]
        for (folder, registration_id), handle in sorted(self._handles.items()):
            length = os.fstat(handle).st_size
            left_out = ""
            if length > LOG_LENGTH_MAX:
                left_out = f"{length} bytes are more than the {LOG_LENGTH_MAX} that are kept"
            else:
                target = files.log_buffer(folder, registration_id)
                target.parent.mkdir(parents=True, exist_ok=True)
                copied = _copy(handle, length, target, room)
                room -= copied
                if room < 0:
                    target.unlink()
                    room += copied
                    left_out = f"the host's logs hold more than {COPIED_BYTES_MAX} bytes"
            logs.append(HeldLog(folder, registration_id, length, left_out))
            os.close(handle)
        self._handles.clear()
        write_held_logs(files.held_logs, logs)


def _copy(handle: int, length: int, target: Path, room: int) -> int:
    """Copy what is not zero; returns how many bytes that were, soon after they exceed the room."""
    copied = 0
    with target.open("wb") as output:
        output.truncate(length)
        at = _data_from(handle, 0, length)
        while at < length and copied <= room:
            block = os.pread(handle, min(BLOCK_LENGTH, length - at), at)
            if not block:
                break
            if block.strip(b"\0"):
                output.seek(at)
                output.write(block)
                copied += len(block)
            at = _data_from(handle, at + len(block), length)
    return copied


def _data_from(handle: int, at: int, length: int) -> int:
    """Where the next bytes that are no hole begin, at or behind `at`; `length` if nowhere."""
    if at >= length:
        return length
    try:
        return os.lseek(handle, at, os.SEEK_DATA)
    except OSError:  # ENXIO: nothing but a hole up to the end
        return length
