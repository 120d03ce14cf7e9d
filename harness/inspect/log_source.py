"""Block-by-block access to a log buffer file."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from windtunnel.harness.dissect.driver_files.log_buffer import (
    LogBuffer,
    LogBufferError,
    read_log_buffer,
)
from windtunnel.harness.inspect.aeron_dir import opened

BLOCK_LENGTH = 1 << 18


class Blocks:
    """Reads a file block by block. It keeps one block in memory."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor
        self._at = 0
        self._block = b""

    def read_at(self, at: int, length: int) -> bytes:
        """Return the bytes at an offset, or fewer than `length` at the end of the file."""
        start = at - self._at
        if start < 0 or start + length > len(self._block):
            self._at, start = at, 0
            self._block = os.pread(self._descriptor, max(length, BLOCK_LENGTH), at)
        return self._block[start : start + length]


@contextmanager
def open_log_buffer(path: Path) -> Iterator[LogBuffer]:
    """Open a log buffer file. Raises NothingThereError if the file is missing, or LogBufferError if
    it is invalid.
    """
    with opened(path, "no log buffer") as (descriptor, length):
        try:
            log = read_log_buffer(Blocks(descriptor).read_at, length)
        except LogBufferError as error:
            raise LogBufferError(f"{path}: {error}") from error
        yield log
