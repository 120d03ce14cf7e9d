"""Shared memory mappings of files, as uint8 arrays.

The pages stay mapped until `close()` is called and the last array over them is garbage collected.
An address does not keep the pages mapped, so its owner must keep the Mapping until no kernel uses
the address any more.
"""

import errno
import mmap
import os
import sys
import weakref
from pathlib import Path
from typing import Any

import numpy as np

from windtunnel.driver.base.atomics import address_of
from windtunnel.driver.base.errors import StorageError
from windtunnel.driver.files import bus_error_guard

_UNTRACKED: dict[str, Any] = {"trackfd": False} if sys.version_info >= (3, 13) else {}
"""Arguments that prevent mmap from keeping a duplicate of the descriptor open. With duplicates, a
driver or client with many streams would run out of descriptors. They require Python 3.13.
"""


class Mapping:
    """A shared mapping of a file, read-only if `writable` is False."""

    def __init__(self, path: Path, memory: mmap.mmap, writable: bool, page_length: int) -> None:
        self.path = path
        self.writable = writable
        self._memory: mmap.mmap | None = memory
        self.array: np.ndarray = np.frombuffer(memory, dtype=np.uint8)
        self.length = len(memory)
        self.address = address_of(self.array)
        # Other file systems may report a length to which the mapping is not aligned.
        if page_length.bit_count() != 1 or (self.address | self.length) % page_length:
            page_length = mmap.PAGESIZE
        self._row = bus_error_guard.register(self.address, self.length, page_length)
        # The pages are unmapped when the last array over them is collected, possibly after `close`.
        self._registration = weakref.finalize(memory, bus_error_guard.unregister, self._row)

    @property
    def lost_pages(self) -> int:
        """The number of pages lost and replaced by zeros, or 0 after unmapping. See
        `bus_error_guard`.
        """
        return bus_error_guard.lost_pages(self._row) if self._registration.alive else 0

    def replace_together(self, length: int, *, on_read: bool) -> None:
        """Replace the first `length` bytes together when one of their pages is lost. See
        `bus_error_guard`.
        """
        bus_error_guard.replace_together(self._row, length, on_read=on_read)

    def close(self) -> None:
        """Release the pages. They stay mapped while an array over them is referenced."""
        memory, self._memory = self._memory, None
        self.array = np.empty(0, dtype=np.uint8)
        self.address = 0
        if memory is not None:
            try:
                memory.close()
                self._registration()
            except BufferError:
                # An array still references the pages; the last one to be collected unmaps them.
                del memory

    def flush(self) -> None:
        """Write the pages to the file immediately (msync)."""
        if self._memory is not None:
            self._memory.flush()


def create(path: Path, length: int, *, sparse: bool = True) -> Mapping:
    """Create a zeroed file of `length` bytes and map it. Fails if the file exists.

    With `sparse=False` all blocks are allocated immediately, so a full disk causes a StorageError
    here instead of a SIGBUS later.
    """
    try:
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o666)
    except OSError as error:
        raise StorageError(f"cannot create {path}: {error.strerror}") from error
    try:
        os.ftruncate(descriptor, length)
        if not sparse:
            os.posix_fallocate(descriptor, 0, length)
        return Mapping(path, _map(descriptor, length), True, _page_length(descriptor))
    except OSError as error:
        os.unlink(path)
        why = error.strerror
        page_length = _page_length(descriptor)
        if error.errno == errno.EINVAL and length % page_length:
            why = (
                f"expected a multiple of the file system's page size, {page_length} bytes "
                "(AERON_FILE_PAGE_SIZE)"
            )
        raise StorageError(f"cannot allocate {length} bytes for {path}: {why}") from error
    finally:
        os.close(descriptor)


def open_file(path: Path, *, writable: bool = True) -> Mapping:
    """Map an existing file at its current length. Fails if the file is empty."""
    try:
        descriptor = os.open(path, (os.O_RDWR if writable else os.O_RDONLY) | os.O_CLOEXEC)
    except OSError as error:
        raise StorageError(f"cannot open {path}: {error.strerror}") from error
    try:
        length = os.fstat(descriptor).st_size
        if length == 0:
            raise StorageError(f"cannot map {path}: the file is empty")
        memory = _map(descriptor, length, writable=writable)
        return Mapping(path, memory, writable, _page_length(descriptor))
    except OSError as error:
        raise StorageError(f"cannot map {path}: {error.strerror}") from error
    finally:
        os.close(descriptor)


def _map(descriptor: int, length: int, *, writable: bool = True) -> mmap.mmap:
    access = mmap.ACCESS_WRITE if writable else mmap.ACCESS_READ
    try:
        return mmap.mmap(descriptor, length, access=access, **_UNTRACKED)
    except ValueError as error:
        # Another process shortened the file after its length was set or read.
        raise OSError(errno.EINVAL, "another process truncated the file") from error


def _page_length(descriptor: int) -> int:
    """Return the length of the pages of a mapped file: of huge pages on hugetlbfs."""
    return max(mmap.PAGESIZE, os.fstat(descriptor).st_blksize)
