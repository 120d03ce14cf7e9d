"""A log file. The driver creates it for a publication or an image, and clients map it.

A mapped file is validated before use. A LogBuffer must stay open while a compiled kernel uses its
address. Source: driver-protocol 2.1.
"""

import os
from pathlib import Path

import numpy as np

from windtunnel.driver.base.arith import bits_to_shift
from windtunnel.driver.base.errors import StorageError
from windtunnel.driver.files import mapping
from windtunnel.driver.logbuffer import descriptor, position
from windtunnel.driver.logbuffer.parameters import LogParameters, initialise

_FAULTS = {
    descriptor.BAD_FILE_LENGTH: "its length does not match its term length and page size",
    descriptor.BAD_TERM_LENGTH: "its term length is not a power of two between 64 KiB and 1 GiB",
    descriptor.BAD_PAGE_SIZE: "its page size is not a power of two between 4 KiB and 1 GiB",
    descriptor.BAD_HEADER_LENGTH: "its frame header is not 32 bytes long",
    descriptor.BAD_MTU_LENGTH: "its MTU is not a multiple of 32 from 64 to 65504",
    descriptor.BAD_TYPE: "its type is neither publication nor image",
}


def usable_bytes(directory: Path) -> int:
    """Return the number of bytes that an unprivileged process can still write to a directory's file
    system.
    """
    try:
        status = os.statvfs(directory)
    except OSError as error:
        raise StorageError(
            f"cannot determine the free space of {directory}: {error.strerror}"
        ) from error
    return status.f_bavail * status.f_frsize


class LogBuffer:
    """A mapped log file: `log` is its contents, and `meta_at` is the offset of its metadata.

    When a write to a page of the terms fails, because the file system is full, this process commits
    no more frames: all pages of the terms are replaced by pages that others do not see.
    """

    def __init__(self, mapped: mapping.Mapping) -> None:
        """Take ownership of a mapped file. Raises StorageError if the file is not a valid log."""
        self._mapping = mapped
        self.path: Path = mapped.path
        self.log: np.ndarray = mapped.array
        self.address: int = mapped.address
        self.length: int = mapped.length
        self.meta_at: int = int(descriptor.meta_at(self.length))
        status = int(descriptor.check_log(self.log, self.meta_at))
        if status != descriptor.OK:
            self.close()
            raise StorageError(f"{mapped.path} is not a log buffer: {_FAULTS[status]}")
        self.term_length: int = int(descriptor.term_length(self.log, self.meta_at))
        self.bits: int = int(bits_to_shift(self.term_length))
        self.initial_term_id: int = int(descriptor.initial_term_id(self.log, self.meta_at))
        self.mtu_length: int = int(descriptor.mtu_length(self.log, self.meta_at))
        mapped.replace_together(self.meta_at, on_read=False)
        self.type: int = int(descriptor.log_type(self.log, self.meta_at))

    @classmethod
    def create(
        cls,
        path: Path,
        parameters: LogParameters,
        *,
        sparse: bool = True,
        check_storage: bool = True,
    ) -> "LogBuffer":
        """Create a log file with its full length and metadata. If that fails, the file is removed.

        `check_storage` raises StorageError if the file system could not hold all pages of the file.
        """
        length = int(descriptor.log_length(parameters.term_length, parameters.page_size))
        if check_storage:
            usable = usable_bytes(path.parent)
            if usable < length:
                raise StorageError(
                    f"insufficient usable storage for new log of length={length} "
                    f"usable={usable} in {path.parent}"
                )
        mapped = mapping.create(path, length, sparse=sparse)
        try:
            initialise(mapped.array, int(descriptor.meta_at(length)), parameters)
            made = cls(mapped)
            # No application reads frames through this mapping, so a failed read may replace all
            # pages, too. Otherwise a frame that ends on the replaced page could be committed.
            mapped.replace_together(made.meta_at, on_read=True)
            return made
        except BaseException:
            mapped.close()
            path.unlink(missing_ok=True)
            raise

    @classmethod
    def map(cls, path: Path) -> "LogBuffer":
        """Map an existing log file, shared and writable. Raises StorageError on failure."""
        return cls(mapping.open_file(path, writable=True))

    @property
    def lost_pages(self) -> int:
        """The number of mapped pages that were lost, because the file was truncated or its file
        system is full.
        """
        return self._mapping.lost_pages

    def base(self, at_position: int) -> int:
        """Return the offset in `log` of the term that contains this position."""
        return int(position.index(at_position, self.bits)) * self.term_length

    def producer_position(self) -> int:
        """Return the position up to which publishers have claimed space."""
        return int(descriptor.producer_position(self.log, self.meta_at))

    def close(self) -> None:
        """Unmap the file. `log` becomes empty. Repeated calls have no effect."""
        self.log = np.empty(0, dtype=np.uint8)
        self.address = 0
        self._mapping.close()

    def __enter__(self) -> "LogBuffer":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
