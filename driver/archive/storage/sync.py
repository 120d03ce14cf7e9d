"""Bytes into files, and how far down they are pushed before a call returns.

Source: archive-protocol 5.2.
"""

import os
from enum import IntEnum
from pathlib import Path

from windtunnel.driver.base.errors import StorageError


class SyncLevel(IntEnum):
    """What must be on the disk when a write is done."""

    CACHE = 0
    "Nothing: the operating system keeps it, over the death of this process too."
    DATA = 1
    DATA_AND_METADATA = 2


def write_all(file: int, path: Path, content: "bytes | memoryview", at: int) -> None:
    """Put bytes at an offset of a file, all of them. Raises StorageError, on a full disk too."""
    view = memoryview(content)
    try:
        while view:
            written = os.pwrite(file, view, at)
            view, at = view[written:], at + written
    except OSError as error:
        raise StorageError(f"cannot write {path} at {at}: {error.strerror}") from error


def sync_file(file: int, path: Path, level: SyncLevel) -> None:
    """Push a file down as far as its level says. Raises StorageError."""
    try:
        if level == SyncLevel.DATA:
            os.fdatasync(file)
        elif level == SyncLevel.DATA_AND_METADATA:
            os.fsync(file)
    except OSError as error:
        raise StorageError(f"cannot sync {path}: {error.strerror}") from error


def sync_directory(directory: Path) -> None:
    """Make the names of a directory survive a loss of power. Raises StorageError."""
    try:
        descriptor = os.open(directory, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
    except OSError as error:
        raise StorageError(f"cannot sync {directory}: {error.strerror}") from error
