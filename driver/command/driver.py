"""The command that shuts down the driver.

    terminate    0 client id (i64)   8 correlation id (i64)   16 token length (i32)   20 token

A setting of the driver decides whether clients may shut it down. The driver ignores the token, as
in Aeron.
"""

import struct
from dataclasses import dataclass
from typing import ClassVar, Self

from windtunnel.driver.command.command_type import CommandType
from windtunnel.driver.command.payload import Payload, PayloadReader, prefixed


@dataclass(frozen=True, slots=True)
class TerminateDriver:
    """Command that shuts down the driver if the driver's settings allow it. The driver sends no
    response.
    """

    TYPE_ID: ClassVar[CommandType] = CommandType.TERMINATE_DRIVER

    client_id: int
    correlation_id: int
    token: bytes = b""

    def encode(self) -> bytes:
        return struct.pack("<2q", self.client_id, self.correlation_id) + prefixed(self.token)

    @classmethod
    def decode(cls, payload: Payload) -> Self:
        reader = PayloadReader(cls.TYPE_ID.name, payload, 20)
        return cls(
            client_id=reader.i64(0),
            correlation_id=reader.i64(8),
            token=reader.prefixed(16, "token")[0],
        )
