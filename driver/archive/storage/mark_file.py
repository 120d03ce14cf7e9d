"""The mark file: who owns an archive's directory, whether he lives, and his error log.

    0        8        12  16         24       32    40   .. 64          136           8192
    +--------+--------+---+----------+--------+-----+-------+---------+-------------+-----------+
    | header | version|   | activity | start  | pid | ...   |   id    | four texts  | error log |
    +--------+--------+---+----------+--------+-----+-------+---------+-------------+-----------+

The activity time is written about once a second and is -1 after an orderly end; the version is
written last, so a file without one is still being made. It may lie in another directory, which
`archive-mark.lnk` beside the catalog names. Files of older archives have no header and lie eight
bytes lower. Times are epoch ms. Beyond what Aeron does, our archive locks its directory while it
lives, so that two that start at once do not both find it free. Source: archive-protocol 4.5.
"""

import errno
import fcntl
import os
import struct
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from driver.archive.protocol.codes import NULL_VALUE, major_of, version_text
from driver.archive.storage.catalog import STORAGE_VERSION
from driver.base.arith import align
from driver.base.atomics import put_i32_release, put_i64_release
from driver.base.clock import Clock
from driver.base.errors import DriverError, StorageError
from driver.base.mapping import Mapping, create
from driver.cnc.error_log import ErrorObservation, read_errors

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
        self._lock = _lock(archive_directory)
        try:
            self._mapping = self._make(archive_directory, header)
        except BaseException:
            os.close(self._lock)
            raise
        self.error_log = self._mapping.array[HEADER_LENGTH:][: header.error_buffer_length]

    def _make(self, archive_directory: Path, header: MarkFileHeader) -> Mapping:
        clock = self._clock
        if self.path.exists():
            _require_dead(self.path, clock.now_ms())
            _keep_errors(self.path, clock.now_ms())
        content = header.encode()
        length = int(align(HEADER_LENGTH + header.error_buffer_length, PAGE_LENGTH))
        # A new file under the old name: whoever still has the old one mapped keeps it.
        fresh = self.path.with_suffix(".new")
        fresh.unlink(missing_ok=True)
        mapping = create(fresh, length, sparse=False)
        mapping.array[: len(content)] = np.frombuffer(content, dtype=np.uint8)
        os.rename(fresh, self.path)
        _link(archive_directory, self.directory)
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


def _lock(directory: Path) -> int:
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


def _keep_errors(path: Path, now_ms: int) -> None:
    """What the last archive noted goes into a file of its own."""
    observations = read_error_log(path)
    if observations:
        kept = path.with_name(f"archive-{now_ms}-error.log")
        lines = [
            f"{each.observation_count} observations from {each.first_observation_ms} "
            f"to {each.last_observation_ms}: {each.text}\n"
            for each in observations
        ]
        try:
            kept.write_text("".join(lines))
        except OSError as error:
            raise StorageError(f"cannot write {kept}: {error.strerror}") from error


def _link(archive_directory: Path, mark_directory: Path) -> None:
    """Leave a way from the catalog to the mark file, or take an old one away."""
    link = archive_directory / LINK_NAME
    try:
        if mark_directory.resolve() == archive_directory.resolve():
            link.unlink(missing_ok=True)
        else:
            link.write_text(str(mark_directory.resolve()))
    except OSError as error:
        raise StorageError(f"cannot write {link}: {error.strerror}") from error
