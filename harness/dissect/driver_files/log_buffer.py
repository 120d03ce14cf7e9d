"""Parser for log buffer files: metadata, and iteration over the frames of a term.

    0            term length                                    length - 4096
    +------------+------------+------------+------- - - -------+----------+
    | term 0     | term 1     | term 2     | page alignment    | metadata |
    +------------+------------+------------+------- - - -------+----------+

Bytes are read through a function, because files may have gigabytes. All values are reported as
found: the file may be written to at the same time, truncated, or not a log buffer at all. Source:
specification section 2.
"""

import struct
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from windtunnel.harness.dissect.frames.layout import DATA, DATA_HEADER_LENGTH, FRAME_ALIGNMENT, PAD

TERM_COUNT = 3
METADATA_LENGTH = 4096
TERM_LENGTH_MIN, TERM_LENGTH_MAX = 1 << 16, 1 << 30
DEFAULT_HEADER_AT = 320

ReadAt = Callable[[int, int], bytes]
"""A function that reads bytes of a file by offset and length, fewer at the end of the file."""

_FIELDS = (
    ("tail_0", 0, "<i8"),
    ("tail_1", 8, "<i8"),
    ("tail_2", 16, "<i8"),
    ("active_term_count", 24, "<i4"),
    ("end_of_stream_position", 128, "<i8"),
    ("is_connected", 136, "<i4"),
    ("active_transport_count", 140, "<i4"),
    ("correlation_id", 256, "<i8"),
    ("initial_term_id", 264, "<i4"),
    ("default_frame_header_length", 268, "<i4"),
    ("mtu_length", 272, "<i4"),
    ("term_length", 276, "<i4"),
    ("page_size", 280, "<i4"),
    ("publication_window_length", 284, "<i4"),
    ("receiver_window_length", 288, "<i4"),
    ("socket_sndbuf_length", 292, "<i4"),
    ("os_default_socket_sndbuf_length", 296, "<i4"),
    ("os_max_socket_sndbuf_length", 300, "<i4"),
    ("socket_rcvbuf_length", 304, "<i4"),
    ("os_default_socket_rcvbuf_length", 308, "<i4"),
    ("os_max_socket_rcvbuf_length", 312, "<i4"),
    ("max_resend", 316, "<i4"),
    ("entity_tag", 448, "<i8"),
    ("response_correlation_id", 456, "<i8"),
    ("linger_timeout_ns", 464, "<i8"),
    ("untethered_window_limit_timeout_ns", 472, "<i8"),
    ("untethered_resting_timeout_ns", 480, "<i8"),
    ("group", 488, "u1"),
    ("is_response", 489, "u1"),
    ("rejoin", 490, "u1"),
    ("reliable", 491, "u1"),
    ("sparse", 492, "u1"),
    ("signal_eos", 493, "u1"),
    ("spies_simulate_connection", 494, "u1"),
    ("tether", 495, "u1"),
    ("is_publication_revoked", 496, "u1"),
    ("type", 497, "u1"),
    ("untethered_linger_timeout_ns", 500, "<i8"),
)
METADATA = np.dtype(
    {
        "names": [name for name, _, _ in _FIELDS],
        "offsets": [offset for _, offset, _ in _FIELDS],
        "formats": [kind for _, _, kind in _FIELDS],
        "itemsize": METADATA_LENGTH,
    }
)
LOG_TYPES = {0: "concurrent publication", 1: "exclusive publication", 2: "image"}

_HEADER = struct.Struct("<iBBHiiiiq")
assert _HEADER.size == DATA_HEADER_LENGTH

END_OF_TERM = "end of term"
NOTHING_YET = "end of data: zeros from here on"
CLAIMED = "claimed but not committed"
MALFORMED = "not a frame: invalid header"
OVERRUN = "not a frame: exceeds the term"
CUT_SHORT = "end of file"


class LogBufferError(ValueError):
    """The bytes are not a valid log buffer. The message gives the expected and actual values."""


@dataclass(frozen=True)
class LogFrame:
    """The header of a frame, and the frame's location."""

    term_index: int
    offset: int
    "Actual offset within the term. `term_offset` is the offset in the header."
    frame_length: int
    version: int
    flags: int
    type: int
    term_offset: int
    session_id: int
    stream_id: int
    term_id: int
    reserved_value: int

    @property
    def aligned_length(self) -> int:
        """Number of bytes that the frame occupies in the term."""
        return (self.frame_length + FRAME_ALIGNMENT - 1) // FRAME_ALIGNMENT * FRAME_ALIGNMENT


