"""What a fragment's header says, and the actions that a controlled handler may answer with."""

from __future__ import annotations

from enum import IntEnum
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from windtunnel.driver.client.image.image import Image

BEGIN = 0x80
END = 0x40
UNFRAGMENTED = BEGIN | END

Row = tuple[int, ...]
"""One record of `windtunnel.driver.logbuffer.reader.FRAGMENT` as Python's numbers."""
AT, LENGTH, FRAME_TYPE, FLAGS, RESERVED_VALUE = 0, 1, 2, 3, 4
SESSION_ID, STREAM_ID, TERM_ID, TERM_OFFSET, END_OFFSET = 5, 6, 7, 8, 9


class Action(IntEnum):
    """What a controlled handler wants to happen after the fragment it was given.

    Source: Aeron 1.53, C client.
    """

    ABORT = 1
    """Stop before this fragment: it is handed out again next time."""
    BREAK = 2
    """Stop behind this fragment."""
    COMMIT = 3
    """Tell the driver now that everything up to here was read, and go on."""
    CONTINUE = 4
    """Go on; so does None."""


class Header:
    """What the driver wrote about one fragment; valid during the handler's call.

    The header of a message that an assembler put together tells of the whole: it begins where its
    first fragment began, has that one's reserved value, and ends behind its last.
    """

    __slots__ = ("_base_position", "_row", "image")

    def __init__(self, image: Image, row: Row = (0,) * 10, base_position: int = 0) -> None:
        self.image = image
        self._row = row
        self._base_position = base_position

    def point_at(self, row: Row, base_position: int) -> None:
        """For the image: tell of this fragment from now on."""
        self._row = row
        self._base_position = base_position

    def copied(self) -> Header:
        """The same, to be kept beyond the handler's call."""
        return Header(self.image, self._row, self._base_position)

    def completed(self, first: Header) -> Header:
        """The header of a whole message that began with `first` and ends with this fragment."""
        row = list(self._row)
        row[FLAGS], row[TERM_OFFSET] = UNFRAGMENTED, first.term_offset
        row[RESERVED_VALUE] = first.reserved_value
        return Header(self.image, tuple(row), self._base_position)

    @property
    def position(self) -> int:
        """The stream's position behind this fragment."""
        return self._base_position + self._row[END_OFFSET]

    @property
    def flags(self) -> int:
        return self._row[FLAGS]

    @property
    def frame_type(self) -> int:
        return self._row[FRAME_TYPE]

    @property
    def session_id(self) -> int:
        return self._row[SESSION_ID]

    @property
    def stream_id(self) -> int:
        return self._row[STREAM_ID]

    @property
    def term_id(self) -> int:
        return self._row[TERM_ID]

    @property
    def term_offset(self) -> int:
        """Where the frame begins in its term."""
        return self._row[TERM_OFFSET]

    @property
    def reserved_value(self) -> int:
        return self._row[RESERVED_VALUE]
