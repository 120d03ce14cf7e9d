"""The mark file: who owns an archive's directory, whether he lives, and his error log.

    0        8        12  16         24       32    40   .. 64          136           8192
    +--------+--------+---+----------+--------+-----+-------+---------+-------------+-----------+
    | header | version|   | activity | start  | pid | ...   |   id    | four texts  | error log |
    +--------+--------+---+----------+--------+-----+-------+---------+-------------+-----------+

The activity time is written about once a second and is -1 after an orderly end; the version is
written last, so a file without one is still being made. It may lie in another directory, which
`archive-mark.lnk` beside the catalog names. Files of older archives have no header and lie eight
bytes lower. Times are epoch ms. Beyond what Aeron does, our archive locks its directory while it
lives, so that two that start at once do not both find it free.

An archive takes over the file of the one before, whose blocks are allocated, so that it can start
on a full disk and serve requests that delete recordings. There it makes do with a small error log,
and the errors of the one before stay in the log where they cannot be kept in a file of their own.
Source: archive-protocol 4.5.
"""

import errno
import fcntl
import os
import stat
import struct
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from windtunnel.driver.archive.protocol.codes import NULL_VALUE, major_of, version_text
from windtunnel.driver.archive.storage.catalog import STORAGE_VERSION
from windtunnel.driver.base.arith import align
from windtunnel.driver.base.atomics import put_i32_release, put_i64_release
from windtunnel.driver.base.clock import Clock
from windtunnel.driver.base.errors import DriverError, StorageError
from windtunnel.driver.base.mapping import Mapping, create, open_file
from windtunnel.driver.cnc import error_log
from windtunnel.driver.cnc.error_log import ErrorObservation, read_errors

FILE_NAME = "archive-mark.dat"
LINK_NAME = "archive-mark.lnk"
BLOCK_LENGTH, TEMPLATE_ID, SCHEMA_ID, SCHEMA_VERSION = 128, 200, 100, 2
SBE_HEADER = struct.Struct("<4H")
_FIELDS = struct.Struct("<i4x3q5i4xq")
_NAMES = (
    "version", "activity_timestamp", "start_timestamp", "pid", "control_stream_id",
    "local_control_stream_id", "events_stream_id", "header_length", "error_buffer_length",
    "archive_id",
)  # fmt: skip
VERSION, ACTIVITY_TIMESTAMP = 8, 16
TEXTS = SBE_HEADER.size + BLOCK_LENGTH
_TEXT_NAMES = ("control_channel", "local_control_channel", "events_channel", "aeron_directory")
HEADER_LENGTH = 8192
ERROR_BUFFER_LENGTH_MIN = 1 << 20
PAGE_LENGTH = 4096
LENGTH_MIN = HEADER_LENGTH + PAGE_LENGTH
"""Ours: of a mark file on a full disk."""
LIVENESS_TIMEOUT_MS = 10_000
LINK_LENGTH_MAX = 4096


class ActiveArchiveError(DriverError):
    """Another archive lives in the directory that was asked for."""


@dataclass(frozen=True, kw_only=True, slots=True)
class MarkFileHeader:
    """What an archive tells about itself."""

    version: int = 0
    activity_timestamp: int = NULL_VALUE
    start_timestamp: int = NULL_VALUE
    pid: int = 0
    control_stream_id: int = 10
    local_control_stream_id: int = 10
    events_stream_id: int = 30
    header_length: int = HEADER_LENGTH
    error_buffer_length: int = ERROR_BUFFER_LENGTH_MIN
    archive_id: int = NULL_VALUE
    control_channel: str = ""
    local_control_channel: str = ""
    events_channel: str = ""
    aeron_directory: str = ""

    def is_active(self, now_ms: int) -> bool:
        """Whether its archive lives; a clock that went back makes no difference to that."""
        return abs(now_ms - self.activity_timestamp) < LIVENESS_TIMEOUT_MS

    def encode(self) -> bytes:
        """All but version and activity, which are set apart. Raises StorageError if too long."""
        numbers = [getattr(self, name) for name in _NAMES]
        numbers[0:2] = [0, NULL_VALUE]
        content = SBE_HEADER.pack(BLOCK_LENGTH, TEMPLATE_ID, SCHEMA_ID, SCHEMA_VERSION)
        content = (content + _FIELDS.pack(*numbers)).ljust(TEXTS, b"\0")
        for name in _TEXT_NAMES:
            text = getattr(self, name).encode("ascii", "replace")
            content += struct.pack("<I", len(text)) + text
        if len(content) > HEADER_LENGTH:
            raise StorageError(
                f"mark file: its header of {len(content)} bytes exceeds {HEADER_LENGTH}"
            )
        return content


