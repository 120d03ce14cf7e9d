"""Commands that add or remove destinations of publications and subscriptions.

    add, remove     0 client id   8 correlation id   16 registration id (i64)
                    24 channel length   28 channel
    remove by id    0 client id   8 correlation id   16 registration id (i64)
                    24 registration id of the destination (i64)

`registration id` identifies the publication or subscription. The registration id of a destination
is the correlation id of the command that added it.
"""

import struct
from dataclasses import dataclass
from typing import ClassVar, Self

from windtunnel.driver.command.command_type import CommandType
from windtunnel.driver.command.payload import Payload, PayloadReader, text


@dataclass(frozen=True, slots=True)
class _DestinationCommand:
    """A command with a registration id and a destination channel."""

    TYPE_ID: ClassVar[CommandType]

    client_id: int
    correlation_id: int
    registration_id: int
    channel: str

    def encode(self) -> bytes:
        ids = (self.client_id, self.correlation_id, self.registration_id)
        return struct.pack("<3q", *ids) + text(self.channel)

    @classmethod
    def decode(cls, payload: Payload) -> Self:
        reader = PayloadReader(cls.TYPE_ID.name, payload, 28)
        return cls(
            client_id=reader.i64(0),
            correlation_id=reader.i64(8),
            registration_id=reader.i64(16),
            channel=reader.text(24, "channel"),
        )


class AddDestination(_DestinationCommand):
    """Command to add a destination to a publication."""

    __slots__ = ()

    TYPE_ID: ClassVar[CommandType] = CommandType.ADD_DESTINATION


class RemoveDestination(_DestinationCommand):
    """Command to remove the destination with a given channel from a publication."""

    __slots__ = ()

    TYPE_ID: ClassVar[CommandType] = CommandType.REMOVE_DESTINATION


class AddReceiveDestination(_DestinationCommand):
    """Command to add a destination to a subscription."""

    __slots__ = ()

    TYPE_ID: ClassVar[CommandType] = CommandType.ADD_RECEIVE_DESTINATION


class RemoveReceiveDestination(_DestinationCommand):
    """Command to remove the destination with a given channel from a subscription."""

    __slots__ = ()

    TYPE_ID: ClassVar[CommandType] = CommandType.REMOVE_RECEIVE_DESTINATION


@dataclass(frozen=True, slots=True)
class RemoveDestinationById:
    """Command to remove the destination with a given registration id from a publication."""

    TYPE_ID: ClassVar[CommandType] = CommandType.REMOVE_DESTINATION_BY_ID

    client_id: int
    correlation_id: int
    registration_id: int
    destination_registration_id: int

    def encode(self) -> bytes:
        return struct.pack(
            "<4q",
            self.client_id,
            self.correlation_id,
            self.registration_id,
            self.destination_registration_id,
        )

    @classmethod
    def decode(cls, payload: Payload) -> Self:
        reader = PayloadReader(cls.TYPE_ID.name, payload, 32)
        return cls(
            client_id=reader.i64(0),
            correlation_id=reader.i64(8),
            registration_id=reader.i64(16),
            destination_registration_id=reader.i64(24),
        )
