"""Messages about subscriptions: add, remove and ready.

    add       0 client id   8 correlation id   16 registration correlation id (i64)
              24 stream id (i32)   28 channel length   32 channel
    remove    0 client id   8 correlation id   16 registration id (i64)
    ready     0 correlation id   8 channel status counter id (i32)

The module `image` has the messages about images.
"""

import struct
from dataclasses import dataclass
from typing import ClassVar, Self

from windtunnel.driver.command.command_type import NULL_ID, CommandType, ResponseType
from windtunnel.driver.command.payload import Payload, PayloadReader, text


@dataclass(frozen=True, slots=True)
class AddSubscription:
    """Command to subscribe to a stream. Its images become available later."""

    TYPE_ID: ClassVar[CommandType] = CommandType.ADD_SUBSCRIPTION

    client_id: int
    correlation_id: int
    stream_id: int
    channel: str
    registration_correlation_id: int = NULL_ID
    """A field that no client uses. Clients send -1."""

    def encode(self) -> bytes:
        ids = (self.client_id, self.correlation_id, self.registration_correlation_id)
        return struct.pack("<3qi", *ids, self.stream_id) + text(self.channel)

    @classmethod
    def decode(cls, payload: Payload) -> Self:
        reader = PayloadReader(cls.TYPE_ID.name, payload, 32)
        return cls(
            client_id=reader.i64(0),
            correlation_id=reader.i64(8),
            registration_correlation_id=reader.i64(16),
            stream_id=reader.i32(24),
            channel=reader.text(28, "channel"),
        )


@dataclass(frozen=True, slots=True)
class RemoveSubscription:
    """Command to close a subscription. The driver does not notify the client that the
    subscription's images become unavailable.
    """

    TYPE_ID: ClassVar[CommandType] = CommandType.REMOVE_SUBSCRIPTION

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
class SubscriptionReady:
    """Response that contains the channel status counter id of a new subscription."""

    TYPE_ID: ClassVar[ResponseType] = ResponseType.SUBSCRIPTION_READY

    correlation_id: int
    channel_status_counter_id: int
    """Id of the channel status counter, or -1 for IPC and spies."""

    def encode(self) -> bytes:
        return struct.pack("<qi", self.correlation_id, self.channel_status_counter_id)

    @classmethod
    def decode(cls, payload: Payload) -> Self:
        reader = PayloadReader(cls.TYPE_ID.name, payload, 12)
        return cls(correlation_id=reader.i64(0), channel_status_counter_id=reader.i32(8))
