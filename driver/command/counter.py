"""Messages about application counters: add, remove, ready and unavailable.

    add            0 client id   8 correlation id   16 type id (i32)   20 key length   24 key
                   then, at the next multiple of 4: label length, label
    add static     0 client id   8 correlation id   16 registration id (i64)   24 type id (i32)
                   28 key length   32 key   then as for add
    remove         0 client id   8 correlation id   16 registration id (i64)
    ready, static  0 correlation id (i64)   8 counter id (i32)
    unavailable    0 registration id (i64)  8 counter id (i32)

A static counter has no owner and outlives the client that added it.
"""

from dataclasses import dataclass
from typing import ClassVar

from windtunnel.driver.command.command_type import CommandType, ResponseType
from windtunnel.driver.command.payload import Message


@dataclass(frozen=True, slots=True)
class AddCounter(Message):
    """Command to allocate a counter that is freed when its client closes."""

    TYPE_ID: ClassVar[CommandType] = CommandType.ADD_COUNTER
    INTEGERS: ClassVar[str] = "2qi"

    client_id: int
    correlation_id: int
    type_id: int
    key: bytes
    label: str


@dataclass(frozen=True, slots=True)
class AddStaticCounter(Message):
    """Command to find or allocate a counter that exists until the driver closes."""

    TYPE_ID: ClassVar[CommandType] = CommandType.ADD_STATIC_COUNTER
    INTEGERS: ClassVar[str] = "3qi"

    client_id: int
    correlation_id: int
    registration_id: int
    type_id: int
    key: bytes
    label: str


@dataclass(frozen=True, slots=True)
class RemoveCounter(Message):
    """Command to free a counter."""

    TYPE_ID: ClassVar[CommandType] = CommandType.REMOVE_COUNTER
    INTEGERS: ClassVar[str] = "3q"

    client_id: int
    correlation_id: int
    registration_id: int


@dataclass(frozen=True, slots=True)
class _CounterReady(Message):
    """A response that contains a counter id."""

    TYPE_ID: ClassVar[ResponseType]
    INTEGERS: ClassVar[str] = "qi"

    correlation_id: int
    counter_id: int


class CounterReady(_CounterReady):
    """Response to a command that allocated a counter.

    If the correlation id is a client id, the counter is that client's heartbeat counter.
    """

    __slots__ = ()

    TYPE_ID: ClassVar[ResponseType] = ResponseType.COUNTER_READY


class StaticCounter(_CounterReady):
    """Response that contains the id of the static counter that a command found or allocated."""

    __slots__ = ()

    TYPE_ID: ClassVar[ResponseType] = ResponseType.STATIC_COUNTER


@dataclass(frozen=True, slots=True)
class UnavailableCounter(Message):
    """Notification that a counter was freed."""

    TYPE_ID: ClassVar[ResponseType] = ResponseType.UNAVAILABLE_COUNTER
    INTEGERS: ClassVar[str] = "qi"

    registration_id: int
    counter_id: int
