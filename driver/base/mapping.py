"""The only place that maps files into memory: a file becomes a uint8 array, shared.

A mapping lives until `close()` and until the last array made from it is gone; Python keeps the
pages while anything can still reach them through an array. Kernels that hold bare addresses are
the exception: whoever gave out an address keeps the Mapping until those kernels have let go.
"""

import mmap
import os
import sys
from pathlib import Path
from typing import Any

import numpy as np

from windtunnel.driver.base.atomics import address_of
from windtunnel.driver.base.errors import StorageError

_UNTRACKED: dict[str, Any] = {"trackfd": False} if sys.version_info >= (3, 13) else {}
"""Python would keep a copy of the descriptor with the mapping, and a driver or a client of many
streams would run out of them. Before 3.13 it knows no other way."""


class Mapping:
    """A file in memory, shared; read-write, or read-only where `writable` is False."""

    def __init__(self, path: Path, memory: mmap.mmap, writable: bool) -> None:
        self.path = path
        self.writable = writable
        self._memory: mmap.mmap | None = memory
        self.array: np.ndarray = np.frombuffer(memory, dtype=np.uint8)
        self.length = len(memory)
        self.address = address_of(self.array)

    def close(self) -> None:
        """Let go of the pages; they stay mapped while an array of them is still referenced."""
        memory, self._memory = self._memory, None
        self.array = np.empty(0, dtype=np.uint8)
        self.address = 0
        if memory is not None:
            try:
                memory.close()
            except BufferError:
                # An array of somebody's still looks at the pages: the last one to die unmaps them.
                del memory

    def flush(self) -> None:
        """Ask the kernel to write the pages to the file now."""
        if self._memory is not None:
            self._memory.flush()


def create(path: Path, length: int, *, sparse: bool = True, page_size: int = 4096) -> Mapping:
    """Make a new zeroed file of `length` bytes and map it; refuses to reuse an existing one.

    With `sparse=False` the blocks are allocated now, so that a full disk is an error here and not
    a signal later.
    """
    try:
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o660)
    except OSError as error:
        raise StorageError(f"cannot create {path}: {error.strerror}") from error
    try:
        os.ftruncate(descriptor, length)
        if not sparse:
            os.posix_fallocate(descriptor, 0, length)
        memory = mmap.mmap(descriptor, length, **_UNTRACKED)
        if not sparse:
            for at in range(0, length, page_size):
                memory[at] = 0
    except OSError as error:
        os.unlink(path)
        raise StorageError(
            f"cannot allocate {length} bytes for {path}: {error.strerror}"
        ) from error
    finally:
        os.close(descriptor)
    return Mapping(path, memory, True)


def open_file(path: Path, *, writable: bool = True) -> Mapping:
    """Map an existing file at its whole present length; an empty file is refused."""
    try:
        descriptor = os.open(path, (os.O_RDWR if writable else os.O_RDONLY) | os.O_CLOEXEC)
    except OSError as error:
        raise StorageError(f"cannot open {path}: {error.strerror}") from error
    try:
        length = os.fstat(descriptor).st_size
        if length == 0:
            raise StorageError(f"cannot map {path}: the file is empty")
        access = mmap.ACCESS_WRITE if writable else mmap.ACCESS_READ
        memory = mmap.mmap(descriptor, length, access=access, **_UNTRACKED)
        return Mapping(path, memory, writable)
    except OSError as error:
        raise StorageError(f"cannot map {path}: {error.strerror}") from error
    finally:
        os.close(descriptor)
