"""Type codes of commands and responses, and the error codes in responses.

Source: driver-protocol 7.1, 7.2, 7.4, Aeron 1.53.
"""

from enum import IntEnum


class CommandType(IntEnum):
    """Type codes of the commands from clients."""

    ADD_PUBLICATION = 0x01
    REMOVE_PUBLICATION = 0x02
    ADD_EXCLUSIVE_PUBLICATION = 0x03
    ADD_SUBSCRIPTION = 0x04
    REMOVE_SUBSCRIPTION = 0x05
    CLIENT_KEEPALIVE = 0x06
    ADD_DESTINATION = 0x07
    REMOVE_DESTINATION = 0x08
    ADD_COUNTER = 0x09
    REMOVE_COUNTER = 0x0A
    CLIENT_CLOSE = 0x0B
    ADD_RECEIVE_DESTINATION = 0x0C
    REMOVE_RECEIVE_DESTINATION = 0x0D
    TERMINATE_DRIVER = 0x0E
    ADD_STATIC_COUNTER = 0x0F
    REJECT_IMAGE = 0x10
    REMOVE_DESTINATION_BY_ID = 0x11
    GET_NEXT_AVAILABLE_SESSION_ID = 0x12


class ResponseType(IntEnum):
    """Type codes of the responses from the driver."""

    ERROR = 0x0F01
    AVAILABLE_IMAGE = 0x0F02
    PUBLICATION_READY = 0x0F03
    OPERATION_SUCCESS = 0x0F04
    UNAVAILABLE_IMAGE = 0x0F05
    EXCLUSIVE_PUBLICATION_READY = 0x0F06
    SUBSCRIPTION_READY = 0x0F07
    COUNTER_READY = 0x0F08
    UNAVAILABLE_COUNTER = 0x0F09
    CLIENT_TIMEOUT = 0x0F0A
    STATIC_COUNTER = 0x0F0B
    PUBLICATION_ERROR = 0x0F0C
    NEXT_AVAILABLE_SESSION_ID = 0x0F0D


class ErrorCode(IntEnum):
    """The reason for an error response."""

    UNKNOWN_CODE_VALUE = -1
    UNUSED = 0
    INVALID_CHANNEL = 1
    UNKNOWN_SUBSCRIPTION = 2
    UNKNOWN_PUBLICATION = 3
    CHANNEL_ENDPOINT_ERROR = 4
    UNKNOWN_COUNTER = 5
    UNKNOWN_COMMAND_TYPE_ID = 6
    MALFORMED_COMMAND = 7
    NOT_SUPPORTED = 8
    UNKNOWN_HOST = 9
    RESOURCE_TEMPORARILY_UNAVAILABLE = 10
    GENERIC_ERROR = 11
    STORAGE_SPACE = 12
    IMAGE_REJECTED = 13
    PUBLICATION_REVOKED = 14

    @classmethod
    def of(cls, code: int) -> "ErrorCode":
        """Return the ErrorCode with the given number, or UNKNOWN_CODE_VALUE if the number is
        unknown.
        """
        try:
            return cls(code)
        except ValueError:
            return cls.UNKNOWN_CODE_VALUE


NULL_ID = -1
"""The value of an absent correlation, registration, client or counter id."""


DESCRIPTIONS = {
    ErrorCode.INVALID_CHANNEL: "invalid channel",
    ErrorCode.UNKNOWN_SUBSCRIPTION: "unknown subscription",
    ErrorCode.UNKNOWN_PUBLICATION: "unknown publication",
    ErrorCode.CHANNEL_ENDPOINT_ERROR: "channel endpoint error",
    ErrorCode.UNKNOWN_COUNTER: "unknown counter",
    ErrorCode.UNKNOWN_COMMAND_TYPE_ID: "unknown command type id",
    ErrorCode.MALFORMED_COMMAND: "malformed command",
    ErrorCode.NOT_SUPPORTED: "not supported",
    ErrorCode.UNKNOWN_HOST: "unknown host",
    ErrorCode.RESOURCE_TEMPORARILY_UNAVAILABLE: "resource temporarily unavailable",
    ErrorCode.GENERIC_ERROR: "generic error, see message",
    ErrorCode.STORAGE_SPACE: "insufficient storage space",
    ErrorCode.IMAGE_REJECTED: "image rejected",
    ErrorCode.PUBLICATION_REVOKED: "publication revoked",
}
"""Error code descriptions, for display in tools. Source: Aeron 1.53's C client."""


def describe(code: int) -> str:
    """Return the description of an error code."""
    return DESCRIPTIONS.get(ErrorCode(code), "") if code in set(ErrorCode) else "unknown error code"
