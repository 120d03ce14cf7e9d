"""Reads and writes message fields: fixed-size integers and strings with a length prefix.

A reader has the whole message and reads fields by offset, in any order. It raises MalformedCommand
with the expected and the found value, and never reads past the end. Strings are decoded as UTF-8
(Aeron uses ASCII). Invalid bytes are replaced, because they could prevent printing.
"""

import struct
from typing import TypeAlias

import numpy as np

from windtunnel.driver.base.arith import align
from windtunnel.driver.base.errors import DriverError
from windtunnel.driver.command.command_type import ErrorCode

Payload: TypeAlias = "bytes | bytearray | memoryview | np.ndarray"
"""The bytes of one message, without the record header."""

FIELD_ALIGNMENT = 4


class MalformedCommand(DriverError):
    """The bytes of a message do not match its layout."""

    error_code = ErrorCode.MALFORMED_COMMAND


class UnknownCommand(MalformedCommand):
    """A message has an unknown type code."""

    error_code = ErrorCode.UNKNOWN_COMMAND_TYPE_ID


class PayloadReader:
    """Reads the fields of one message and checks their lengths."""

    def __init__(self, name: str, payload: Payload, length_min: int) -> None:
        self.name = name
        self._bytes = bytes(payload)
        self.length = len(self._bytes)
        if self.length < length_min:
            raise MalformedCommand(
                f"{name}: expected at least {length_min} bytes, found {self.length}"
            )

    def i16(self, at: int) -> int:
        return self._field("<h", 2, at)

    def u16(self, at: int) -> int:
        return self._field("<H", 2, at)

    def i32(self, at: int) -> int:
        return self._field("<i", 4, at)

    def i64(self, at: int) -> int:
        return self._field("<q", 8, at)

    def block(self, at: int, length: int) -> bytes:
        """Return `length` bytes of the message, starting at offset `at`."""
        self._require(at, length)
        return self._bytes[at : at + length]

    def prefixed(self, at: int, field: str) -> tuple[bytes, int]:
        """Return the bytes of a field with a 32-bit length prefix, and the offset of their end."""
        length = self.i32(at)
        start = at + 4
        if length < 0 or start + length > self.length:
            raise MalformedCommand(
                f"{self.name}: {field}_length at offset {at}: "
                f"expected 0 to {self.length - start}, found {length}"
            )
        return self._bytes[start : start + length], start + length

    def text(self, at: int, field: str) -> str:
        """Return the string after a 32-bit length prefix."""
        return self.prefixed(at, field)[0].decode("utf-8", "replace")

    def file_name(self, at: int, field: str) -> str:
        """Return a file name, which must not be empty or contain zero bytes."""
        name = self.text(at, field)
        if not name or "\0" in name:
            raise MalformedCommand(f"{self.name}: expected a file name in {field}, found {name!r}")
        return name

    def text_after(self, end: int, field: str) -> str:
        """Return the string whose length prefix begins at offset `end`, rounded up to a multiple of
        4.
        """
        return self.text(int(align(end, FIELD_ALIGNMENT)), field)

    def _field(self, code: str, width: int, at: int) -> int:
        self._require(at, width)
        value: int = struct.unpack_from(code, self._bytes, at)[0]
        return value

    def _require(self, at: int, length: int) -> None:
        if at + length > self.length:
            raise MalformedCommand(
                f"{self.name}: expected {length} bytes at offset {at}, found {self.length - at}"
            )


def prefixed(content: bytes) -> bytes:
    """Prepend a 32-bit length prefix to bytes."""
    return struct.pack("<i", len(content)) + content


def text(content: str) -> bytes:
    """Encode a string and prepend a 32-bit length prefix."""
    return prefixed(content.encode("utf-8", "replace"))


def padded(content: bytes) -> bytes:
    """Pad `content` with zeros to a multiple of 4 bytes, the alignment of the next field."""
    return content.ljust(int(align(len(content), FIELD_ALIGNMENT)), b"\0")
