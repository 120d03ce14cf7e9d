"""Messages about images: available, unavailable and reject.

    available      0 image correlation id   8 session id   12 stream id
                   16 subscription registration id (i64)   24 subscriber position counter id
                   28 log file name length   32 log file name
                   then, at the next multiple of 4: source identity length, source identity
    unavailable    0 image correlation id   8 subscription registration id (i64)   16 stream id
                   20 channel length   24 channel
    reject         0 client id   8 correlation id   16 image correlation id (i64)
                   24 position (i64)   32 reason length   36 reason

The driver sends one message for each subscription of an image.
"""

import struct
from dataclasses import dataclass
from typing import ClassVar, Self

from windtunnel.driver.command.command_type import CommandType, ResponseType
from windtunnel.driver.command.payload import Payload, PayloadReader, padded, text

_REJECT_LENGTH_MIN = 40
"""Minimum length of a reject command. The C driver drops shorter commands."""


@dataclass(frozen=True, slots=True)
class AvailableImage:
    """Notification that an image of a subscription is available."""

    TYPE_ID: ClassVar[ResponseType] = ResponseType.AVAILABLE_IMAGE

    correlation_id: int
    session_id: int
    stream_id: int
    subscription_registration_id: int
    subscriber_position_id: int
    log_file_name: str
    source_identity: str
    """The publisher's address as `ip:port`, or `aeron:ipc`."""

    def encode(self) -> bytes:
        head = struct.pack(
            "<q2iqi",
            self.correlation_id,
            self.session_id,
            self.stream_id,
            self.subscription_registration_id,
            self.subscriber_position_id,
        )
        return padded(head + text(self.log_file_name)) + text(self.source_identity)

    @classmethod
    def decode(cls, payload: Payload) -> Self:
        reader = PayloadReader(cls.TYPE_ID.name, payload, 36)
        name_end = reader.prefixed(28, "log_file_name")[1]
        return cls(
            correlation_id=reader.i64(0),
            session_id=reader.i32(8),
            stream_id=reader.i32(12),
            subscription_registration_id=reader.i64(16),
            subscriber_position_id=reader.i32(24),
            log_file_name=reader.file_name(28, "log_file_name"),
            source_identity=reader.text_after(name_end, "source_identity"),
        )


@dataclass(frozen=True, slots=True)
class UnavailableImage:
    """Notification that an image ended, timed out or was rejected."""

    TYPE_ID: ClassVar[ResponseType] = ResponseType.UNAVAILABLE_IMAGE

    correlation_id: int
    subscription_registration_id: int
    stream_id: int
    channel: str

    def encode(self) -> bytes:
        ids = (self.correlation_id, self.subscription_registration_id)
        return struct.pack("<2qi", *ids, self.stream_id) + text(self.channel)

    @classmethod
    def decode(cls, payload: Payload) -> Self:
        reader = PayloadReader(cls.TYPE_ID.name, payload, 24)
        return cls(
            correlation_id=reader.i64(0),
            subscription_registration_id=reader.i64(8),
            stream_id=reader.i32(16),
            channel=reader.text(20, "channel"),
        )


@dataclass(frozen=True, slots=True)
class RejectImage:
    """Command to reject an image and send the reason to its publisher."""

    TYPE_ID: ClassVar[CommandType] = CommandType.REJECT_IMAGE

    client_id: int
    correlation_id: int
    image_correlation_id: int
    position: int
    reason: str

    def encode(self) -> bytes:
        head = struct.pack(
            "<4q",
            self.client_id,
            self.correlation_id,
            self.image_correlation_id,
            self.position,
        )
        return (head + text(self.reason)).ljust(_REJECT_LENGTH_MIN, b"\0")

    @classmethod
    def decode(cls, payload: Payload) -> Self:
        reader = PayloadReader(cls.TYPE_ID.name, payload, 36)
        return cls(
            client_id=reader.i64(0),
            correlation_id=reader.i64(8),
            image_correlation_id=reader.i64(16),
            position=reader.i64(24),
            reason=reader.text(32, "reason"),
        )