def directory_of(archive_directory: Path) -> Path:
    """The directory in which an archive's mark file lies. Raises StorageError."""
    link = archive_directory / LINK_NAME
    try:
        with open(link, "rb") as file:
            content = file.read(LINK_LENGTH_MAX)
    except FileNotFoundError:
        return archive_directory
    except OSError as error:
        raise StorageError(f"cannot read {link}: {error.strerror}") from error
    text = content.decode("utf-8", "replace").strip()
    if not text or "\0" in text:
        raise StorageError(f"{link}: expected the path of a directory, found {text[:80]!r}")
    return Path(text)


def parse_header(content: bytes, path: Path) -> MarkFileHeader:
    """What the first bytes of a mark file say. Raises StorageError."""
    _, template_id, schema_id, _ = (
        SBE_HEADER.unpack_from(content) if len(content) >= SBE_HEADER.size else (0, 0, 0, 0)
    )
    is_older = (template_id, schema_id) != (TEMPLATE_ID, SCHEMA_ID)
    at = 0 if is_older else SBE_HEADER.size
    texts_at = at + BLOCK_LENGTH
    if len(content) < texts_at:
        raise StorageError(f"{path}: expected a header of {texts_at} bytes, found {len(content)}")
    values: dict[str, Any] = dict(zip(_NAMES, _FIELDS.unpack_from(content, at), strict=True))
    if values["version"] and major_of(values["version"]) != major_of(STORAGE_VERSION):
        raise StorageError(
            f"{path}: expected storage version 3.x, found {version_text(values['version'])}"
        )
    return MarkFileHeader(**values | _texts(content, texts_at, path))


def _texts(content: bytes, at: int, path: Path) -> dict[str, str]:
    found = {}
    for name in _TEXT_NAMES:
        length = struct.unpack_from("<I", content, at)[0] if at + 4 <= len(content) else -1
        if not 0 <= length <= len(content) - at - 4:
            raise StorageError(f"{path}: expected the length of {name} at {at}, found {length}")
        found[name] = content[at + 4 : at + 4 + length].decode("ascii", "replace")
        at += 4 + length
    return found


def read_header(path: Path) -> MarkFileHeader:
    """Read a mark file that anybody may be writing. Raises StorageError."""
    return parse_header(_read(path, 0, HEADER_LENGTH), path)


def read_error_log(path: Path) -> list[ErrorObservation]:
    """The errors that an archive noted in its mark file. Raises StorageError."""
    header = read_header(path)
    if header.header_length < 0 or header.error_buffer_length < 0:
        raise StorageError(f"{path}: its lengths cannot be negative")
    content = _read(path, header.header_length, header.error_buffer_length)
    return read_errors(np.frombuffer(content, dtype=np.uint8))


def _read(path: Path, at: int, length: int) -> bytes:
    try:
        with open(path, "rb") as file:
            file.seek(at)
            return file.read(length)
    except OSError as error:
        raise StorageError(f"cannot read {path}: {error.strerror}") from error


class MarkFile:
    """The mark file of an archive that is about to start, or runs."""

    def __init__(
        self,
        archive_directory: Path,
        header: MarkFileHeader,
        clock: Clock,
        mark_directory: Path | None = None,
    ) -> None:
        """Take the directory; not yet `ready`. Raises ActiveArchiveError, StorageError."""
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
        header.encode()  # Before anything is changed.
        kept_length = 0
        if os.path.lexists(self.path):
            _require_dead(self.path, self._clock.now_ms())
            kept_length = _kept_errors(self.path, self._clock.now_ms())
        try:
            self._mapping, length = self._taken(header, has_errors=kept_length > 0)
        except OSError as error:
            raise StorageError(f"cannot write {self.path}: {error.strerror}") from error
        log = self._mapping.array[HEADER_LENGTH:length]
        log[kept_length:] = 0
        self.error_log = log[kept_length : header.error_buffer_length]
        _link(archive_directory, self.directory)

    def _taken(self, header: MarkFileHeader, *, has_errors: bool) -> tuple[Mapping, int]:
        """The file of the archive before, or a new one, and how many of its bytes have blocks."""
        wanted = int(align(HEADER_LENGTH + header.error_buffer_length, PAGE_LENGTH))
        size = _regular_size(self.path)
        attempts = [(self._taken_over, each) for each in (size, LENGTH_MIN) if size >= LENGTH_MIN]
        if size != wanted and not has_errors:
            attempts.insert(0, (self._created, wanted))
        attempts.append((self._created, LENGTH_MIN))
        for attempt, length in attempts:
            own = replace(
                header,
                error_buffer_length=min(header.error_buffer_length, length - HEADER_LENGTH),
            )
            with _full_disk_ignored():
                return attempt(length, own.encode()), length
        raise StorageError(
            f"cannot write {self.path}: {os.strerror(errno.ENOSPC)}; expected at least "
            f"{LENGTH_MIN} free bytes in {self.directory}: delete a file that is not the archive's"
        )

    def _taken_over(self, length: int, content: bytes) -> Mapping:
        """Use the file that is there."""
        file = os.open(self.path, os.O_RDWR | os.O_CLOEXEC | os.O_NOFOLLOW)
        try:
            os.posix_fallocate(file, 0, length)
            # One call: who reads it meanwhile, or after a kill, finds no half of it.
            os.pwrite(file, content, 0)
        finally:
            os.close(file)
        return open_file(self.path)

    def _created(self, length: int, content: bytes) -> Mapping:
        """Make a new file, which gets its name when its header is in it."""
        fresh = self.path.with_suffix(".new")
        fresh.unlink(missing_ok=True)
        mapping = create(fresh, length, sparse=False)
        mapping.array[: len(content)] = np.frombuffer(content, dtype=np.uint8)
        os.rename(fresh, self.path)
        return mapping

    def ready(self) -> None:
        """Tell everybody that the archive lives and can be talked to."""
        self.touch()
        if self._mapping is not None:
            put_i32_release(self._mapping.array, VERSION, STORAGE_VERSION)

    def touch(self) -> None:
        """Tell everybody that the archive still lives."""
        self._put_activity(self._clock.now_ms())

    def close(self) -> None:
        """Tell everybody that it has ended in good order, or has not started at all."""
        self._put_activity(NULL_VALUE)
        if self._mapping is not None:
            self._mapping.close()
            self._mapping = None
            os.close(self._lock)
            self.error_log = np.empty(0, dtype=np.uint8)

    def _put_activity(self, timestamp_ms: int) -> None:
        if self._mapping is not None:
            put_i64_release(self._mapping.array, ACTIVITY_TIMESTAMP, timestamp_ms)


