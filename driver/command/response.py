"""The driver's responses for success, for an error and for a publication error.

    success              0 correlation id (i64)
    error                0 offending correlation id (i64)   8 error code (i32)
                         12 message length   16 message
    publication error    0 registration id   8 destination registration id
                         16 session id   20 stream id   24 receiver id (i64)   32 group tag (i64)
                         40 address type (i16)   42 port (u16)   44 address, 16 bytes
                         60 error code (i32)   64 message length   68 message

An IPv4 address uses the first 4 of the 16 bytes. The port is little-endian, like all fields.
"""

import ipaddress
import struct
from dataclasses import dataclass
from typing import ClassVar, Self

from windtunnel.driver.command.command_type import ResponseType
from windtunnel.driver.command.payload import (
    MalformedCommand,
    Message,
    Payload,
    prefixed,
    read_values,
)

ADDRESS_TYPE_IPV4 = 1
ADDRESS_TYPE_IPV6 = 2
_WIDTH_OF = {ADDRESS_TYPE_IPV4: 4, ADDRESS_TYPE_IPV6: 16}


@dataclass(frozen=True, slots=True)
class OperationSuccess(Message):
    """Response to a successful command that creates no resource."""

    TYPE_ID: ClassVar[ResponseType] = ResponseType.OPERATION_SUCCESS
    INTEGERS: ClassVar[str] = "q"

    correlation_id: int


@dataclass(frozen=True, slots=True)
class ErrorResponse(Message):
    """Response to a refused command, or notification of a failed channel endpoint."""

    TYPE_ID: ClassVar[ResponseType] = ResponseType.ERROR
    INTEGERS: ClassVar[str] = "qi"

    correlation_id: int
    """Id of the command, or of the channel status counter if the code is CHANNEL_ENDPOINT_ERROR."""
    error_code: int
    """An `ErrorCode`, or the number of an error code that only a newer driver defines."""
    message: str


@dataclass(frozen=True, slots=True)
class PublicationError(Message):
    """Notification that a publication received an error frame from a receiver."""

    TYPE_ID: ClassVar[ResponseType] = ResponseType.PUBLICATION_ERROR
    INTEGERS: ClassVar[str] = "2q2i2qhH16si"

    registration_id: int
    destination_registration_id: int
    """Registration id of the destination, or -1 if the publication has no destinations."""
    session_id: int
    stream_id: int
    receiver_id: int
    group_tag: int
    source_address: str
    """The receiver's IPv4 or IPv6 address, without brackets."""
    source_port: int
    error_code: int
    message: str

    def encode(self) -> bytes:
        address = ipaddress.ip_address(self.source_address)
        address_type = ADDRESS_TYPE_IPV4 if address.version == 4 else ADDRESS_TYPE_IPV6
        head = struct.pack(
            "<" + self.INTEGERS,
            self.registration_id,
            self.destination_registration_id,
            self.session_id,
            self.stream_id,
            self.receiver_id,
            self.group_tag,
            address_type,
            self.source_port,
            address.packed,
            self.error_code,
        )
        return head + prefixed(self.message)

    @classmethod
    def decode(cls, payload: Payload) -> Self:
        name = cls.TYPE_ID.name
        values = read_values(name, payload, cls.INTEGERS, {"message": str})
        address_type, port, address = values[6:9]
        width = _WIDTH_OF.get(address_type)
        if width is None:
            raise MalformedCommand(f"{name}: expected address_type 1 or 2, found {address_type}")
        values[6:9] = [str(ipaddress.ip_address(address[:width])), port]
        return cls(*values)
