"""Fields inside a message: fixed integers, and strings with their length in front.

A reader is built over the whole message and asked by offset, in any order. It raises
MalformedCommand with what it expected and what it found; it never looks past the end. Text is
ASCII by convention and UTF-8 here, and what is neither is replaced, so that no peer's bytes can
trip us later when they are printed.
"""

import struct
from typing import TypeAlias

import numpy as np

from windtunnel.driver.base.arith import align
from windtunnel.driver.base.errors import DriverError
from windtunnel.driver.command.command_type import ErrorCode

Payload: TypeAlias = "bytes | bytearray | memoryview | np.ndarray"
"""The bytes of one message, record header excluded."""

FIELD_ALIGNMENT = 4


class MalformedCommand(DriverError):
    """A message whose bytes contradict themselves or its layout."""

    error_code = ErrorCode.MALFORMED_COMMAND


class UnknownCommand(MalformedCommand):
    """A message of a type that we do not know."""

    error_code = ErrorCode.UNKNOWN_COMMAND_TYPE_ID


class PayloadReader:
    """Checked access to the fields of one message."""

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
        """`length` bytes at `at`."""
        self._require(at, length)
        return self._bytes[at : at + length]

    def prefixed(self, at: int, field: str) -> tuple[bytes, int]:
        """Bytes with their 32-bit length in front, and where they end."""
        length = self.i32(at)
        start = at + 4
        if length < 0 or start + length > self.length:
            raise MalformedCommand(
                f"{self.name}: expected {field}_length at {at} from 0 to {self.length - start}, "
                f"found {length}"
            )
        return self._bytes[start : start + length], start + length

    def text(self, at: int, field: str) -> str:
        """Text with its 32-bit length in front."""
        return self.prefixed(at, field)[0].decode("utf-8", "replace")

    def file_name(self, at: int, field: str) -> str:
        """Text that can be the name of a file: not empty, no zero byte."""
        name = self.text(at, field)
        if not name or "\0" in name:
            raise MalformedCommand(f"{self.name}: expected a file name in {field}, found {name!r}")
        return name

    def text_after(self, end: int, field: str) -> str:
        """Text whose length field is the first 4-byte boundary at or after `end`."""
        return self.text(int(align(end, FIELD_ALIGNMENT)), field)

    def _field(self, code: str, width: int, at: int) -> int:
        self._require(at, width)
        value: int = struct.unpack_from(code, self._bytes, at)[0]
        return value

    def _require(self, at: int, length: int) -> None:
        if at + length > self.length:
            raise MalformedCommand(
                f"{self.name}: expected {length} bytes at {at}, found {self.length - at}"
            )


def prefixed(content: bytes) -> bytes:
    """Bytes with their 32-bit length in front."""
    return struct.pack("<i", len(content)) + content


def text(content: str) -> bytes:
    """Text with its 32-bit length in front."""
    return prefixed(content.encode("utf-8", "replace"))


def padded(content: bytes) -> bytes:
    """`content` up to the next 4-byte boundary, where another field may begin."""
    return content.ljust(int(align(len(content), FIELD_ALIGNMENT)), b"\0")
