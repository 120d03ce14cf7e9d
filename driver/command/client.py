"""Messages about clients: keepalive, close and timeout.

    keepalive, close      0 client id (i64)   8 correlation id (i64)
    timeout               0 client id (i64)

Current clients write a heartbeat counter instead of sending keepalive commands.
"""

import struct
from dataclasses import dataclass
from typing import ClassVar, Self

from windtunnel.driver.command.command_type import NULL_ID, CommandType, ResponseType
from windtunnel.driver.command.payload import Payload, PayloadReader

CORRELATED_LENGTH = 16
"""Length of the fields at the start of every command: client id and correlation id."""


@dataclass(frozen=True, slots=True)
class _ClientCommand:
    """A command whose only fields are a client id and a correlation id."""

    TYPE_ID: ClassVar[CommandType]

    client_id: int
    correlation_id: int = NULL_ID

    def encode(self) -> bytes:
        return struct.pack("<2q", self.client_id, self.correlation_id)

    @classmethod
    def decode(cls, payload: Payload) -> Self:
        reader = PayloadReader(cls.TYPE_ID.name, payload, CORRELATED_LENGTH)
        return cls(client_id=reader.i64(0), correlation_id=reader.i64(8))


class ClientKeepalive(_ClientCommand):
    """A keepalive from an old client. Current clients write a heartbeat counter instead."""

    __slots__ = ()

    TYPE_ID: ClassVar[CommandType] = CommandType.CLIENT_KEEPALIVE


class ClientClose(_ClientCommand):
    """Command that closes a client and releases its resources. The driver sends no response."""

    __slots__ = ()

    TYPE_ID: ClassVar[CommandType] = CommandType.CLIENT_CLOSE


@dataclass(frozen=True, slots=True)
class ClientTimeout:
    """Notification that the driver timed out a client and released its resources."""

    TYPE_ID: ClassVar[ResponseType] = ResponseType.CLIENT_TIMEOUT

    client_id: int

    def encode(self) -> bytes:
        return struct.pack("<q", self.client_id)

    @classmethod
    def decode(cls, payload: Payload) -> Self:
        return cls(client_id=PayloadReader(cls.TYPE_ID.name, payload, 8).i64(0))
