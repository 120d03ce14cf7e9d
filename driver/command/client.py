"""A client's own life: still here, going, gone.

    keepalive, close      0 client id (i64)   8 correlation id (i64)
    timeout               0 client id (i64)

Knows nothing of the heartbeat counter, by which today's clients say that they live.
"""

import struct
from dataclasses import dataclass
from typing import ClassVar, Self

from windtunnel.driver.command.command_type import NULL_ID, CommandType, ResponseType
from windtunnel.driver.command.payload import Payload, PayloadReader

CORRELATED_LENGTH = 16
"""Every command begins with these: client id and correlation id."""


@dataclass(frozen=True, slots=True)
class _ClientCommand:
    """What all commands begin with, and these end with."""

    TYPE_ID: ClassVar[CommandType]

    client_id: int
    correlation_id: int = NULL_ID

    def encode(self) -> bytes:
        return struct.pack("<2q", self.client_id, self.correlation_id)

    @classmethod
    def decode(cls, payload: Payload) -> Self:
        reader = PayloadReader(cls.TYPE_ID.name, payload, CORRELATED_LENGTH)
        return cls(client_id=reader.i64(0), correlation_id=reader.i64(8))


@dataclass(frozen=True, slots=True)
class ClientKeepalive(_ClientCommand):
    """A client lives; only old clients say so in words, others write a counter."""

    TYPE_ID: ClassVar[CommandType] = CommandType.CLIENT_KEEPALIVE


@dataclass(frozen=True, slots=True)
class ClientClose(_ClientCommand):
    """A client leaves and needs nothing any more; it gets no answer."""

    TYPE_ID: ClassVar[CommandType] = CommandType.CLIENT_CLOSE


@dataclass(frozen=True, slots=True)
class ClientTimeout:
    """The driver has given a client up and released all that it had."""

    TYPE_ID: ClassVar[ResponseType] = ResponseType.CLIENT_TIMEOUT

    client_id: int

    def encode(self) -> bytes:
        return struct.pack("<q", self.client_id)

    @classmethod
    def decode(cls, payload: Payload) -> Self:
        return cls(client_id=PayloadReader(cls.TYPE_ID.name, payload, 8).i64(0))
