"""The command that shuts down the driver.

    terminate    0 client id (i64)   8 correlation id (i64)   16 token length (i32)   20 token

A setting of the driver decides whether clients may shut it down. The driver ignores the token, as
in Aeron.
"""

from dataclasses import dataclass
from typing import ClassVar

from windtunnel.driver.command.command_type import CommandType
from windtunnel.driver.command.payload import Message


@dataclass(frozen=True, slots=True)
class TerminateDriver(Message):
    """Command that shuts down the driver if the driver's settings allow it. The driver sends no
    response.
    """

    TYPE_ID: ClassVar[CommandType] = CommandType.TERMINATE_DRIVER
    INTEGERS: ClassVar[str] = "2q"

    client_id: int
    correlation_id: int
    token: bytes = b""
