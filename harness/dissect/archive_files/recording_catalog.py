"""Parser for an archive's catalog: the recordings, and the segment files that they need.

    0         8                 16          32
    +---------+-----------------+-----------+-------+-------+-- - -
    | version | next id         | alignment | entry | entry | 0 0 0
    +---------+-----------------+-----------+-------+-------+-- - -
                       entry:  | length | state | checksum | 0 | descriptor, texts | padding |

The archive may be running, or may have been killed. An invalid entry is returned with its error,
and an entry with an invalid length ends the list. Checksums are not verified, because Aeron does
not update them when it recovers. The archive's own tools verify them. Source: archive
specification, 4.2 and 4.3.
"""

import re
import struct
from collections.abc import Collection
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Any, BinaryIO

from windtunnel.harness.artifact.regular_file import open_regular

CATALOG_NAME = "archive.catalog"
MAJOR_VERSION = 3
VALID = 1
STATE_NAMES = {0: "INVALID", VALID: "VALID", 2: "DELETED"}
ENTRY_LENGTH_MAX = 1 << 20
"""Maximum length of an entry. An entry has three strings, of which channels are the longest, with
at most a few thousand characters."""
TERM_LENGTH_MIN, TERM_LENGTH_MAX = 1 << 16, 1 << 30
_MTU_MAX = 65_504

_HEADER = struct.Struct("<iiqi12x")
_ENTRY = struct.Struct("<iii20x")
_DESCRIPTOR = struct.Struct("<7q6i")
_SEGMENT_NAME = re.compile(r"([0-9]{1,19})-([0-9]{1,19})\.rec")


class CatalogError(ValueError):
    """The catalog does not exist or is invalid. The message names the file and the error."""


@dataclass(frozen=True)
class Recording:
    """A catalog entry, which describes one recording. If `fault` is set, its values cannot be
    trusted.
    """

    state: int
    control_session_id: int
    correlation_id: int
    recording_id: int
    start_timestamp_ms: int
    stop_timestamp_ms: int
    "Time at which the recording stopped, or -1 while the recording is active."
    start_position: int
    stop_position: int
    "Position at which the recording stopped, or -1 if it is active or the archive was killed."
    initial_term_id: int
    segment_length: int
    term_length: int
    mtu: int
    session_id: int
    stream_id: int
    stripped_channel: str
    original_channel: str
    source_identity: str
    fault: str = ""

    @property
    def is_readable(self) -> bool:
        return self.state == VALID and not self.fault

    @property
    def first_base(self) -> int:
        """The base position of the recording's first segment file."""
        return self.start_position - self.start_position % self.term_length

    def has_segment(self, base: int) -> bool:
        """Return whether a segment file with this base position is part of the recording."""
        behind = base - self.first_base
        is_within = self.stop_position < 0 or base <= self.stop_position
        return behind >= 0 and behind % self.segment_length == 0 and is_within

    def missing_base(self, bases: Collection[int]) -> int | None:
        """Return the base position of the first segment file that is missing from `bases`, or
        None.
        """
        end = self.stop_position
        if end < 0:
            end = max(bases, default=self.start_position)
        base = self.first_base
        while base in bases:
            base += self.segment_length
        return base if base < end else None

    def data_start(self, base: int) -> int:
        """Return the position of the first frame in the segment file with this base position."""
        return max(base, self.start_position)

    def data_end(self, base: int) -> int:
        """Return the maximum end position of frames in the segment file with this base position."""
        end = base + self.segment_length
        return end if self.stop_position < 0 else min(end, max(base, self.stop_position))


_FIELDS = [each.name for each in fields(Recording) if each.name not in ("state", "fault")]
"""Field names in the order in which the descriptor contains them."""


@dataclass(frozen=True)
class Catalog:
    """A catalog's entries in file order, up to the first entry with an invalid length."""

    recordings: tuple[Recording, ...]
    damage: str = ""
    "The error at which the list of entries ends, or an empty string."


def read_catalog(archive: Path) -> Catalog:
    """Read the catalog in an archive directory. Raises CatalogError if it is missing or invalid."""
    path = archive / CATALOG_NAME
    try:
        with open_regular(path) as file:
            return _entries(file, path, _alignment(file.read(_HEADER.size), path))
    except OSError as error:
        raise CatalogError(f"{path}: {error.strerror}") from error


