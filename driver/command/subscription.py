"""Messages about subscriptions: add, remove and ready.

    add       0 client id   8 correlation id   16 registration correlation id (i64)
              24 stream id (i32)   28 channel length   32 channel
    remove    0 client id   8 correlation id   16 registration id (i64)
    ready     0 correlation id   8 channel status counter id (i32)

The module `image` has the messages about images.
"""

from dataclasses import dataclass, field
from typing import ClassVar

from windtunnel.driver.command.command_type import NULL_ID, CommandType, ResponseType
from windtunnel.driver.command.payload import Message


@dataclass(frozen=True, slots=True)
class AddSubscription(Message):
    """Command to subscribe to a stream. Its images become available later."""

    TYPE_ID: ClassVar[CommandType] = CommandType.ADD_SUBSCRIPTION
    INTEGERS: ClassVar[str] = "3qi"

    client_id: int
    correlation_id: int
    registration_correlation_id: int = field(default=NULL_ID, kw_only=True)
    """A field that no client uses. Clients send -1."""
    stream_id: int
    channel: str


@dataclass(frozen=True, slots=True)
class RemoveSubscription(Message):
    """Command to close a subscription. The driver does not notify the client that the
    subscription's images become unavailable.
    """

    TYPE_ID: ClassVar[CommandType] = CommandType.REMOVE_SUBSCRIPTION
    INTEGERS: ClassVar[str] = "3q"

    client_id: int
    correlation_id: int
    registration_id: int


@dataclass(frozen=True, slots=True)
class SubscriptionReady(Message):
    """Response that contains the channel status counter id of a new subscription."""

    TYPE_ID: ClassVar[ResponseType] = ResponseType.SUBSCRIPTION_READY
    INTEGERS: ClassVar[str] = "qi"

    correlation_id: int
    channel_status_counter_id: int
    """Id of the channel status counter, or -1 for IPC and spies."""
