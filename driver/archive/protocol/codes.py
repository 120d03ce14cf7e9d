"""Constants of the archive's control protocol: enumerations, error codes and versions.

Enumerations are encoded in 32 bits. NULL is the null value of SBE, which a sender may use for "not
set".
Source: archive-protocol 1.1 to 1.3, 1.7; Aeron 1.53.
"""

from enum import IntEnum

from windtunnel.driver.base.arith import I32_MIN

SCHEMA_ID = 101
SCHEMA_VERSION = 14

NULL_VALUE = -1
"""The value of a position, length, id or time that is not set. It is not SBE's null value."""
REPLAY_ALL_AND_FOLLOW = -1
REPLAY_ALL_AND_STOP = -2


def semantic_version(major: int, minor: int, patch: int) -> int:
    """Encode a semantic version as an integer. Each part must be in the range 0 to 255."""
    return major << 16 | minor << 8 | patch


def major_of(version: int) -> int:
    """Return the major version. Two versions are compatible if their major versions are equal."""
    return version >> 16 & 0xFF


def version_text(version: int) -> str:
    """Format a semantic version as text."""
    return f"{version >> 16 & 0xFF}.{version >> 8 & 0xFF}.{version & 0xFF}"


PROTOCOL_VERSION = semantic_version(1, 12, 0)
PROTOCOL_VERSION_WITH_ARCHIVE_ID = semantic_version(1, 11, 0)
"""The first version in which an archive responds to an ArchiveIdRequest."""


class ControlResponseCode(IntEnum):
    """The result code of a response to a request."""

    OK = 0
    ERROR = 1
    RECORDING_UNKNOWN = 2
    SUBSCRIPTION_UNKNOWN = 3
    NULL = I32_MIN


class SourceLocation(IntEnum):
    """The location of a stream's publisher, local or remote. NULL means REMOTE."""

    LOCAL = 0
    REMOTE = 1
    NULL = I32_MIN


class BooleanType(IntEnum):
    """A boolean in a message. NULL means false."""

    FALSE = 0
    TRUE = 1
    NULL = I32_MIN


class RecordingSignal(IntEnum):
    """The kinds of recording signals, such as the start or stop of a recording."""

    START = 0
    STOP = 1
    EXTEND = 2
    REPLICATE = 3
    MERGE = 4
    SYNC = 5
    DELETE = 6
    REPLICATE_END = 7
    NULL = I32_MIN


class ErrorCode(IntEnum):
    """The error codes. A response with the code ERROR has one of them as its `relevant_id`."""

    GENERIC = 0
    ACTIVE_LISTING = 1
    ACTIVE_RECORDING = 2
    ACTIVE_SUBSCRIPTION = 3
    UNKNOWN_SUBSCRIPTION = 4
    UNKNOWN_RECORDING = 5
    UNKNOWN_REPLAY = 6
    MAX_REPLAYS = 7
    MAX_RECORDINGS = 8
    INVALID_EXTENSION = 9
    AUTHENTICATION_REJECTED = 10
    STORAGE_SPACE = 11
    UNKNOWN_REPLICATION = 12
    UNAUTHORISED_ACTION = 13
    REPLICATION_CONNECTION_FAILURE = 14
    EMPTY_RECORDING = 15
    INVALID_POSITION = 16