def _alignment(header: bytes, path: Path) -> int:
    """Read the alignment of entries from the catalog header. Raises CatalogError if the header is
    invalid.
    """
    if len(header) < _HEADER.size:
        text = f"expected at least {_HEADER.size} bytes, found {len(header)}"
        raise CatalogError(f"{path}: {text}")
    version, _, _, alignment = _HEADER.unpack(header)
    if version >> 16 != MAJOR_VERSION:
        raise CatalogError(
            f"{path}: storage version: expected {MAJOR_VERSION}, found {version >> 16}: this is "
            f"not a catalog, or it is from another version of Aeron"
        )
    if not _ENTRY.size <= alignment <= ENTRY_LENGTH_MAX or alignment & (alignment - 1):
        raise CatalogError(
            f"{path}: alignment: expected 64, found {alignment}: migrate older catalogs first"
        )
    return int(alignment)


def _entries(file: BinaryIO, path: Path, alignment: int) -> Catalog:
    found: list[Recording] = []
    at, last_id = _HEADER.size, -1
    while True:
        file.seek(at)
        entry = file.read(_ENTRY.size)
        length, state, _ = _ENTRY.unpack(entry) if len(entry) == _ENTRY.size else (0, 0, 0)
        if length <= 0:
            return Catalog(tuple(found))
        content = file.read(min(length, ENTRY_LENGTH_MAX))
        if len(content) < length or length < _DESCRIPTOR.size:
            damage = f"{path}: the entry at {at} has the invalid length {length}"
            return Catalog(tuple(found), damage)
        found.append(_recording(state, content, last_id))
        last_id = max(last_id, found[-1].recording_id)
        at += -(-(_ENTRY.size + length) // alignment) * alignment


def segment_files(archive: Path) -> dict[int, dict[int, Path]]:
    """Return the segment files in an archive directory by recording id and base position."""
    found: dict[int, dict[int, Path]] = {}
    for path in archive.iterdir():
        name = _SEGMENT_NAME.fullmatch(path.name)
        if name and path.is_file() and not path.is_symlink():
            recording_id, base = int(name[1]), int(name[2])
            if max(recording_id, base) < 1 << 63:
                found.setdefault(recording_id, {})[base] = path
    return {recording: dict(sorted(files.items())) for recording, files in found.items()}


def _recording(state: int, content: bytes, last_id: int) -> Recording:
    at, fault, texts = _DESCRIPTOR.size, "", ["", "", ""]
    for index in range(len(texts)):
        length = int.from_bytes(content[at : at + 4], "little")
        at += 4
        if at + length > len(content):
            fault = "its strings exceed the entry"
            break
        texts[index] = content[at : at + length].decode("ascii", "replace")
        at += length
    numbers = _DESCRIPTOR.unpack_from(content)
    values: dict[str, Any] = dict(zip(_FIELDS, (*numbers, *texts), strict=True))
    recording = Recording(state=state, **values)
    return replace(recording, fault=fault or _error(recording, last_id))


def _error(recording: Recording, last_id: int) -> str:
    """Describe the first invalid value of a recording. Returns an empty string if all are valid."""
    if recording.state not in STATE_NAMES:
        return f"its state {recording.state} is invalid"
    if recording.recording_id <= last_id:
        return f"recording {recording.recording_id} comes after recording {last_id}"
    lengths = (("term", recording.term_length), ("segment", recording.segment_length))
    for name, value in lengths:
        if not TERM_LENGTH_MIN <= value <= TERM_LENGTH_MAX or value & (value - 1):
            return f"its {name} length {value} is invalid"
    if recording.segment_length < recording.term_length:
        return f"its segment length {recording.segment_length} is less than its term length"
    if not 32 < recording.mtu <= _MTU_MAX:
        return f"its mtu {recording.mtu} is invalid"
    if recording.start_position < 0 or recording.start_position % 32:
        return f"its start position {recording.start_position} is invalid"
    if recording.stop_position != -1 and recording.stop_position < recording.start_position:
        return f"its stop position {recording.stop_position} is before its start position"
    return ""
