"""The catalog entry of one recording: a header, a descriptor, and padding up to the next entry.

    0        4       8          12            31  32                      32 + length
    +--------+-------+----------+-------------+---+-----------+-----------+
    | length | state | checksum | zero        | 0 | descriptor  | padding |
    +--------+-------+----------+-------------+---+-----------+-----------+

The length includes descriptor and padding. The next entry begins at 32 plus a multiple of the
alignment. The descriptor is the message without its header. The padding of an entry that was
changed may contain any bytes.
Source: archive-protocol 4.2.
"""

import struct
from dataclasses import dataclass
from enum import IntEnum

from windtunnel.driver.archive.protocol.codec import (
    PREFIX,
    MalformedMessage,
    decode_body,
    encode_body,
)
from windtunnel.driver.archive.protocol.codes import SCHEMA_VERSION
from windtunnel.driver.archive.protocol.responses import RecordingDescriptor
from windtunnel.driver.archive.storage.checksum import Checksum
from windtunnel.driver.base.arith import align

HEADER = struct.Struct("<3i")
HEADER_LENGTH = 32
ALIGNMENT = 64
BLOCK_LENGTH = RecordingDescriptor.LAYOUT.block_length
RECORDING_ID = 16
TEXT_COUNT = 3
LENGTH_MIN = BLOCK_LENGTH + TEXT_COUNT * PREFIX.size
"""The length of a descriptor whose three strings are empty."""


class RecordingState(IntEnum):
    """The state of a catalog entry. A deleted entry remains, so its id is not used again."""

    INVALID = 0
    VALID = 1
    DELETED = 2


@dataclass(frozen=True, slots=True)
class CatalogEntry:
    """A catalog entry as it is stored in the file."""

    offset: int
    length: int
    state: int
    checksum: int
    content: bytes
    descriptor: RecordingDescriptor | None
    fault: str = ""
    """The reason why the descriptor cannot be read or trusted, or an empty string."""

    @property
    def recording_id(self) -> int:
        return -1 if self.descriptor is None else self.descriptor.recording_id

    @property
    def is_valid(self) -> bool:
        return self.state == RecordingState.VALID and self.descriptor is not None

    @property
    def state_name(self) -> str:
        known = {int(state) for state in RecordingState}
        return RecordingState(self.state).name if self.state in known else str(self.state)

    @property
    def end(self) -> int:
        return self.offset + HEADER_LENGTH + self.length

    def is_checksum_right(self, checksum: Checksum) -> bool:
        return self.checksum == checksum.of(self.content)


def parse_entry(offset: int, head: bytes, content: bytes) -> CatalogEntry:
    """Parse a catalog entry. Any error in it is stored in the `fault` field."""
    length, state, checksum = HEADER.unpack_from(head)
    try:
        descriptor, _ = decode_body(RecordingDescriptor, content, 0, BLOCK_LENGTH, SCHEMA_VERSION)
    except MalformedMessage as error:
        return CatalogEntry(offset, length, state, checksum, content, None, str(error))
    fault = "" if state in set(RecordingState) else f"state is {state}: expected 0, 1 or 2"
    return CatalogEntry(
        offset, length, state, checksum, content, descriptor, fault or descriptor_fault(descriptor)
    )


def descriptor_fault(descriptor: RecordingDescriptor) -> str:
    """Return the reason why a descriptor is invalid, or an empty string if it is valid."""
    term, segment = descriptor.term_buffer_length, descriptor.segment_file_length
    for name, value in (("term buffer length", term), ("segment file length", segment)):
        if not 1 << 16 <= value <= 1 << 30 or value & (value - 1):
            return f"{name} is {value}: expected a power of two from 65536 to 1073741824"
    if segment < term:
        return f"segment file length {segment} is less than term buffer length {term}"
    texts = (descriptor.stripped_channel, descriptor.original_channel, descriptor.source_identity)
    if any("\0" in text for text in texts):
        return "a channel or the source identity contains zero bytes"
    if descriptor.recording_id < 0:
        return f"recording id is {descriptor.recording_id}: expected at least 0"
    return ""


def padded_content(descriptor: RecordingDescriptor, alignment: int = ALIGNMENT) -> bytes:
    """Encode a descriptor, followed by its padding."""
    body = encode_body(descriptor)
    return body.ljust(int(align(HEADER_LENGTH + len(body), alignment)) - HEADER_LENGTH, b"\0")


def header(content: bytes, state: int, checksum: Checksum | None) -> bytes:
    """Encode the header of a catalog entry with the given content."""
    return HEADER.pack(len(content), state, 0 if checksum is None else checksum.of(content))


def covers_later_entry(entry: CatalogEntry, alignment: int) -> bool:
    """Return whether an entry's length field is too large, so the entry would cover a later entry.

    An entry may be longer than its strings require, because it keeps its length when they become
    shorter. Then the unused bytes are zero.
    """
    descriptor = entry.descriptor
    if descriptor is None:
        return False
    texts = (descriptor.stripped_channel, descriptor.original_channel, descriptor.source_identity)
    end = BLOCK_LENGTH + sum(PREFIX.size + len(text) for text in texts)
    at = int(align(HEADER_LENGTH + end, alignment)) - HEADER_LENGTH
    if len(entry.content) < at + HEADER_LENGTH + LENGTH_MIN:
        return False
    later = parse_entry(
        at, entry.content[at : at + HEADER_LENGTH], entry.content[at + HEADER_LENGTH :]
    )
    return not later.fault and later.length > 0 and later.recording_id > entry.recording_id


def may_be_partial_write(content: bytes, recording_id: int) -> bool:
    """Return whether content may be an incompletely written descriptor of this recording.

    A descriptor is written from start to end, so no byte may follow the strings whose lengths it
    contains.
    """
    found = content[RECORDING_ID : RECORDING_ID + 8].ljust(8, b"\0")
    if int.from_bytes(found, "little", signed=True) != recording_id:
        return False
    end = BLOCK_LENGTH
    for _ in range(TEXT_COUNT):
        end += PREFIX.size + int.from_bytes(content[end : end + PREFIX.size], "little")
    return len(content) <= end
