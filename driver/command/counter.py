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

import struct
from dataclasses import dataclass
from typing import ClassVar, Self

from windtunnel.driver.command.command_type import CommandType, ResponseType
from windtunnel.driver.command.payload import Payload, PayloadReader, padded, prefixed, text


@dataclass(frozen=True, slots=True)
class AddCounter:
    """Command to allocate a counter that is freed when its client closes."""

    TYPE_ID: ClassVar[CommandType] = CommandType.ADD_COUNTER

    client_id: int
    correlation_id: int
    type_id: int
    key: bytes
    label: str

    def encode(self) -> bytes:
        head = struct.pack("<2qi", self.client_id, self.correlation_id, self.type_id)
        return padded(head + prefixed(self.key)) + text(self.label)

    @classmethod
    def decode(cls, payload: Payload) -> Self:
        reader = PayloadReader(cls.TYPE_ID.name, payload, 28)
        key, key_end = reader.prefixed(20, "key")
        return cls(
            client_id=reader.i64(0),
            correlation_id=reader.i64(8),
            type_id=reader.i32(16),
            key=key,
            label=reader.text_after(key_end, "label"),
        )


@dataclass(frozen=True, slots=True)
class AddStaticCounter:
    """Command to find or allocate a counter that exists until the driver closes."""

    TYPE_ID: ClassVar[CommandType] = CommandType.ADD_STATIC_COUNTER

    client_id: int
    correlation_id: int
    registration_id: int
    type_id: int
    key: bytes
    label: str

    def encode(self) -> bytes:
        ids = (self.client_id, self.correlation_id, self.registration_id)
        head = struct.pack("<3qi", *ids, self.type_id)
        return padded(head + prefixed(self.key)) + text(self.label)

    @classmethod
    def decode(cls, payload: Payload) -> Self:
        reader = PayloadReader(cls.TYPE_ID.name, payload, 36)
        key, key_end = reader.prefixed(28, "key")
        return cls(
            client_id=reader.i64(0),
            correlation_id=reader.i64(8),
            registration_id=reader.i64(16),
            type_id=reader.i32(24),
            key=key,
            label=reader.text_after(key_end, "label"),
        )


@dataclass(frozen=True, slots=True)
class RemoveCounter:
    """Command to free a counter."""

    TYPE_ID: ClassVar[CommandType] = CommandType.REMOVE_COUNTER

    client_id: int
    correlation_id: int
    registration_id: int

    def encode(self) -> bytes:
        return struct.pack("<3q", self.client_id, self.correlation_id, self.registration_id)

    @classmethod
    def decode(cls, payload: Payload) -> Self:
        reader = PayloadReader(cls.TYPE_ID.name, payload, 24)
        return cls(
            client_id=reader.i64(0), correlation_id=reader.i64(8), registration_id=reader.i64(16)
        )


@dataclass(frozen=True, slots=True)
class _CounterReady:
    """A response that contains a counter id."""

    TYPE_ID: ClassVar[ResponseType]

    correlation_id: int
    counter_id: int

    def encode(self) -> bytes:
        return struct.pack("<qi", self.correlation_id, self.counter_id)

    @classmethod
    def decode(cls, payload: Payload) -> Self:
        reader = PayloadReader(cls.TYPE_ID.name, payload, 12)
        return cls(correlation_id=reader.i64(0), counter_id=reader.i32(8))


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
class UnavailableCounter:
    """Notification that a counter was freed."""

    TYPE_ID: ClassVar[ResponseType] = ResponseType.UNAVAILABLE_COUNTER

    registration_id: int
    counter_id: int

    def encode(self) -> bytes:
        return struct.pack("<qi", self.registration_id, self.counter_id)

    @classmethod
    def decode(cls, payload: Payload) -> Self:
        reader = PayloadReader(cls.TYPE_ID.name, payload, 12)
        return cls(registration_id=reader.i64(0), counter_id=reader.i32(8))
