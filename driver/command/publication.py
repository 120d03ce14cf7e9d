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

import struct
from dataclasses import dataclass
from typing import ClassVar, Self

from windtunnel.driver.command.command_type import CommandType, ResponseType
from windtunnel.driver.command.payload import Payload, PayloadReader, text

FLAG_REVOKE = 1
_REMOVE_LENGTH = 32
_REMOVE_LENGTH_LEGACY = 24


@dataclass(frozen=True, slots=True)
class _AddPublication:
    """A command with a channel and a stream id."""

    TYPE_ID: ClassVar[CommandType]

    client_id: int
    correlation_id: int
    stream_id: int
    channel: str

    def encode(self) -> bytes:
        head = struct.pack("<2qi", self.client_id, self.correlation_id, self.stream_id)
        return head + text(self.channel)

    @classmethod
    def decode(cls, payload: Payload) -> Self:
        reader = PayloadReader(cls.TYPE_ID.name, payload, 24)
        return cls(
            client_id=reader.i64(0),
            correlation_id=reader.i64(8),
            stream_id=reader.i32(16),
            channel=reader.text(20, "channel"),
        )


class AddPublication(_AddPublication):
    """Command to add a concurrent publication, or to share an existing one."""

    __slots__ = ()

    TYPE_ID: ClassVar[CommandType] = CommandType.ADD_PUBLICATION


class AddExclusivePublication(_AddPublication):
    """Command to add a publication with a single writer."""

    __slots__ = ()

    TYPE_ID: ClassVar[CommandType] = CommandType.ADD_EXCLUSIVE_PUBLICATION


@dataclass(frozen=True, slots=True)
class RemovePublication:
    """Command to close a publication. If `revoke` is set, its images end immediately."""

    TYPE_ID: ClassVar[CommandType] = CommandType.REMOVE_PUBLICATION

    client_id: int
    correlation_id: int
    registration_id: int
    revoke: bool = False

    def encode(self) -> bytes:
        ids = (self.client_id, self.correlation_id, self.registration_id)
        return struct.pack("<3qQ", *ids, FLAG_REVOKE if self.revoke else 0)

    @classmethod
    def decode(cls, payload: Payload) -> Self:
        reader = PayloadReader(cls.TYPE_ID.name, payload, _REMOVE_LENGTH_LEGACY)
        flags = reader.i64(24) if reader.length >= _REMOVE_LENGTH else 0
        return cls(
            client_id=reader.i64(0),
            correlation_id=reader.i64(8),
            registration_id=reader.i64(16),
            revoke=bool(flags & FLAG_REVOKE),
        )


@dataclass(frozen=True, slots=True)
class _PublicationReady:
    """A response that contains the log file name and the counter ids of a publication."""

    TYPE_ID: ClassVar[ResponseType]

    correlation_id: int
    registration_id: int
    session_id: int
    stream_id: int
    limit_counter_id: int
    channel_status_counter_id: int
    """Id of the channel status counter, or -1 for IPC."""
    log_file_name: str
    """Absolute path of the log buffer file in the driver's file system."""

    def encode(self) -> bytes:
        head = struct.pack(
            "<2q4i",
            self.correlation_id,
            self.registration_id,
            self.session_id,
            self.stream_id,
            self.limit_counter_id,
            self.channel_status_counter_id,
        )
        return head + text(self.log_file_name)

    @classmethod
    def decode(cls, payload: Payload) -> Self:
        reader = PayloadReader(cls.TYPE_ID.name, payload, 36)
        return cls(
            correlation_id=reader.i64(0),
            registration_id=reader.i64(8),
            session_id=reader.i32(16),
            stream_id=reader.i32(20),
            limit_counter_id=reader.i32(24),
            channel_status_counter_id=reader.i32(28),
            log_file_name=reader.file_name(32, "log_file_name"),
        )


class PublicationReady(_PublicationReady):
    """Response to a client: its concurrent publication is ready for use."""

    __slots__ = ()

    TYPE_ID: ClassVar[ResponseType] = ResponseType.PUBLICATION_READY


class ExclusivePublicationReady(_PublicationReady):
    """Response to a client: its exclusive publication is ready for use."""

    __slots__ = ()

    TYPE_ID: ClassVar[ResponseType] = ResponseType.EXCLUSIVE_PUBLICATION_READY


@dataclass(frozen=True, slots=True)
class GetNextAvailableSessionId:
    """Command to request a session id that no publication of a stream uses."""

    TYPE_ID: ClassVar[CommandType] = CommandType.GET_NEXT_AVAILABLE_SESSION_ID

    client_id: int
    correlation_id: int
    stream_id: int

    def encode(self) -> bytes:
        return struct.pack("<2qi", self.client_id, self.correlation_id, self.stream_id)

    @classmethod
    def decode(cls, payload: Payload) -> Self:
        reader = PayloadReader(cls.TYPE_ID.name, payload, 20)
        return cls(client_id=reader.i64(0), correlation_id=reader.i64(8), stream_id=reader.i32(16))


@dataclass(frozen=True, slots=True)
class NextAvailableSessionId:
    """Response that contains the requested session id. The driver will not assign this id again."""

    TYPE_ID: ClassVar[ResponseType] = ResponseType.NEXT_AVAILABLE_SESSION_ID

    correlation_id: int
    session_id: int

    def encode(self) -> bytes:
        return struct.pack("<qi", self.correlation_id, self.session_id)

    @classmethod
    def decode(cls, payload: Payload) -> Self:
        reader = PayloadReader(cls.TYPE_ID.name, payload, 12)
        return cls(correlation_id=reader.i64(0), session_id=reader.i32(8))
