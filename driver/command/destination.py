"""Commands that add or remove destinations of publications and subscriptions.

    add, remove     0 client id   8 correlation id   16 registration id (i64)
                    24 channel length   28 channel
    remove by id    0 client id   8 correlation id   16 registration id (i64)
                    24 registration id of the destination (i64)

`registration id` identifies the publication or subscription. The registration id of a destination
is the correlation id of the command that added it.
"""

from dataclasses import dataclass
from typing import ClassVar

from windtunnel.driver.command.command_type import CommandType
from windtunnel.driver.command.payload import Message


@dataclass(frozen=True, slots=True)
class _DestinationCommand(Message):
    """A command with a registration id and a destination channel."""

    TYPE_ID: ClassVar[CommandType]
    INTEGERS: ClassVar[str] = "3q"

    client_id: int
    correlation_id: int
    registration_id: int
    channel: str


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
class RemoveDestinationById(Message):
    """Command to remove the destination with a given registration id from a publication."""

    TYPE_ID: ClassVar[CommandType] = CommandType.REMOVE_DESTINATION_BY_ID
    INTEGERS: ClassVar[str] = "4q"

    client_id: int
    correlation_id: int
    registration_id: int
    destination_registration_id: int
