"""Encodes and decodes archive messages. Decoding checks the whole content of a message.

    0             2            4          6         8              8 + block length
    +-------------+------------+----------+---------+--------------+---------------+-----
    |block length |template id |schema id | version | block        | u32 n, n bytes| ...
    +-------------+------------+----------+---------+--------------+---------------+-----

A sender may have an older or a newer schema. A field that the sender's version does not have, or
that is after the end of its block, gets the declared default value. Unknown fields and bytes after
the last element are skipped. A field that every version has must be present. Characters that are
not ASCII are replaced, in both directions, so a peer's bytes cannot cause errors later.
Source: archive-protocol 1.1.
"""

import struct
from enum import IntEnum
from typing import Any, TypeAlias, TypeVar

import numpy as np

import windtunnel.driver.archive.protocol.replication
import windtunnel.driver.archive.protocol.responses  # noqa: F401  # importing declares the messages
from windtunnel.driver.archive.protocol.codes import SCHEMA_ID, SCHEMA_VERSION
from windtunnel.driver.archive.protocol.layout import DECLARED, Layout, Message
from windtunnel.driver.base.errors import DriverError

_MESSAGE = TypeVar("_MESSAGE", bound=Message)
Payload: TypeAlias = "bytes | bytearray | memoryview | np.ndarray"

HEADER = struct.Struct("<4H")
"""The message header: block length, template id, schema id, version."""
PREFIX = struct.Struct("<I")
"""The length that precedes each variable-length field."""
VARIABLE_LENGTH_MAX = 1 << 30
BY_TEMPLATE_ID: dict[int, type[Message]] = dict(DECLARED)
"""All message classes, by template id. The imports above declare them."""


class MalformedMessage(DriverError):
    """The bytes are not a valid message: they are truncated, inconsistent, or of another schema."""


class UnencodableMessage(DriverError):
    """A message cannot be encoded, because a field's value is out of range or has a wrong type."""


class UnknownTemplate(MalformedMessage):
    """A message of this schema has an unknown template id. An archive ignores such a message."""


def encode(message: Message) -> bytes:
    """Encode a message with its header, in the newest version of the schema. Raises
    UnencodableMessage if a value does not fit into its field.
    """
    layout = message.LAYOUT
    header = HEADER.pack(layout.block_length, message.TEMPLATE_ID, SCHEMA_ID, SCHEMA_VERSION)
    return header + encode_body(message)


def encode_body(message: Message) -> bytes:
    """Encode a message without its header, as it is stored in a catalog entry. Raises
    UnencodableMessage if a value does not fit into its field.
    """
    layout = message.LAYOUT
    values = [getattr(message, field.name) for field in layout.fixed]
    try:
        parts = [struct.pack(layout.format, *values)]
    except struct.error as error:
        raise UnencodableMessage(_misfit(message, values)) from error
    for fixed, value in zip(layout.fixed, values, strict=True):
        # A peer does not respond to a message with a value that it does not know.
        if fixed.enumeration is not None:
            _require_member(f"{type(message).__name__}.{fixed.name}", fixed.enumeration, value)
    for field in layout.variable:
        value = getattr(message, field.name)
        name = f"{type(message).__name__}.{field.name}"
        content = _text(name, value) if field.is_text else _bytes(name, value)
        parts += [PREFIX.pack(len(content)), content]
    return b"".join(parts)


def _require_member(name: str, enumeration: type[IntEnum], value: int) -> None:
    try:
        enumeration(value)
    except ValueError:
        text = f"{name}: expected a {enumeration.__name__}, found {value!r}"
        raise UnencodableMessage(text) from None


def _text(name: str, value: object) -> bytes:
    if not isinstance(value, str):
        raise UnencodableMessage(f"{name}: expected str, found {value!r}")
    return value.encode("ascii", "replace")


def _bytes(name: str, value: object) -> bytes:
    if not isinstance(value, bytes | bytearray | memoryview):
        raise UnencodableMessage(f"{name}: expected bytes, found {value!r}")
    return bytes(value)


def _misfit(message: Message, values: list[Any]) -> str:
    """Return an error message for the first field whose value is out of range."""
    for field, value in zip(message.LAYOUT.fixed, values, strict=True):
        try:
            struct.pack("<" + field.code, value)
        except struct.error as error:
            return f"{type(message).__name__}.{field.name}: cannot encode {value!r}: {error}"
    raise AssertionError(message)


def decode(payload: Payload) -> Message:
    """Decode a message with its header. Raises UnknownTemplate if the template id is unknown, or
    MalformedMessage if the message is invalid.
    """
    content = bytes(payload)
    if len(content) < HEADER.size:
        raise MalformedMessage(
            f"expected a header of {HEADER.size} bytes, found {len(content)} bytes"
        )
    block_length, template_id, schema_id, version = HEADER.unpack_from(content)
    if schema_id != SCHEMA_ID:
        raise MalformedMessage(f"expected schema {SCHEMA_ID}, found {schema_id}")
    kind = BY_TEMPLATE_ID.get(template_id)
    if kind is None:
        raise UnknownTemplate(f"no message of schema {SCHEMA_ID} has template id {template_id}")
    return decode_body(kind, content, HEADER.size, block_length, version)[0]


def decode_body(
    kind: type[_MESSAGE], content: bytes, at: int, block_length: int, version: int
) -> tuple[_MESSAGE, int]:
    """Decode a message whose block begins at offset `at`. Returns the message and its end offset.

    Raises MalformedMessage.
    """
    layout = kind.LAYOUT
    end = at + block_length
    if end > len(content):
        raise MalformedMessage(
            f"{kind.__name__}: expected a block of {block_length} bytes, found {len(content) - at}"
        )
    values = dict(layout.absent)
    values.update(_fixed_values(kind.__name__, layout, content[at:end], version))
    for field in layout.variable:
        if field.since > version:
            break
        element, end = _element(f"{kind.__name__}.{field.name}", content, end)
        values[field.name] = element.decode("ascii", "replace") if field.is_text else element
    return kind(**values), end


def _fixed_values(name: str, layout: Layout, block: bytes, version: int) -> dict[str, Any]:
    """Decode the fixed-length fields that the sender's block contains."""
    present = [
        field for field in layout.fixed if field.since <= version and field.end <= len(block)
    ]
    missing = [field for field in layout.fixed[len(present) :] if field.since == 0]
    if missing:
        raise MalformedMessage(
            f"{name}: expected a block of at least {missing[-1].end} bytes, found {len(block)}"
        )
    found = struct.unpack_from("<" + "".join(field.code for field in present), block)
    values: dict[str, Any] = {}
    for field, value in zip(present, found, strict=True):
        if field.enumeration is not None:
            try:
                value = field.enumeration(value)
            except ValueError:
                raise MalformedMessage(
                    f"{name}.{field.name}: expected a {field.enumeration.__name__}, found {value}"
                ) from None
        values[field.name] = value
    return values


def _element(name: str, content: bytes, at: int) -> tuple[bytes, int]:
    """Return the bytes of a variable-length field after the block, and the offset of its end."""
    start = at + PREFIX.size
    if start > len(content):
        raise MalformedMessage(
            f"{name}: expected a 4-byte length at offset {at}, found {len(content) - at} bytes"
        )
    (length,) = PREFIX.unpack_from(content, at)
    if length > min(VARIABLE_LENGTH_MAX, len(content) - start):
        raise MalformedMessage(
            f"{name}: expected a length of at most {len(content) - start}, found {length}"
        )
    return content[start : start + length], start + length
