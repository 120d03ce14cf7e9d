"""The mark file of an archive that is starting or running, and the lock of its directory.

Unlike Aeron's archive, this archive also locks its directory while it runs, so two archives that
start at the same time cannot both use it.

An archive reuses the mark file of the previous archive, whose disk blocks are already allocated.
Therefore it can start on a full disk and handle requests that delete recordings. On a full disk its
error log is smaller, and the previous archive's errors remain in the log if they cannot be saved to
a separate file.
"""

import errno
import fcntl
import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import numpy as np

from windtunnel.driver.archive.protocol.codes import NULL_VALUE
from windtunnel.driver.archive.storage.catalog import STORAGE_VERSION
from windtunnel.driver.archive.storage.mark_file import (
    ACTIVITY_TIMESTAMP,
    FILE_NAME,
    HEADER_LENGTH,
    LENGTH_MIN,
    LINK_NAME,
    LIVENESS_TIMEOUT_MS,
    PAGE_LENGTH,
    VERSION,
    MarkFileHeader,
    read_error_log,
    read_header,
    read_part,
)
from windtunnel.driver.archive.storage.sync import write_all
from windtunnel.driver.base.arith import align
from windtunnel.driver.base.atomics import put_i32_release, put_i64_release
from windtunnel.driver.base.clock import Clock
from windtunnel.driver.base.errors import DriverError, StorageError
from windtunnel.driver.cnc import error_log
from windtunnel.driver.files.mapping import Mapping, create, open_file
from windtunnel.driver.files.regular_file import open_regular, read_regular


class ActiveArchiveError(DriverError):
    """Another archive is running in the directory."""


class MarkFile:
    """The mark file of an archive that is starting or running."""

    def __init__(
        self,
        archive_directory: Path,
        header: MarkFileHeader,
        clock: Clock,
        mark_directory: Path | None = None,
    ) -> None:
        """Reserve the directory for this archive. Call `ready` when the archive has started.

        Raises ActiveArchiveError, StorageError.
        """
        self.directory = mark_directory or archive_directory
        self.path = self.directory / FILE_NAME
        self._clock = clock
        self._mapping: Mapping | None = None
        self._lock = lock(archive_directory)
        try:
            self._make(archive_directory, header)
        except BaseException:
            if self._mapping is not None:
                self._mapping.close()
            os.close(self._lock)
            raise

    def _make(self, archive_directory: Path, header: MarkFileHeader) -> None:
        header.encode()  # Raise before anything is changed.
        kept_length = 0
        if os.path.lexists(self.path):
            _require_inactive(self.path, self._clock.now_ms())
            kept_length = _save_errors(self.path, self._clock.now_ms())
        try:
            self._mapping, length = self._map(header, has_errors=kept_length > 0)
        except OSError as error:
            raise StorageError(f"cannot write {self.path}: {error.strerror}") from error
        log = self._mapping.array[HEADER_LENGTH:length]
        log[kept_length:] = 0
        self.error_log = log[kept_length : header.error_buffer_length]
        _link(archive_directory, self.directory)

    def _map(self, header: MarkFileHeader, *, has_errors: bool) -> tuple[Mapping, int]:
        """Map the previous archive's mark file, or a new one. Also returns the number of allocated
        bytes.
        """
        full_length = int(align(HEADER_LENGTH + header.error_buffer_length, PAGE_LENGTH))
        size = _regular_size(self.path)
        attempts = [(self._reuse, each) for each in (size, LENGTH_MIN) if size >= LENGTH_MIN]
        if size != full_length and not has_errors:
            attempts.insert(0, (self._create, full_length))
        attempts.append((self._create, LENGTH_MIN))
        for attempt, length in attempts:
            own = replace(
                header,
                error_buffer_length=min(header.error_buffer_length, length - HEADER_LENGTH),
            )
            with _ignore_full_disk():
                return attempt(length, own.encode()), length
        raise StorageError(
            f"cannot write {self.path}: {os.strerror(errno.ENOSPC)}; free at least {LENGTH_MIN} "
            f"bytes in {self.directory}, without deleting the archive's own files"
        )

    def _reuse(self, length: int, content: bytes) -> Mapping:
        """Overwrite the header of the existing file and map the file."""
        file = open_regular(self.path, os.O_RDWR)
        try:
            os.posix_fallocate(file, 0, length)
            # One call, so no reader sees a partial header, not even after a kill.
            os.pwrite(file, content, 0)
        finally:
            os.close(file)
        return open_file(self.path)

    def _create(self, length: int, content: bytes) -> Mapping:
        """Create a new file, which is renamed to its final name once it contains the header."""
        fresh = self.path.with_suffix(".new")
        fresh.unlink(missing_ok=True)
        mapping = create(fresh, length, sparse=False)
        mapping.array[: len(content)] = np.frombuffer(content, dtype=np.uint8)
        os.rename(fresh, self.path)
        return mapping

    def ready(self) -> None:
        """Mark the archive as running and ready for clients."""
        self.touch()
        if self._mapping is not None:
            put_i32_release(self._mapping.array, VERSION, STORAGE_VERSION)

    def touch(self) -> None:
        """Update the activity time."""
        self._put_activity(self._clock.now_ms())

    def close(self) -> None:
        """Mark the archive as shut down, or as not started if `ready` was not called. Unlocks the
        directory.
        """
        self._put_activity(NULL_VALUE)
        if self._mapping is not None:
            self._mapping.close()
            self._mapping = None
            os.close(self._lock)
            self.error_log = np.empty(0, dtype=np.uint8)

    def abandon(self) -> None:
        """Unlock the directory and change nothing else, as if the process had been killed."""
        if self._mapping is not None:
            os.close(self._lock)

    def _put_activity(self, timestamp_ms: int) -> None:
        if self._mapping is not None:
            put_i64_release(self._mapping.array, ACTIVITY_TIMESTAMP, timestamp_ms)


