"""Reference implementation of a publication: three bytearrays, a list of frames per message."""

import struct
from dataclasses import dataclass, field

BEGIN, END = 0x80, 0x40
ADMIN_ACTION = -3


def aligned(length: int) -> int:
    """Return the next multiple of 32."""
    return -(-length // 32) * 32


def wrapped(term_id: int) -> int:
    """Return a term id wrapped to signed 32 bits."""
    return struct.unpack("<i", struct.pack("<I", term_id & 0xFFFFFFFF))[0]


def pieces(message: bytes, most: int) -> list[bytes]:
    """Split a message into payloads; an empty message is one empty payload."""
    return [message[at : at + most] for at in range(0, len(message), most)] or [b""]


@dataclass
class Publication:
    """A stream written into three terms; the next term is cleaned before it is used."""

    session_id: int
    stream_id: int
    initial_term_id: int
    term_length: int
    mtu_length: int
    term_count: int = 0
    offset: int = 0
    terms: list[bytearray] = field(default_factory=list)
    tails: list[tuple[int, int]] = field(default_factory=list)

    def __post_init__(self) -> None:
        """Begin at `term_count` and `offset`."""
        self.terms = [bytearray(self.term_length) for _ in range(3)]
        self.tails = [(0, 0)] * 3
        for step in range(3):
            term_id = self.initial_term_id + self.term_count + step - (3 if step else 0)
            self.tails[(self.term_count + step) % 3] = (wrapped(term_id), 0)
        self._move_tail(self.offset)

    def offer(self, message: bytes, reserved_value: int = 0) -> int:
        """Return the position after the message, or ADMIN_ACTION if the term was rotated."""
        payloads = pieces(message, self.mtu_length - 32)
        needed = sum(aligned(len(payload) + 32) for payload in payloads)
        if self.offset + needed > self.term_length:
            return self._close_term(needed)
        for number, payload in enumerate(payloads):
            flags = (BEGIN if number == 0 else 0) | (END if number == len(payloads) - 1 else 0)
            self._write(1, flags, payload, len(payload), reserved_value)
        self._move_tail(self.offset)
        return self.position

    def append_padding(self, length: int) -> int:
        """Like `offer`, for a frame without a payload."""
        if self.offset + aligned(length + 32) > self.term_length:
            return self._close_term(aligned(length + 32))
        self._write(0, BEGIN | END, b"", length, 0)
        self._move_tail(self.offset)
        return self.position

    @property
    def position(self) -> int:
        """The position of the end of the stream."""
        return self.term_count * self.term_length + self.offset

    def _close_term(self, needed: int) -> int:
        self._move_tail(self.offset + needed)
        if self.offset < self.term_length:
            self._write(0, BEGIN | END, b"", self.term_length - self.offset - 32, 0)
        self.term_count += 1
        self.offset = 0
        self.terms[self.term_count % 3][:] = bytes(self.term_length)
        self._move_tail(0)
        return ADMIN_ACTION

    def _move_tail(self, offset: int) -> None:
        term_id = wrapped(self.initial_term_id + self.term_count)
        self.tails[self.term_count % 3] = (term_id, offset)

    def _write(self, kind: int, flags: int, payload: bytes, length: int, reserved: int) -> None:
        header = struct.pack(
            "<iBBHiiiiq",
            length + 32,
            0,
            flags,
            kind,
            self.offset,
            self.session_id,
            self.stream_id,
            wrapped(self.initial_term_id + self.term_count),
            reserved,
        )
        term = self.terms[self.term_count % 3]
        term[self.offset : self.offset + 32 + len(payload)] = header + payload
        self.offset += aligned(length + 32)
