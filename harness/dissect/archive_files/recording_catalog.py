"""An archive's catalog, read for itself: which recordings there are, and which files they need.

    0         8                 16          32
    +---------+-----------------+-----------+-------+-------+-- - -
    | version | next id         | alignment | entry | entry | 0 0 0
    +---------+-----------------+-----------+-------+-------+-- - -
                       entry:  | length | state | checksum | 0 | descriptor, texts | padding |

An archive may be at work on it, or have been killed: an entry that cannot be read is told with its
fault, and one whose length cannot be ends the walk. Whether checksums are right is left to the
archive's own tools, for Aeron leaves them stale where it recovers. Source: specification of the
archive, 4.2 and 4.3.
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
"""Of its three texts the longest are channels, which have at most some thousand characters."""
TERM_LENGTH_MIN, TERM_LENGTH_MAX = 1 << 16, 1 << 30
_MTU_MAX = 65_504

_HEADER = struct.Struct("<iiqi12x")
_ENTRY = struct.Struct("<iii20x")
_DESCRIPTOR = struct.Struct("<7q6i")
_SEGMENT_NAME = re.compile(r"(\d{1,18})-(\d{1,18})\.rec")


class CatalogError(ValueError):
    """There is no catalog, or none that can be read; the text names the file and the fault."""


@dataclass(frozen=True)
class Recording:
    """One entry of the catalog; without a fault its lengths are possible."""

    state: int
    control_session_id: int
    correlation_id: int
    recording_id: int
    start_timestamp_ms: int
    stop_timestamp_ms: int
    "-1 while it is recorded."
    start_position: int
    stop_position: int
    "-1 while it is recorded, and after the archive was killed."
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
        """The position at which its first file begins."""
        return self.start_position - self.start_position % self.term_length

    def has_segment(self, base: int) -> bool:
        """Whether a file of this base is the recording's; others were detached from it."""
        behind = base - self.first_base
        is_within = self.stop_position < 0 or base <= self.stop_position
        return behind >= 0 and behind % self.segment_length == 0 and is_within

    def missing_base(self, bases: Collection[int]) -> int | None:
        """The first position at which a file should begin and none does, as far as is told."""
        end = self.stop_position
        if end < 0:
            end = max(bases, default=self.start_position)
        base = self.first_base
        while base in bases:
            base += self.segment_length
        return base if base < end else None

    def data_start(self, base: int) -> int:
        """The position of the first frame in the file of this base."""
        return max(base, self.start_position)

    def data_end(self, base: int) -> int:
        """Up to where frames may lie in that file."""
        end = base + self.segment_length
        return end if self.stop_position < 0 else min(end, max(base, self.stop_position))


_FIELDS = [each.name for each in fields(Recording) if each.name not in ("state", "fault")]
"""In the order of the descriptor."""


@dataclass(frozen=True)
class Catalog:
    """All entries that could be reached, in the order of the file."""

    recordings: tuple[Recording, ...]
    damage: str = ""
    "Why there may be more of them."


def read_catalog(archive: Path) -> Catalog:
    """The catalog in an archive's directory. Raises CatalogError."""
    path = archive / CATALOG_NAME
    try:
        with open_regular(path) as file:
            return _entries(file, path, _alignment(file.read(_HEADER.size), path))
    except OSError as error:
        raise CatalogError(f"{path}: {error.strerror}") from error


def _alignment(header: bytes, path: Path) -> int:
    """What entries are aligned to, by the file's header. Raises CatalogError."""
    if len(header) < _HEADER.size:
        raise CatalogError(f"{path}: {len(header)} bytes: too short for a catalog")
    version, _, _, alignment = _HEADER.unpack(header)
    if version >> 16 != MAJOR_VERSION:
        raise CatalogError(
            f"{path}: storage version {version >> 16}: expected {MAJOR_VERSION}; this is no "
            "catalog, or its archive is of another age"
        )
    if not _ENTRY.size <= alignment <= ENTRY_LENGTH_MAX or alignment & (alignment - 1):
        raise CatalogError(
            f"{path}: alignment {alignment}: expected 64; older catalogs have to be migrated first"
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
            damage = f"{path}: the entry at {at} has length {length}, which cannot be"
            return Catalog(tuple(found), damage)
        found.append(_recording(state, content, last_id))
        last_id = max(last_id, found[-1].recording_id)
        at += -(-(_ENTRY.size + length) // alignment) * alignment


def segment_files(archive: Path) -> dict[int, dict[int, Path]]:
    """By recording id and base position, the segment files of an archive's directory."""
    found: dict[int, dict[int, Path]] = {}
    for path in archive.iterdir():
        name = _SEGMENT_NAME.fullmatch(path.name)
        if name and path.is_file() and not path.is_symlink():
            found.setdefault(int(name[1]), {})[int(name[2])] = path
    return {recording: dict(sorted(files.items())) for recording, files in found.items()}


def _recording(state: int, content: bytes, last_id: int) -> Recording:
    at, fault, texts = _DESCRIPTOR.size, "", ["", "", ""]
    for index in range(len(texts)):
        length = int.from_bytes(content[at : at + 4], "little")
        at += 4
        if at + length > len(content):
            fault = "its texts are longer than its entry"
            break
        texts[index] = content[at : at + length].decode("ascii", "replace")
        at += length
    numbers = _DESCRIPTOR.unpack_from(content)
    values: dict[str, Any] = dict(zip(_FIELDS, (*numbers, *texts), strict=True))
    made = Recording(state=state, **values)
    return replace(made, fault=fault or _impossible(made, last_id))


def _impossible(made: Recording, last_id: int) -> str:
    """What no recording can say of itself; empty if it says nothing of the kind."""
    if made.state not in STATE_NAMES:
        return f"its state is {made.state}"
    if made.recording_id <= last_id:
        return f"recording {made.recording_id} comes after recording {last_id}"
    for name, value in (("term", made.term_length), ("segment", made.segment_length)):
        if not TERM_LENGTH_MIN <= value <= TERM_LENGTH_MAX or value & (value - 1):
            return f"its {name} length is {value}"
    if made.segment_length < made.term_length:
        return f"its segments of {made.segment_length} are shorter than its terms"
    if not 32 < made.mtu <= _MTU_MAX:
        return f"its mtu is {made.mtu}"
    if made.start_position < 0 or made.start_position % 32:
        return f"its start position is {made.start_position}"
    if made.stop_position != -1 and made.stop_position < made.start_position:
        return f"its stop position {made.stop_position} is before its start"
    return ""