def lock(directory: Path) -> int:
    """Lock a directory for as long as the descriptor is open."""
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
        raise ActiveArchiveError(f"{directory}: another archive has locked it") from error
    return descriptor


def _require_dead(path: Path, now_ms: int) -> None:
    header = read_header(path)
    if header.is_active(now_ms):
        raise ActiveArchiveError(
            f"{path}: an archive was active {now_ms - header.activity_timestamp} ms ago, "
            f"as process {header.pid}; one that was killed is given up after "
            f"{LIVENESS_TIMEOUT_MS} ms"
        )


@contextmanager
def _full_disk_ignored() -> Iterator[None]:
    """Go on where there is no space; other errors pass."""
    try:
        yield
    except (OSError, StorageError) as error:
        cause = error if isinstance(error, OSError) else error.__cause__
        if not isinstance(cause, OSError) or cause.errno not in (errno.ENOSPC, errno.EDQUOT):
            raise


def _regular_size(path: Path) -> int:
    """The length of a file; 0 where it is not there, or is not a regular file."""
    try:
        found = os.lstat(path)
    except FileNotFoundError:
        return 0
    return found.st_size if stat.S_ISREG(found.st_mode) else 0


def _kept_errors(path: Path, now_ms: int) -> int:
    """Copy the errors of the archive before into a file of their own.

    Returns: how many bytes of the log stay because the disk has no space for the copy
    """
    header = read_header(path)
    observations = read_error_log(path)
    if not observations:
        return 0
    kept = path.with_name(f"archive-{now_ms}-error.log")
    lines = [
        f"{each.observation_count} observations from {each.first_observation_ms} "
        f"to {each.last_observation_ms}: {each.text}\n"
        for each in observations
    ]
    try:
        with _full_disk_ignored():
            kept.write_text("".join(lines))
            return 0
        kept.unlink(missing_ok=True)
    except OSError as error:
        raise StorageError(f"cannot write {kept}: {error.strerror}") from error
    if header.header_length != HEADER_LENGTH:
        raise StorageError(f"cannot write {kept}: {os.strerror(errno.ENOSPC)}")
    return _used_length(_read(path, HEADER_LENGTH, header.error_buffer_length))


def _used_length(log: bytes) -> int:
    """Where the entries of an error log end."""
    at = 0
    while at + error_log.TEXT <= len(log):
        length = int.from_bytes(log[at : at + 4], "little", signed=True)
        if length < error_log.TEXT or at + length > len(log):
            break
        at = int(align(at + length, error_log.ALIGNMENT))
    return at


def _link(archive_directory: Path, mark_directory: Path) -> None:
    """Leave a way from the catalog to the mark file, or take an old one away."""
    link = archive_directory / LINK_NAME
    try:
        if mark_directory.resolve() == archive_directory.resolve():
            if os.path.lexists(link):
                link.unlink()
        elif not link.is_file() or link.read_bytes() != os.fsencode(mark_directory.resolve()):
            link.write_bytes(os.fsencode(mark_directory.resolve()))
    except OSError as error:
        raise StorageError(f"cannot write {link}: {error.strerror}") from error
