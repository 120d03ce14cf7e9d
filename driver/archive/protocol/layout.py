"""Derives the binary layout of a message from a class with annotated fields.

    @message(template_id=6, block_length=56)
    class ReplayRequest(RecordingRequest):
        position: I64
        file_io_max_length: Since7I32 = NULL_VALUE     absent if the sender is older
        replay_channel: str                            behind the block, after its length

The block contains the fixed-length fields in the order of their declaration, without gaps. Strings
and bytes follow the block, also in the order of their declaration. The fields of a subclass come
after the fields of its base class. A field with a default value was added to the schema later.
Messages from older senders do not contain it and get the default value. The declared block length
must equal the total length of the fixed-length fields. The module `codec` encodes and decodes
messages.
"""

import struct
from collections.abc import Callable
from dataclasses import MISSING, dataclass, fields
from enum import IntEnum
from typing import Annotated, Any, ClassVar, TypeVar, dataclass_transform, get_args, get_type_hints

_CLASS = TypeVar("_CLASS", bound="type[Message]")


@dataclass(frozen=True, slots=True)
class Wire:
    """The encoding of a fixed-length field, and the schema version that added the field."""

    code: str
    since: int = 0


@dataclass(frozen=True, slots=True)
class Since:
    """Marks a string or bytes field with the schema version that added the field."""

    version: int


I64 = Annotated[int, Wire("q")]
I32 = Annotated[int, Wire("i")]


@dataclass(frozen=True, slots=True)
class FixedField:
    """A fixed-length number in the block of a message."""

    name: str
    code: str
    offset: int
    since: int
    enumeration: type[IntEnum] | None

    @property
    def end(self) -> int:
        return self.offset + struct.calcsize("<" + self.code)


@dataclass(frozen=True, slots=True)
class VariableField:
    """A string or bytes field after the block of a message."""

    name: str
    is_text: bool
    since: int


@dataclass(frozen=True, slots=True)
class Layout:
    """The names, types and offsets of a message's fields."""

    fixed: tuple[FixedField, ...]
    variable: tuple[VariableField, ...]
    absent: dict[str, Any]
    """Default values of the fields that the messages of older senders do not contain."""
    block_length: int

    @property
    def format(self) -> str:
        """The `struct` format string of the whole block."""
        return "<" + "".join(field.code for field in self.fixed)


class Message:
    """Base class of all messages of the control protocol."""

    __slots__ = ()

    TEMPLATE_ID: ClassVar[int]
    LAYOUT: ClassVar[Layout]


DECLARED: dict[int, type[Message]] = {}
"""The message classes whose modules have been imported, by template id. `codec` has all of them."""


@dataclass_transform(kw_only_default=True, frozen_default=True)
def base(cls: _CLASS) -> _CLASS:
    """Declare a base class of messages. Its fields come first in each derived message."""
    frozen: Any = dataclass(frozen=True, slots=True, kw_only=True)(cls)
    result: _CLASS = frozen
    return result


@dataclass_transform(kw_only_default=True, frozen_default=True)
def message(*, template_id: int, block_length: int) -> Callable[[_CLASS], _CLASS]:
    """Return a decorator that declares a message class and makes the class a frozen dataclass."""

    def declare(cls: _CLASS) -> _CLASS:
        declared = base(cls)
        declared.TEMPLATE_ID = template_id
        declared.LAYOUT = _layout(declared)
        assert declared.LAYOUT.block_length == block_length, (cls, declared.LAYOUT)
        assert template_id not in DECLARED, template_id
        DECLARED[template_id] = declared
        return declared

    return declare


def _layout(cls: type[Message]) -> Layout:
    hints = get_type_hints(cls, include_extras=True)
    fixed: list[FixedField] = []
    variable: list[VariableField] = []
    absent: dict[str, Any] = {}
    offset = 0
    for each in fields(cls):  # type: ignore[arg-type]  # `base` has made it a dataclass
        kind, *notes = get_args(hints[each.name]) or (hints[each.name],)
        since = next((note.version for note in notes if isinstance(note, Since)), 0)
        if kind in (str, bytes):
            variable.append(VariableField(each.name, kind is str, since))
        else:
            enumeration = kind if issubclass(kind, IntEnum) else None
            wire = Wire("i") if enumeration else notes[0]
            since = wire.since
            fixed.append(FixedField(each.name, wire.code, offset, since, enumeration))
            offset = fixed[-1].end
        assert (each.default is not MISSING) == (since > 0), (cls, each.name)
        if since:
            absent[each.name] = each.default
    for row in (fixed, variable):
        versions = [field.since for field in row]
        assert versions == sorted(versions), (cls, "fields that were added later must come last")
    return Layout(tuple(fixed), tuple(variable), absent, offset)