@dataclass(frozen=True)
class Tail:
    """The tail counter of a term. Image logs do not use tail counters."""

    term_index: int
    raw_tail: int
    term_id: int
    term_offset: int
    "Offset of the tail. It can exceed the term length, because failed claims also increment it."
    position: int


@dataclass(frozen=True)
class LogBuffer:
    """The metadata of a log buffer, and access to its bytes."""

    metadata: dict[str, int]
    default_header: LogFrame
    read_at: ReadAt

    @property
    def term_length(self) -> int:
        return self.metadata["term_length"]

    @property
    def active_term_index(self) -> int:
        return self.metadata["active_term_count"] % TERM_COUNT

    def position(self, term_id: int, term_offset: int) -> int:
        """Return the stream position of an offset in a term."""
        count = _wrapped(term_id - self.metadata["initial_term_id"])
        return count * self.term_length + term_offset

    def tails(self) -> list[Tail]:
        """Return the tail counters of the three terms."""
        found = []
        for index in range(TERM_COUNT):
            raw = self.metadata[f"tail_{index}"]
            term_id, offset = raw >> 32, raw & 0xFFFFFFFF
            position = self.position(term_id, min(offset, self.term_length))
            found.append(Tail(index, raw, term_id, offset, position))
        return found


class TermWalk:
    """An iterator over the frames of a term. It stores where and why the iteration ended."""

    def __init__(self, log: LogBuffer, term_index: int, *, over_zeroes: bool = False) -> None:
        self._log = log
        self._index = term_index
        self._over_zeroes = over_zeroes
        self.ended_at = 0
        self.ended_because = END_OF_TERM

    def __iter__(self) -> Iterator[LogFrame]:
        term_length = self._log.term_length
        offset = 0
        while offset < term_length:
            frame = read_frame(self._log, self._index, offset)
            if frame is not None and frame.frame_length == 0 and self._over_zeroes:
                offset += FRAME_ALIGNMENT
                continue
            reason = _end_reason(frame, term_length - offset)
            if reason or frame is None:
                self.ended_at, self.ended_because = offset, reason
                return
            yield frame
            offset += frame.aligned_length
        self.ended_at, self.ended_because = term_length, END_OF_TERM


def read_log_buffer(read_at: ReadAt, length: int) -> LogBuffer:
    """Read the metadata of a log buffer file, given its length. Raises LogBufferError if the file
    is not a valid log buffer.
    """
    shortest = TERM_COUNT * TERM_LENGTH_MIN + METADATA_LENGTH
    if length < shortest:
        raise LogBufferError(f"expected at least {shortest} bytes, found {length}")
    content = read_at(length - METADATA_LENGTH, METADATA_LENGTH)
    if len(content) < METADATA_LENGTH:
        raise LogBufferError("the file was truncated while it was being read")
    record: Any = np.frombuffer(content, dtype=METADATA)[0]
    metadata = {name: int(record[name]) for name, _, _ in _FIELDS}
    term_length = metadata["term_length"]
    if not TERM_LENGTH_MIN <= term_length <= TERM_LENGTH_MAX or term_length & (term_length - 1):
        raise LogBufferError(
            f"term length: expected a power of two from 64 KiB to 1 GiB, found {term_length}: the "
            f"file is not a log buffer, or not initialized yet"
        )
    if TERM_COUNT * term_length + METADATA_LENGTH > length:
        raise LogBufferError(
            f"truncated: expected three terms of {term_length} bytes and {METADATA_LENGTH} of "
            f"metadata, found {length} bytes"
        )
    header = LogFrame(0, 0, *_HEADER.unpack_from(content, DEFAULT_HEADER_AT))
    return LogBuffer(metadata, header, read_at)


def read_frame(log: LogBuffer, term_index: int, offset: int) -> LogFrame | None:
    """Read the frame header at a term offset. Returns None at the end of the file."""
    content = log.read_at(term_index * log.term_length + offset, DATA_HEADER_LENGTH)
    if len(content) < DATA_HEADER_LENGTH:
        return None
    return LogFrame(term_index, offset, *_HEADER.unpack(content))


def _end_reason(frame: LogFrame | None, left: int) -> str:
    """Return why the iteration ends at this frame, or an empty string if the frame is valid."""
    if frame is None:
        return CUT_SHORT
    if frame.frame_length == 0:
        return NOTHING_YET
    if frame.frame_length < 0:
        return CLAIMED
    if frame.frame_length < DATA_HEADER_LENGTH or frame.type not in (PAD.type_code, DATA.type_code):
        return MALFORMED
    return OVERRUN if frame.aligned_length > left else ""


def _wrapped(value: int) -> int:
    return (value + (1 << 31)) % (1 << 32) - (1 << 31)
