"""Decodes messages between clients and the driver according to their type codes."""

from collections.abc import Mapping
from typing import TypeAlias

from windtunnel.driver.command.client import ClientClose, ClientKeepalive, ClientTimeout
from windtunnel.driver.command.counter import (
    AddCounter,
    AddStaticCounter,
    CounterReady,
    RemoveCounter,
    StaticCounter,
    UnavailableCounter,
)
from windtunnel.driver.command.destination import (
    AddDestination,
    AddReceiveDestination,
    RemoveDestination,
    RemoveDestinationById,
    RemoveReceiveDestination,
)
from windtunnel.driver.command.driver import TerminateDriver
from windtunnel.driver.command.image import AvailableImage, RejectImage, UnavailableImage
from windtunnel.driver.command.payload import Payload, UnknownCommand
from windtunnel.driver.command.publication import (
    AddExclusivePublication,
    AddPublication,
    ExclusivePublicationReady,
    GetNextAvailableSessionId,
    NextAvailableSessionId,
    PublicationReady,
    RemovePublication,
)
from windtunnel.driver.command.response import ErrorResponse, OperationSuccess, PublicationError
from windtunnel.driver.command.subscription import (
    AddSubscription,
    RemoveSubscription,
    SubscriptionReady,
)

Command: TypeAlias = (
    AddPublication
    | AddExclusivePublication
    | RemovePublication
    | GetNextAvailableSessionId
    | AddSubscription
    | RemoveSubscription
    | AddDestination
    | RemoveDestination
    | AddReceiveDestination
    | RemoveReceiveDestination
    | RemoveDestinationById
    | AddCounter
    | AddStaticCounter
    | RemoveCounter
    | RejectImage
    | ClientKeepalive
    | ClientClose
    | TerminateDriver
)
"""Any client command. All commands have a `client_id` and a `correlation_id`."""

Response: TypeAlias = (
    ErrorResponse
    | OperationSuccess
    | PublicationError
    | PublicationReady
    | ExclusivePublicationReady
    | NextAvailableSessionId
    | SubscriptionReady
    | AvailableImage
    | UnavailableImage
    | CounterReady
    | StaticCounter
    | UnavailableCounter
    | ClientTimeout
)
"""Any driver response."""

COMMANDS: Mapping[int, type[Command]] = {kind.TYPE_ID: kind for kind in Command.__args__}
RESPONSES: Mapping[int, type[Response]] = {kind.TYPE_ID: kind for kind in Response.__args__}


def decode_command(type_id: int, payload: Payload) -> Command:
    """Decode a command. Raises MalformedCommand if the bytes are invalid, or UnknownCommand if the
    type is unknown.
    """
    kind = COMMANDS.get(int(type_id))
    if kind is None:
        raise UnknownCommand(f"expected a command type from 0x01 to 0x12, found {type_id}")
    return kind.decode(payload)


def decode_response(type_id: int, payload: Payload) -> Response:
    """Decode a response. Raises the same errors as `decode_command`."""
    kind = RESPONSES.get(int(type_id))
    if kind is None:
        raise UnknownCommand(f"expected a response type from 0xF01 to 0xF0D, found {type_id}")
    return kind.decode(payload)
