"""The bytes of messages: integers, and then fields of variable length.

A field of variable length begins at a multiple of 4: its length (i32), then its bytes. Strings are
decoded as UTF-8 (Aeron uses ASCII). Invalid bytes are replaced: they could prevent printing.
"""

import struct
from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Annotated, Any, ClassVar, Self, TypeAlias

import numpy as np

from windtunnel.driver.base.arith import align
from windtunnel.driver.base.errors import DriverError
from windtunnel.driver.command.command_type import CommandType, ErrorCode, ResponseType

Payload: TypeAlias = "bytes | bytearray | memoryview | np.ndarray"
"""The bytes of one message, without the record header."""
FileName: TypeAlias = Annotated[str, "file name"]
"""A string that must not be empty or contain zero bytes."""

FIELD_ALIGNMENT = 4
LENGTH = struct.Struct("<i")


class MalformedCommand(DriverError):
    """The bytes of a message do not match its layout."""

    error_code = ErrorCode.MALFORMED_COMMAND


class UnknownCommand(MalformedCommand):
    """A message has an unknown type code."""

    error_code = ErrorCode.UNKNOWN_COMMAND_TYPE_ID


@dataclass(frozen=True, slots=True)
class Message:
    """Base class of messages. Subclasses declare their fields in the order of the bytes."""

    TYPE_ID: ClassVar[CommandType | ResponseType]
    INTEGERS: ClassVar[str]
    """The formats of the integers, as in the module `struct`."""

    def encode(self) -> bytes:
        values = [getattr(self, field.name) for field in fields(self)]
        content = struct.pack("<" + self.INTEGERS, *[v for v in values if isinstance(v, int)])
        for value in values:
            if isinstance(value, str | bytes):
                content = _padded(content) + prefixed(value)
        return content

    @classmethod
    def decode(cls, payload: Payload) -> Self:
        variable = {field.name: field.type for field in fields(cls) if field.type is not int}
        values = read_values(cls.TYPE_ID.name, payload, cls.INTEGERS, variable)
        return cls(**{field.name: value for field, value in zip(fields(cls), values, strict=True)})


def read_values(
    name: str, payload: Payload, integers: str, variable: Mapping[str, Any]
) -> list[Any]:
    """Return the integers of a message, and then its fields of variable length.

    `variable` contains the type of each of these fields by name: str, bytes or FileName. Raises
    MalformedCommand with the expected and the found value, and never reads past the end.
    """
    content = bytes(payload)
    head = struct.Struct("<" + integers)
    length_min = head.size + LENGTH.size * len(variable)
    if len(content) < length_min:
        raise MalformedCommand(
            f"{name}: expected at least {length_min} bytes, found {len(content)}"
        )
    values: list[Any] = list(head.unpack_from(content))
    end = head.size
    for field, kind in variable.items():
        found, end = _read_prefixed(name, content, int(align(end, FIELD_ALIGNMENT)), field)
        text = found.decode("utf-8", "replace")
        if kind is FileName and (not text or "\0" in text):
            raise MalformedCommand(f"{name}: expected a file name in {field}, found {text!r}")
        values.append(found if kind is bytes else text)
    return values


def _read_prefixed(name: str, content: bytes, at: int, field: str) -> tuple[bytes, int]:
    """Return the bytes of a field of variable length, and the offset of their end."""
    start = at + LENGTH.size
    if start > len(content):
        raise MalformedCommand(
            f"{name}: expected {LENGTH.size} bytes at offset {at}, found {len(content) - at}"
        )
    (length,) = LENGTH.unpack_from(content, at)
    if length < 0 or start + length > len(content):
        raise MalformedCommand(
            f"{name}: {field}_length at offset {at}: "
            f"expected 0 to {len(content) - start}, found {length}"
        )
    return content[start : start + length], start + length


def prefixed(value: str | bytes) -> bytes:
    """Return bytes, or a string as UTF-8, after their length."""
    content = value.encode("utf-8", "replace") if isinstance(value, str) else value
    return LENGTH.pack(len(content)) + content


def _padded(content: bytes) -> bytes:
    """Pad `content` with zeros to a multiple of 4 bytes, the alignment of the next field."""
    return content.ljust(int(align(len(content), FIELD_ALIGNMENT)), b"\0")
