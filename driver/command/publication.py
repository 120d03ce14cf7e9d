"""Messages about publications: add, remove, ready and next available session id.

    add           0 client id   8 correlation id   16 stream id (i32)
                  20 channel length   24 channel
    remove        0 client id   8 correlation id   16 registration id (i64)
                  24 flags (u64), bit 0 revoke
    ready         0 correlation id   8 registration id   16 session id   20 stream id
                  24 limit counter id   28 channel status counter id
                  32 log file name length   36 log file name
    get session   0 client id   8 correlation id   16 stream id (i32)
    session       0 correlation id   8 session id (i32)

An existing concurrent publication is shared: `registration id` identifies the first command that
added it, and `correlation id` the command that this message responds to. A client uses its
correlation id to remove the publication. Old clients send remove commands without flags.
"""

from dataclasses import dataclass
from typing import ClassVar, Self

from windtunnel.driver.command.command_type import CommandType, ResponseType
from windtunnel.driver.command.payload import FileName, Message, Payload, read_values

FLAG_REVOKE = 1
_REMOVE_LENGTH = 32
_LEGACY_INTEGERS = "3q"


@dataclass(frozen=True, slots=True)
class _AddPublication(Message):
    """A command with a channel and a stream id."""

    TYPE_ID: ClassVar[CommandType]
    INTEGERS: ClassVar[str] = "2qi"

    client_id: int
    correlation_id: int
    stream_id: int
    channel: str


class AddPublication(_AddPublication):
    """Command to add a concurrent publication, or to share an existing one."""

    __slots__ = ()

    TYPE_ID: ClassVar[CommandType] = CommandType.ADD_PUBLICATION


class AddExclusivePublication(_AddPublication):
    """Command to add a publication with a single writer."""

    __slots__ = ()

    TYPE_ID: ClassVar[CommandType] = CommandType.ADD_EXCLUSIVE_PUBLICATION


@dataclass(frozen=True, slots=True)
class RemovePublication(Message):
    """Command to close a publication. If `revoke` is set, its images end immediately."""

    TYPE_ID: ClassVar[CommandType] = CommandType.REMOVE_PUBLICATION
    INTEGERS: ClassVar[str] = "3qQ"

    client_id: int
    correlation_id: int
    registration_id: int
    revoke: bool = False

    @classmethod
    def decode(cls, payload: Payload) -> Self:
        layout = cls.INTEGERS if len(payload) >= _REMOVE_LENGTH else _LEGACY_INTEGERS
        values = read_values(cls.TYPE_ID.name, payload, layout, {})
        values[3:] = [bool(each & FLAG_REVOKE) for each in values[3:]]
        return cls(*values)


@dataclass(frozen=True, slots=True)
class _PublicationReady(Message):
    """A response that contains the log file name and the counter ids of a publication."""

    TYPE_ID: ClassVar[ResponseType]
    INTEGERS: ClassVar[str] = "2q4i"

    correlation_id: int
    registration_id: int
    session_id: int
    stream_id: int
    limit_counter_id: int
    channel_status_counter_id: int
    """Id of the channel status counter, or -1 for IPC."""
    log_file_name: FileName
    """Absolute path of the log buffer file in the driver's file system."""


class PublicationReady(_PublicationReady):
    """Response to a client: its concurrent publication is ready for use."""

    __slots__ = ()

    TYPE_ID: ClassVar[ResponseType] = ResponseType.PUBLICATION_READY


class ExclusivePublicationReady(_PublicationReady):
    """Response to a client: its exclusive publication is ready for use."""

    __slots__ = ()

    TYPE_ID: ClassVar[ResponseType] = ResponseType.EXCLUSIVE_PUBLICATION_READY


@dataclass(frozen=True, slots=True)
class GetNextAvailableSessionId(Message):
    """Command to request a session id that no publication of a stream uses."""

    TYPE_ID: ClassVar[CommandType] = CommandType.GET_NEXT_AVAILABLE_SESSION_ID
    INTEGERS: ClassVar[str] = "2qi"

    client_id: int
    correlation_id: int
    stream_id: int


@dataclass(frozen=True, slots=True)
class NextAvailableSessionId(Message):
    """Response that contains the requested session id. The driver will not assign this id again."""

    TYPE_ID: ClassVar[ResponseType] = ResponseType.NEXT_AVAILABLE_SESSION_ID
    INTEGERS: ClassVar[str] = "qi"

    correlation_id: int
    session_id: int