def lock(directory: Path) -> int:
    """Lock a directory. The lock is held while the returned file descriptor is open.

    Raises StorageError, and ActiveArchiveError if the directory is already locked.
    """
    try:
        descriptor = os.open(directory, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    except OSError as error:
        raise StorageError(f"cannot open {directory}: {error.strerror}") from error
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        os.close(descriptor)
        if error.errno not in (errno.EAGAIN, errno.EACCES):
            raise StorageError(f"cannot lock {directory}: {error.strerror}") from error
        raise ActiveArchiveError(
            f"{directory}: another archive has locked the directory"
        ) from error
    return descriptor


def _require_inactive(path: Path, now_ms: int) -> None:
    header = read_header(path)
    if header.is_active(now_ms):
        raise ActiveArchiveError(
            f"{path}: an archive was active {now_ms - header.activity_timestamp} ms ago, "
            f"as process {header.pid}; if it was killed, retry {LIVENESS_TIMEOUT_MS} ms after its "
            "last activity"
        )


@contextmanager
def _ignore_full_disk() -> Iterator[None]:
    """Suppress errors caused by a full disk. Other errors are raised."""
    try:
        yield
    except (OSError, StorageError) as error:
        cause = error if isinstance(error, OSError) else error.__cause__
        if not isinstance(cause, OSError) or cause.errno not in (errno.ENOSPC, errno.EDQUOT):
            raise


def _regular_size(path: Path) -> int:
    """Return the length of a file, or 0 if it does not exist or is not a regular file."""
    try:
        found = os.lstat(path)
    except FileNotFoundError:
        return 0
    return found.st_size if stat.S_ISREG(found.st_mode) else 0


def _save_errors(path: Path, now_ms: int) -> int:
    """Save the errors of the previous archive to a separate file.

    Returns: the number of bytes that remain in the log because the disk is full, usually 0
    """
    header = read_header(path)
    observations = read_error_log(path)
    if not observations:
        return 0
    saved = path.with_name(f"archive-{now_ms}-error.log")
    lines = [
        f"{each.observation_count} observations from {each.first_observation_ms} "
        f"to {each.last_observation_ms}: {each.text}\n"
        for each in observations
    ]
    try:
        with _ignore_full_disk():
            # A link with this name is not followed.
            file = open_regular(saved, os.O_WRONLY | os.O_CREAT | os.O_EXCL)
            try:
                write_all(file, saved, "".join(lines).encode(), 0)
            finally:
                os.close(file)
            return 0
        saved.unlink(missing_ok=True)
    except OSError as error:
        raise StorageError(f"cannot write {saved}: {error.strerror}") from error
    if header.header_length != HEADER_LENGTH:
        raise StorageError(f"cannot write {saved}: {os.strerror(errno.ENOSPC)}")
    return _used_length(read_part(path, HEADER_LENGTH, header.error_buffer_length))


def _used_length(log: bytes) -> int:
    """Return the offset of the end of an error log's last entry."""
    at = 0
    while at + error_log.TEXT <= len(log):
        length = int.from_bytes(log[at : at + 4], "little", signed=True)
        if length < error_log.TEXT or at + length > len(log):
            break
        at = int(align(at + length, error_log.ALIGNMENT))
    return at


def _link(archive_directory: Path, mark_directory: Path) -> None:
    """Write the link file in the archive directory, or remove it if it is not needed."""
    link = archive_directory / LINK_NAME
    try:
        if mark_directory.resolve() == archive_directory.resolve():
            if os.path.lexists(link):
                link.unlink()
            return
        content = os.fsencode(mark_directory.resolve())
        if not os.path.lexists(link) or read_regular(link) != content:
            with os.fdopen(open_regular(link, os.O_WRONLY | os.O_CREAT | os.O_TRUNC), "wb") as file:
                file.write(content)
    except OSError as error:
        raise StorageError(f"cannot write {link}: {error.strerror}") from error
