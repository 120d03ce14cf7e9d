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

from dataclasses import dataclass
from typing import ClassVar

from windtunnel.driver.command.command_type import CommandType, ResponseType
from windtunnel.driver.command.payload import FileName, Message

_REJECT_LENGTH_MIN = 40
"""Minimum length of a reject command. The C driver drops shorter commands."""


@dataclass(frozen=True, slots=True)
class AvailableImage(Message):
    """Notification that an image of a subscription is available."""

    TYPE_ID: ClassVar[ResponseType] = ResponseType.AVAILABLE_IMAGE
    INTEGERS: ClassVar[str] = "q2iqi"

    correlation_id: int
    session_id: int
    stream_id: int
    subscription_registration_id: int
    subscriber_position_id: int
    log_file_name: FileName
    source_identity: str
    """The publisher's address as `ip:port`, or `aeron:ipc`."""


@dataclass(frozen=True, slots=True)
class UnavailableImage(Message):
    """Notification that an image ended, timed out or was rejected."""

    TYPE_ID: ClassVar[ResponseType] = ResponseType.UNAVAILABLE_IMAGE
    INTEGERS: ClassVar[str] = "2qi"

    correlation_id: int
    subscription_registration_id: int
    stream_id: int
    channel: str


@dataclass(frozen=True, slots=True)
class RejectImage(Message):
    """Command to reject an image and send the reason to its publisher."""

    TYPE_ID: ClassVar[CommandType] = CommandType.REJECT_IMAGE
    INTEGERS: ClassVar[str] = "4q"

    client_id: int
    correlation_id: int
    image_correlation_id: int
    position: int
    reason: str

    def encode(self) -> bytes:
        return Message.encode(self).ljust(_REJECT_LENGTH_MIN, b"\0")
