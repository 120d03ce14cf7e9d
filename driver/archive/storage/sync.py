"""Writes to files and syncs them to disk.

Source: archive-protocol 5.2.
"""

import os
from enum import IntEnum
from pathlib import Path

from windtunnel.driver.base.errors import StorageError


class SyncLevel(IntEnum):
    """The data that must be on disk when a write returns."""

    CACHE = 0
    """No data. The page cache survives the end of the process, but not a power loss."""
    DATA = 1
    DATA_AND_METADATA = 2


def write_all(file: int, path: Path, content: "bytes | memoryview", at: int) -> None:
    """Write all bytes at a file offset. Raises StorageError, for example if the disk is full."""
    view = memoryview(content)
    try:
        while view:
            written = os.pwrite(file, view, at)
            view, at = view[written:], at + written
    except OSError as error:
        raise StorageError(f"cannot write {path} at offset {at}: {error.strerror}") from error


def sync_file(file: int, path: Path, level: SyncLevel) -> None:
    """Sync a file according to the sync level. Raises StorageError if the sync fails."""
    try:
        if level == SyncLevel.DATA:
            os.fdatasync(file)
        elif level == SyncLevel.DATA_AND_METADATA:
            os.fsync(file)
    except OSError as error:
        raise StorageError(f"cannot sync {path}: {error.strerror}") from error


def sync_directory(directory: Path) -> None:
    """Sync a directory, so the names in it survive a power loss. Raises StorageError if the sync
    fails.
    """
    try:
        descriptor = os.open(directory, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
    except OSError as error:
        raise StorageError(f"cannot sync {directory}: {error.strerror}") from error
