"""The frames of a capture, for own checks: one object for each Aeron frame, made when it is needed.

capture --mask--> rows --4096 at a time--> Frame, Frame, ...
"""

import ipaddress
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from windtunnel.harness.artifact.middlebox import frame_class
from windtunnel.harness.dissect.frames.flow import StreamFacts
from windtunnel.harness.dissect.frames.frames import DATA_HEADER_LENGTH, Frames
from windtunnel.harness.dissect.frames.layout import ERR

ROWS_AT_ONCE = 4096
_V4_PREFIX = 0xFFFF
_PLACED = {frame_class.CODES[name] for name in ("DATA", "PAD", "HEARTBEAT", "NAK", "SM", "SETUP")}
_PAYLOAD_AT = {frame_class.DATA: DATA_HEADER_LENGTH, frame_class.ERR: ERR.length}
"""Offset of the payload, or of the text, by type."""
_FIELDS = (
    *("time_ns", "at", "frame_type", "flags", "frame_length", "session_id", "stream_id"),
    *("term_id", "term_offset", "window_bytes", "nak_length", "receiver_id"),
    *("source_high", "source_low", "destination_high", "destination_low"),
    *("source_port", "destination_port"),
)


@dataclass(frozen=True, slots=True)
class Frame:
    """One Aeron frame in a capture. A field that frames of this type do not have is 0."""

    time_ns: int
    "Time at which it was captured, in nanoseconds since 1970; in a simulation, of its own clock."
    type: str
    "`DATA`, `PAD`, `HEARTBEAT`, `SETUP`, `SM`, `NAK`, `ERR`, `RTTM`, `RES` or `RSP_SETUP`."
    flags: int
    length: int
    "Length in the header of the frame: 0 for a heartbeat, and for a PAD the bytes that it covers."
    session_id: int
    stream_id: int
    term_id: int
    term_offset: int
    position: int | None
    """Position of its first byte in the stream; of an SM, what was consumed; of a NAK, the first
    missing byte. None if the capture has no SETUP of the session."""
    window_bytes: int
    "Of an SM."
    nak_length: int
    receiver_id: int
    "Of an SM."
    source: str
    "Name of the host that sent it, or another address."
    destination: str
    "Name of the host to which it is addressed, or another address, such as a multicast group."
    source_port: int
    destination_port: int
    _content: NDArray[np.uint8] = field(repr=False, compare=False)
    _at: int = field(repr=False)
    _payload_at: int = field(repr=False)

    @property
    def payload(self) -> bytes:
        """The bytes after the header of a DATA frame, or the text of an ERR frame."""
        if not self._payload_at:
            return b""
        return self._content[self._at + self._payload_at : self._at + self.length].tobytes()


def frames_of(
    rows: Frames,
    content: NDArray[np.uint8],
    streams: Mapping[tuple[int, int], StreamFacts],
    name_of: Callable[[int, int], str],
) -> Iterator[Frame]:
    """Yield a Frame for each row of a capture. `streams` has the parameters of each session, and
    `name_of` returns the name of an address.
    """
    for start in range(0, len(rows), ROWS_AT_ONCE):
        chunk = rows[start : start + ROWS_AT_ONCE]
        for values in zip(*(chunk[name].tolist() for name in _FIELDS), strict=True):
            yield _frame(values, content, streams, name_of)


def _frame(
    values: tuple[Any, ...],
    content: NDArray[np.uint8],
    streams: Mapping[tuple[int, int], StreamFacts],
    name_of: Callable[[int, int], str],
) -> Frame:
    time_ns, at, kind, flags, length, session, stream, term_id, term_offset = values[:9]
    window_bytes, nak_length, receiver_id, *addresses, source_port, destination_port = values[9:]
    return Frame(
        time_ns=time_ns,
        type=frame_class.NAMES[kind],
        flags=flags,
        length=length,
        session_id=session,
        stream_id=stream,
        term_id=term_id,
        term_offset=term_offset,
        position=_position(kind, streams.get((session, stream)), term_id, term_offset),
        window_bytes=window_bytes,
        nak_length=nak_length,
        receiver_id=receiver_id,
        source=name_of(*addresses[:2]),
        destination=name_of(*addresses[2:]),
        source_port=source_port,
        destination_port=destination_port,
        _content=content,
        _at=at,
        _payload_at=_PAYLOAD_AT.get(kind, 0),
    )


def _position(kind: int, facts: StreamFacts | None, term_id: int, term_offset: int) -> int | None:
    """Return the position of a frame, or None if it has none or its stream is unknown."""
    if facts is None or kind not in _PLACED:
        return None
    terms = (term_id - facts.initial_term_id + (1 << 31)) % (1 << 32) - (1 << 31)
    return terms * facts.term_length + term_offset


def address_text(high: int, low: int) -> str:
    """Return the address with these halves as text, an IPv4 address in its usual form."""
    if high == 0 and low >> 32 == _V4_PREFIX:
        return str(ipaddress.IPv4Address(low & 0xFFFFFFFF))
    return str(ipaddress.IPv6Address((high % (1 << 64)) << 64 | low % (1 << 64)))
