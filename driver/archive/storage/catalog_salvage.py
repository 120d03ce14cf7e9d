"""Reads the readable entries of a damaged catalog.

    32        | entry | length 0 | entry ... | other bytes | entry | 0 0 0
                         ^ size by its strings ^ skipped, 64 bytes at a time

An entry is assumed to end after its strings, even if its length field contains another value. If no
entry can be read at an offset, the next offset where an entry may begin is tried. An entry with a
wrong length is accepted only if all its other fields are plausible. Segment files are not used.
Source: archive-protocol 4.2.
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
from windtunnel.driver.files.regular_file import read_regular
from windtunnel.driver.wire.data import ALIGNMENT as FRAME_ALIGNMENT
from windtunnel.driver.wire.data import HEADER_LENGTH as FRAME_HEADER_LENGTH

NEXT_ID_MAX = 1 << 62
ALIGNMENT_MAX = 4096
MTU_MAX = 65_504


@dataclass(slots=True)
class Salvage:
    """The readable part of a damaged catalog."""

    length: int = 0
    next_recording_id: int = 0
    """The next recording id, or 0 if the header does not contain it."""
    alignment: int = entries.ALIGNMENT
    entries: dict[int, CatalogEntry] = field(default_factory=dict)
    """The entries by recording id. An entry without a fault replaces an entry with a fault."""
    zero_header_ids: set[int] = field(default_factory=set)
    """The recording ids of entries whose header is all zeros."""


def salvage(path: Path) -> Salvage:
    """Read all readable entries of a catalog. Raises StorageError if the file cannot be read, or
    CatalogVersionError if its version is too old.
    """
    try:
        content = read_regular(path)
    except OSError as error:
        raise StorageError(f"cannot read {path}: {error.strerror}") from error
    result = Salvage(len(content))
    _read_header(path, content, result)
    at, end = HEADER_LENGTH, len(content.rstrip(b"\0"))
    while at < end:
        entry = _entry_at(content, at, result.alignment)
        if entry is None:
            at += result.alignment
            continue
        known = result.entries.get(entry.recording_id)
        if known is None or (known.fault and not entry.fault):
            result.entries[entry.recording_id] = entry
            if not any(content[at : at + entries.HEADER_LENGTH]):
                result.zero_header_ids.add(entry.recording_id)
        # The length field is not used: if it is wrong, it would skip the next entries.
        at += int(align(entries.HEADER_LENGTH + _text_end(entry.content), result.alignment))
    return result


def _read_header(path: Path, content: bytes, result: Salvage) -> None:
    if len(content) < HEADER_LENGTH:
        return
    version, _, next_id, alignment, _ = HEADER.unpack_from(content)
    if is_older(version):
        raise CatalogVersionError(
            f"{path}: expected storage version 3.x, found {version_text(version)}; "
            "Aeron's `ArchiveTool migrate` can upgrade it"
        )
    if major_of(version) == major_of(STORAGE_VERSION) and 0 < next_id < NEXT_ID_MAX:
        result.next_recording_id = next_id
    if entries.HEADER_LENGTH <= alignment <= ALIGNMENT_MAX and is_power_of_two(alignment):
        result.alignment = alignment


def _entry_at(content: bytes, at: int, alignment: int) -> CatalogEntry | None:
    """Return the entry that begins at an offset, or None if it cannot be read."""
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
    if not is_length_right and not _is_plausible(descriptor):
        return None
    if not is_length_right or any(content[int(align(end, FRAME_ALIGNMENT)) : start + length]):
        length = int(align(end - at, alignment)) - entries.HEADER_LENGTH
    own = content[start : start + length].ljust(length, b"\0")
    entry = replace(entries.parse_entry(at, head, own), length=length)
    return None if entry.fault and not descriptor.stripped_channel else entry


def _text_end(content: bytes) -> int:
    """Return the length of the descriptor in an entry's content, without the padding."""
    _, end = decode_body(RecordingDescriptor, content, 0, entries.BLOCK_LENGTH, SCHEMA_VERSION)
    return end


def _are_texts(descriptor: RecordingDescriptor) -> bool:
    return (
        descriptor.stripped_channel + descriptor.original_channel + descriptor.source_identity
    ).isprintable()


def _is_plausible(descriptor: RecordingDescriptor) -> bool:
    """Return whether an archive could have written a descriptor with these field values."""
    start, stop = descriptor.start_position, descriptor.stop_position
    return (
        "aeron" in descriptor.stripped_channel
        and start >= 0
        and start % FRAME_ALIGNMENT == 0
        and (stop == NULL_VALUE or (stop >= start and stop % FRAME_ALIGNMENT == 0))
        and FRAME_HEADER_LENGTH < descriptor.mtu_length <= MTU_MAX
        and not entries.descriptor_fault(descriptor)
    )
