"""Reading the entries of a damaged catalog, as far as they can be read.

    32        | entry | length 0 | entry ... | other bytes | entry | 0 0 0
                         ^ size by its texts   ^ passed over, 64 bytes at a time

An entry ends behind its texts, whatever its length says. Where none can be read, the next place is
tried at which one may begin. Where the length is wrong, all other fields must make sense. Knows
nothing of segment files. Source: archive-protocol 4.2.
"""

from dataclasses import dataclass, field, replace
from pathlib import Path

from windtunnel.driver.archive.protocol.codec import MalformedMessage, decode_body
from windtunnel.driver.archive.protocol.codes import (
    NULL_VALUE,
    SCHEMA_VERSION,
    major_of,
    version_text,
)
from windtunnel.driver.archive.protocol.responses import RecordingDescriptor
from windtunnel.driver.archive.storage import catalog_entry as entries
from windtunnel.driver.archive.storage.catalog import (
    HEADER,
    HEADER_LENGTH,
    STORAGE_VERSION,
    CatalogVersionError,
    is_older,
)
from windtunnel.driver.archive.storage.catalog_entry import CatalogEntry
from windtunnel.driver.base.arith import align, is_power_of_two
from windtunnel.driver.base.errors import StorageError
from windtunnel.driver.wire.data import ALIGNMENT as FRAME_ALIGNMENT
from windtunnel.driver.wire.data import HEADER_LENGTH as FRAME_HEADER_LENGTH

NEXT_ID_MAX = 1 << 62
ALIGNMENT_MAX = 4096
MTU_MAX = 65_504


@dataclass(slots=True)
class Salvage:
    """What a damaged catalog still says."""

    length: int = 0
    next_recording_id: int = 0
    "0 where the header does not tell."
    alignment: int = entries.ALIGNMENT
    entries: dict[int, CatalogEntry] = field(default_factory=dict)
    "By recording id; one without a fault takes the place of one with."
    headless: set[int] = field(default_factory=set)
    "Those whose header is all zero."


def salvaged(path: Path) -> Salvage:
    """Read what can be read. Raises StorageError, CatalogVersionError for an older catalog."""
    try:
        content = path.read_bytes()
    except OSError as error:
        raise StorageError(f"cannot read {path}: {error.strerror}") from error
    found = Salvage(len(content))
    _read_header(path, content, found)
    at, end = HEADER_LENGTH, len(content.rstrip(b"\0"))
    while at < end:
        entry = _entry_at(content, at, found.alignment)
        if entry is None:
            at += found.alignment
            continue
        known = found.entries.get(entry.recording_id)
        if known is None or (known.fault and not entry.fault):
            found.entries[entry.recording_id] = entry
            if not any(content[at : at + entries.HEADER_LENGTH]):
                found.headless.add(entry.recording_id)
        # Not by its length, which may be wrong and hide the next ones.
        at += int(align(entries.HEADER_LENGTH + _text_end(entry.content), found.alignment))
    return found


def _read_header(path: Path, content: bytes, found: Salvage) -> None:
    if len(content) < HEADER_LENGTH:
        return
    version, _, next_id, alignment, _ = HEADER.unpack_from(content)
    if is_older(version):
        raise CatalogVersionError(
            f"{path}: expected storage version 3.x, found {version_text(version)}; "
            "Aeron's `ArchiveTool migrate` can upgrade it"
        )
    if major_of(version) == major_of(STORAGE_VERSION) and 0 < next_id < NEXT_ID_MAX:
        found.next_recording_id = next_id
    if entries.HEADER_LENGTH <= alignment <= ALIGNMENT_MAX and is_power_of_two(alignment):
        found.alignment = alignment


def _entry_at(content: bytes, at: int, alignment: int) -> CatalogEntry | None:
    """The entry that begins at an offset, if one does."""
    start = at + entries.HEADER_LENGTH
    try:
        descriptor, end = decode_body(
            RecordingDescriptor, content, start, entries.BLOCK_LENGTH, SCHEMA_VERSION
        )
    except MalformedMessage:
        return None
    head = content[at:start]
    length = entries.HEADER.unpack_from(head)[0]
    is_length_right = end - start <= length <= len(content) - start
    if not 0 <= descriptor.recording_id < NEXT_ID_MAX or not _are_texts(descriptor):
        return None
    if not is_length_right and not _is_sensible(descriptor):
        return None
    if not is_length_right or any(content[int(align(end, FRAME_ALIGNMENT)) : start + length]):
        length = int(align(end - at, alignment)) - entries.HEADER_LENGTH
    own = content[start : start + length].ljust(length, b"\0")
    entry = replace(entries.parsed(at, head, own), length=length)
    return None if entry.fault and not descriptor.stripped_channel else entry


def _text_end(content: bytes) -> int:
    """How many bytes of an entry's content its descriptor takes."""
    _, end = decode_body(RecordingDescriptor, content, 0, entries.BLOCK_LENGTH, SCHEMA_VERSION)
    return end


def _are_texts(found: RecordingDescriptor) -> bool:
    return (found.stripped_channel + found.original_channel + found.source_identity).isprintable()


def _is_sensible(found: RecordingDescriptor) -> bool:
    """Whether an archive can have written this descriptor, by its fields alone."""
    start, stop = found.start_position, found.stop_position
    return (
        "aeron" in found.stripped_channel
        and start >= 0
        and start % FRAME_ALIGNMENT == 0
        and (stop == NULL_VALUE or (stop >= start and stop % FRAME_ALIGNMENT == 0))
        and FRAME_HEADER_LENGTH < found.mtu_length <= MTU_MAX
        and not entries.shape_fault(found)
    )
