"""Messages about clients: keepalive, close and timeout.

    keepalive, close      0 client id (i64)   8 correlation id (i64)
    timeout               0 client id (i64)

Current clients write a heartbeat counter instead of sending keepalive commands.
"""

from dataclasses import dataclass
from typing import ClassVar

from windtunnel.driver.command.command_type import NULL_ID, CommandType, ResponseType
from windtunnel.driver.command.payload import Message


@dataclass(frozen=True, slots=True)
class _ClientCommand(Message):
    """A command whose only fields are a client id and a correlation id."""

    TYPE_ID: ClassVar[CommandType]
    INTEGERS: ClassVar[str] = "2q"

    client_id: int
    correlation_id: int = NULL_ID


class ClientKeepalive(_ClientCommand):
    """A keepalive from an old client. Current clients write a heartbeat counter instead."""

    __slots__ = ()

    TYPE_ID: ClassVar[CommandType] = CommandType.CLIENT_KEEPALIVE


class ClientClose(_ClientCommand):
    """Command that closes a client and releases its resources. The driver sends no response."""

    __slots__ = ()

    TYPE_ID: ClassVar[CommandType] = CommandType.CLIENT_CLOSE


@dataclass(frozen=True, slots=True)
class ClientTimeout(Message):
    """Notification that the driver timed out a client and released its resources."""

    TYPE_ID: ClassVar[ResponseType] = ResponseType.CLIENT_TIMEOUT
    INTEGERS: ClassVar[str] = "q"

    client_id: int
