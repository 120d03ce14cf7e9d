"""The header of a fragment, and the actions that a controlled handler returns."""

from __future__ import annotations

from enum import IntEnum
from typing import Any, Protocol

from windtunnel.driver.kernels.native_object import integer_fields

BEGIN = 0x80
END = 0x40
UNFRAGMENTED = BEGIN | END

Row = tuple[int, ...]
"""A record of the dtype `windtunnel.driver.logbuffer.reader.FRAGMENT` as Python integers."""
AT, LENGTH, FRAME_TYPE, FLAGS, RESERVED_VALUE = 0, 1, 2, 3, 4
SESSION_ID, STREAM_ID, TERM_ID, TERM_OFFSET, END_OFFSET = 5, 6, 7, 8, 9


class Action(IntEnum):
    """The action that a controlled handler returns after a fragment.

    Source: Aeron 1.53, C client.
    """

    ABORT = 1
    """Stop the poll before this fragment. The next poll delivers it again."""
    BREAK = 2
    """Stop the poll after this fragment."""
    COMMIT = 3
    """Publish the position after this fragment to the driver immediately, and continue the poll."""
    CONTINUE = 4
    """Continue the poll. A handler that returns None has the same effect."""


class SourceImage(Protocol):
    """The interface through which a fragment's handler accesses the fragment's image.

    `Image` implements it and documents its members.
    """

    session_id: int
    correlation_id: int
    subscription_registration_id: int
    source_identity: str
    join_position: int
    position: int
    initial_term_id: int
    term_length: int
    mtu_length: int
    position_bits_to_shift: int
    subscriber_position_id: int
    is_closed: bool

    @property
    def end_of_stream_position(self) -> int:
        """The position at which the stream ends, or the largest int64 while it is unknown."""

    @property
    def is_end_of_stream(self) -> bool:
        """Whether the whole stream has been read."""

    @property
    def is_publication_revoked(self) -> bool:
        """Whether the publisher revoked the stream."""

    @property
    def active_transport_count(self) -> int:
        """The number of active transports: sockets that received the stream within the image
        liveness timeout.
        """

    def reject(self, reason: str) -> None:
        """Reject the image: send an error to the publisher, and end the image."""

    def async_reject(self, reason: str) -> None:
        """Reject the image without waiting for the driver's response."""


FIELDS = (
    *("_position", "_flags", "_frame_type", "_session_id", "_stream_id"),
    *("_term_id", "_term_offset", "_reserved_value"),
)
_SLOTS = ("image",)
_Fields: Any = integer_fields("HeaderFields", FIELDS)


class Header(_Fields):  # type: ignore[misc]  # a type that is made at run time
    """The header of a fragment. It is valid only until the handler returns.

    The header of a reassembled message describes the whole message: it has the offset and the
    reserved value of the first fragment, and the position of the last fragment.
    """

    __slots__ = _SLOTS
    _position: int
    _flags: int
    _frame_type: int
    _session_id: int
    _stream_id: int
    _term_id: int
    _term_offset: int
    _reserved_value: int

    def __init__(self, image: SourceImage, row: Row = (0,) * 10, base_position: int = 0) -> None:
        self.image = image
        self.wrap(row, base_position)

    def wrap(self, row: Row, base_position: int) -> None:
        """Reuse the header for another fragment. Called by the image."""
        self._position = base_position + row[END_OFFSET]
        self._flags, self._frame_type = row[FLAGS], row[FRAME_TYPE]
        self._session_id, self._stream_id = row[SESSION_ID], row[STREAM_ID]
        self._term_id, self._term_offset = row[TERM_ID], row[TERM_OFFSET]
        self._reserved_value = row[RESERVED_VALUE]

    def copied(self) -> Header:
        """Return a copy of the header that stays valid after the handler returns."""
        copy = Header(self.image)
        for field in FIELDS:
            setattr(copy, field, getattr(self, field))
        return copy

    def completed(self, first: Header) -> Header:
        """Return the header of a reassembled message. `first` is the header of the message's first
        fragment, and `self` is the header of its last fragment.
        """
        header = self.copied()
        header._flags = UNFRAGMENTED
        header._term_offset, header._reserved_value = first.term_offset, first.reserved_value
        return header

    @property
    def position(self) -> int:
        """The stream position after this fragment."""
        return self._position

    @property
    def flags(self) -> int:
        return self._flags

    @property
    def frame_type(self) -> int:
        return self._frame_type

    @property
    def session_id(self) -> int:
        return self._session_id

    @property
    def stream_id(self) -> int:
        return self._stream_id

    @property
    def term_id(self) -> int:
        return self._term_id

    @property
    def term_offset(self) -> int:
        """The offset of the frame in its term."""
        return self._term_offset

    @property
    def reserved_value(self) -> int:
        return self._reserved_value
