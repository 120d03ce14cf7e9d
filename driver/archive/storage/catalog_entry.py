"""One recording in the catalog: a header, a descriptor, and padding up to the next entry.

    0        4       8          12            31  32                      32 + length
    +--------+-------+----------+-------------+---+-----------+-----------+
    | length | state | checksum | zero        | 0 | descriptor  | padding |
    +--------+-------+----------+-------------+---+-----------+-----------+

The length is that of descriptor and padding; it makes the next entry begin at 32 plus a multiple of
the alignment. The descriptor is the message without its header. The padding of an entry that was
changed may hold anything.
Source: archive-protocol 4.2.
"""

import struct
from dataclasses import dataclass
from enum import IntEnum

from driver.archive.protocol.codec import MalformedMessage, decode_body, encode_body
from driver.archive.protocol.codes import SCHEMA_VERSION
from driver.archive.protocol.responses import RecordingDescriptor
from driver.archive.storage.checksum import Checksum
from driver.base.arith import align

HEADER = struct.Struct("<3i")
HEADER_LENGTH = 32
ALIGNMENT = 64
BLOCK_LENGTH = RecordingDescriptor.LAYOUT.block_length
LENGTH_MIN = BLOCK_LENGTH + 3 * 4
"""A descriptor whose three texts are empty."""


class RecordingState(IntEnum):
    """Whether an entry counts. A deleted one keeps its bytes, so that its id is not used again."""

    INVALID = 0
    VALID = 1
    DELETED = 2


@dataclass(frozen=True, slots=True)
class CatalogEntry:
    """What the file says about one recording."""

    offset: int
    length: int
    state: int
    checksum: int
    content: bytes
    descriptor: RecordingDescriptor | None
    fault: str = ""
    "Why the descriptor cannot be read, or not be trusted."

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


def parsed(offset: int, head: bytes, content: bytes) -> CatalogEntry:
    """The entry that these bytes are; what is wrong with it is told in `fault`."""
    length, state, checksum = HEADER.unpack_from(head)
    try:
        descriptor, _ = decode_body(RecordingDescriptor, content, 0, BLOCK_LENGTH, SCHEMA_VERSION)
    except MalformedMessage as error:
        return CatalogEntry(offset, length, state, checksum, content, None, str(error))
    fault = "" if state in set(RecordingState) else f"its state is {state}"
    return CatalogEntry(
        offset, length, state, checksum, content, descriptor, fault or shape_fault(descriptor)
    )


def shape_fault(descriptor: RecordingDescriptor) -> str:
    """Why no recording can have these lengths, or nothing."""
    term, segment = descriptor.term_buffer_length, descriptor.segment_file_length
    for name, value in (("term buffer length", term), ("segment file length", segment)):
        if not 1 << 16 <= value <= 1 << 30 or value & (value - 1):
            return f"its {name} is {value}, which is no power of two from 65536 to 1073741824"
    if segment < term:
        return f"its segment file length {segment} is less than its term buffer length {term}"
    texts = (descriptor.stripped_channel, descriptor.original_channel, descriptor.source_identity)
    if any("\0" in text for text in texts):
        return "its texts hold zeros"
    if descriptor.recording_id < 0:
        return f"its recording id is {descriptor.recording_id}"
    return ""


def padded_content(descriptor: RecordingDescriptor, alignment: int = ALIGNMENT) -> bytes:
    """A descriptor with the padding behind it."""
    body = encode_body(descriptor)
    return body.ljust(int(align(HEADER_LENGTH + len(body), alignment)) - HEADER_LENGTH, b"\0")


def header(content: bytes, state: int, checksum: Checksum | None) -> bytes:
    """The fields in front of such content."""
    return HEADER.pack(len(content), state, 0 if checksum is None else checksum.of(content))
