"""From a class with annotated fields to the places of these fields in a message.

    @message(template_id=6, block_length=56)
    class ReplayRequest(RecordingRequest):
        position: I64
        file_io_max_length: Since7I32 = NULL_VALUE     absent where the sender is older
        replay_channel: str                            behind the block, its length in front

Fixed fields lie in the order of their declaration without gaps, texts and bytes behind the block in
theirs; a subclass's come after its base's. A field with a default was added to the schema later: an
older sender's message lacks it, and the default stands for it. The declared block length must be
what the fields come to. Knows nothing of bytes, see `codec`.
"""

import struct
from collections.abc import Callable
from dataclasses import MISSING, dataclass, fields
from enum import IntEnum
from typing import Annotated, Any, ClassVar, TypeVar, dataclass_transform, get_args, get_type_hints

_CLASS = TypeVar("_CLASS", bound="type[Message]")


@dataclass(frozen=True, slots=True)
class Wire:
    """How a fixed field travels, and since which version of the schema."""

    code: str
    since: int = 0


@dataclass(frozen=True, slots=True)
class Since:
    """A text or bytes added to the schema later."""

    version: int


I64 = Annotated[int, Wire("q")]
I32 = Annotated[int, Wire("i")]


@dataclass(frozen=True, slots=True)
class FixedField:
    """A number within the block."""

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
    """Text or bytes behind the block."""

    name: str
    is_text: bool
    since: int


@dataclass(frozen=True, slots=True)
class Layout:
    """Where the fields of one message are."""

    fixed: tuple[FixedField, ...]
    variable: tuple[VariableField, ...]
    absent: dict[str, Any]
    "What stands for each field that an older sender does not know."
    block_length: int

    @property
    def format(self) -> str:
        """The whole block, as `struct` has it."""
        return "<" + "".join(field.code for field in self.fixed)


class Message:
    """Anything that is said over a control session."""

    __slots__ = ()

    TEMPLATE_ID: ClassVar[int]
    LAYOUT: ClassVar[Layout]


BY_TEMPLATE_ID: dict[int, type[Message]] = {}
"""Every message that was declared."""


@dataclass_transform(kw_only_default=True, frozen_default=True)
def base(cls: _CLASS) -> _CLASS:
    """Declare fields that several messages begin with."""
    made: Any = dataclass(frozen=True, slots=True, kw_only=True)(cls)
    result: _CLASS = made
    return result


@dataclass_transform(kw_only_default=True, frozen_default=True)
def message(*, template_id: int, block_length: int) -> Callable[[_CLASS], _CLASS]:
    """Declare a message; its class becomes a frozen value."""

    def declare(cls: _CLASS) -> _CLASS:
        made = base(cls)
        made.TEMPLATE_ID = template_id
        made.LAYOUT = _layout(made)
        assert made.LAYOUT.block_length == block_length, (cls, made.LAYOUT)
        assert template_id not in BY_TEMPLATE_ID, template_id
        BY_TEMPLATE_ID[template_id] = made
        return made

    return declare


def _layout(cls: type[Message]) -> Layout:
    hints = get_type_hints(cls, include_extras=True)
    fixed: list[FixedField] = []
    variable: list[VariableField] = []
    absent: dict[str, Any] = {}
    offset = 0
    for each in fields(cls):  # type: ignore[arg-type]  # `base` has made a dataclass of it
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
        assert versions == sorted(versions), (cls, "what was added later must stand behind")
    return Layout(tuple(fixed), tuple(variable), absent, offset)
