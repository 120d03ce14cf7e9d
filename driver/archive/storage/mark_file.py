"""The mark file, which identifies a directory's archive, shows whether that archive is running, and
logs its errors.

    0        8        12  16         24       32    40   .. 64          136           8192
    +--------+--------+---+----------+--------+-----+-------+---------+-------------+-----------+
    | header | version|   | activity | start  | pid | ...   |   id    | four texts  | error log |
    +--------+--------+---+----------+--------+-----+-------+---------+-------------+-----------+

The activity time is written about once a second and is -1 after a clean shutdown. The version is
written last, so a file without a version is still being created. The file may be in another
directory. Then the file `archive-mark.lnk`, next to the catalog, contains the path of that
directory. Files of older archives have no header and begin eight bytes earlier. Times are epoch ms.
Source: archive-protocol 4.5.
"""

import struct
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from windtunnel.driver.archive.protocol.codes import NULL_VALUE, major_of, version_text
from windtunnel.driver.archive.storage.catalog import STORAGE_VERSION
from windtunnel.driver.base.errors import StorageError
from windtunnel.driver.cnc.error_log import ErrorObservation, read_errors
from windtunnel.driver.files.regular_file import read_regular

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
"""The minimum length of a mark file. It is used on a full disk."""
LIVENESS_TIMEOUT_MS = 10_000
LINK_LENGTH_MAX = 4096


@dataclass(frozen=True, kw_only=True, slots=True)
class MarkFileHeader:
    """The fields of the mark file header."""

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
        """Return whether the archive counts as running: its activity time differs from `now_ms` by
        less than the liveness timeout.
        """
        return abs(now_ms - self.activity_timestamp) < LIVENESS_TIMEOUT_MS

    def encode(self) -> bytes:
        """Encode the header except the version and activity time, which are written separately.

        Raises StorageError if the header is too long.
        """
        numbers = [getattr(self, name) for name in _NAMES]
        numbers[0:2] = [0, NULL_VALUE]
        content = SBE_HEADER.pack(BLOCK_LENGTH, TEMPLATE_ID, SCHEMA_ID, SCHEMA_VERSION)
        content = (content + _FIELDS.pack(*numbers)).ljust(TEXTS, b"\0")
        for name in _TEXT_NAMES:
            text = getattr(self, name).encode("ascii", "replace")
            content += struct.pack("<I", len(text)) + text
        if len(content) > HEADER_LENGTH:
            raise StorageError(
                f"mark file: expected a header of at most {HEADER_LENGTH} bytes, found "
                f"{len(content)}"
            )
        return content


_REMOVE = "if no archive is running, remove the file: the next archive writes a new one"


def directory_of(archive_directory: Path) -> Path:
    """Return the directory that contains an archive's mark file. Raises StorageError if the link
    file cannot be read or is invalid.
    """
    link = archive_directory / LINK_NAME
    try:
        content = read_regular(link, 0, LINK_LENGTH_MAX)
    except FileNotFoundError:
        return archive_directory
    except OSError as error:
        raise StorageError(f"cannot read {link}: {error.strerror}") from error
    text = content.decode("utf-8", "replace").strip()
    if not text or "\0" in text:
        raise StorageError(f"{link}: expected the path of a directory, found {text[:80]!r}")
    return Path(text)


def parse_header(content: bytes, path: Path) -> MarkFileHeader:
    """Parse the header at the start of a mark file. Raises StorageError if the header is too short
    or invalid.
    """
    _, template_id, schema_id, _ = (
        SBE_HEADER.unpack_from(content) if len(content) >= SBE_HEADER.size else (0, 0, 0, 0)
    )
    is_older = (template_id, schema_id) != (TEMPLATE_ID, SCHEMA_ID)
    at = 0 if is_older else SBE_HEADER.size
    texts_at = at + BLOCK_LENGTH
    if len(content) < texts_at:
        raise StorageError(
            f"{path}: expected a header of {texts_at} bytes, found {len(content)}; {_REMOVE}"
        )
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
            raise StorageError(
                f"{path}: expected a valid length of {name} at offset {at}, found {length}; "
                f"{_REMOVE}"
            )
        found[name] = content[at + 4 : at + 4 + length].decode("ascii", "replace")
        at += 4 + length
    return found


def read_header(path: Path) -> MarkFileHeader:
    """Read the header of a mark file, even if its archive is running. Raises StorageError if the
    file cannot be read or is invalid.
    """
    return parse_header(read_part(path, 0, HEADER_LENGTH), path)


def read_error_log(path: Path) -> list[ErrorObservation]:
    """Read the error log of a mark file. Raises StorageError if the file cannot be read or is
    invalid.
    """
    header = read_header(path)
    if header.header_length < 0 or header.error_buffer_length < 0:
        raise StorageError(
            f"{path}: expected lengths of at least 0, found header length "
            f"{header.header_length} and error buffer length {header.error_buffer_length}"
        )
    content = read_part(path, header.header_length, header.error_buffer_length)
    return read_errors(np.frombuffer(content, dtype=np.uint8))


def read_part(path: Path, at: int, length: int) -> bytes:
    """Read a part of a mark file. Raises StorageError if the file cannot be read."""
    try:
        return read_regular(path, at, length)
    except OSError as error:
        raise StorageError(f"cannot read {path}: {error.strerror}") from error
