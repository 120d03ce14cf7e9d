"""Layout tables of all Aeron frames: name, offset, width and signedness of each field.

All integers are little-endian and packed. The fields of each frame type follow the generic header:

    0               4       5       6       8
    +---------------+-------+-------+-------+----
    | frame_length  |version| flags | type  | ...
    +---------------+-------+-------+-------+----

Source: specification of Aeron 1.53, section 1.
"""

from dataclasses import dataclass


@dataclass(frozen=True)
class Field:
    """An integer field of a frame: its name, offset from the frame's start, width in bytes, and
    signedness.
    """

    name: str
    offset: int
    width: int
    signed: bool = True

    @property
    def end(self) -> int:
        return self.offset + self.width


@dataclass(frozen=True)
class Frame:
    """A frame type: its name, type code, and the fields after the generic header."""

    name: str
    type_code: int
    fields: tuple[Field, ...]

    @property
    def length(self) -> int:
        """Length in bytes of the frame's fixed part, which excludes payload, error message,
        resolution entries and group tag.
        """
        return max(field.end for field in (*HEADER, *self.fields))

    def field(self, name: str) -> Field:
        """Return a field by name, including fields of the generic header."""
        return next(field for field in (*HEADER, *self.fields) if field.name == name)


HEADER = (
    Field("frame_length", 0, 4),
    Field("version", 4, 1, signed=False),
    Field("flags", 5, 1, signed=False),
    Field("type", 6, 2, signed=False),
)
HEADER_LENGTH = HEADER[-1].end
FRAME_ALIGNMENT = 32
DATA_HEADER_LENGTH = 32

FLAG_BEGIN = 0x80
FLAG_END = 0x40
FLAG_END_OF_STREAM = 0x20
FLAG_REVOKED = 0x10
FLAG_UNFRAGMENTED = FLAG_BEGIN | FLAG_END
SETUP_FLAG_SEND_RESPONSE = 0x80
SETUP_FLAG_GROUP = 0x40
SM_FLAG_SEND_SETUP = 0x80
SM_FLAG_END_OF_STREAM = 0x40
RTTM_FLAG_REPLY = 0x80
ERR_FLAG_HAS_GROUP_TAG = 0x08

_STREAM = (
    Field("term_offset", 8, 4),
    Field("session_id", 12, 4),
    Field("stream_id", 16, 4),
)
_SESSION = (Field("session_id", 8, 4), Field("stream_id", 12, 4))
_DATA = (*_STREAM, Field("term_id", 20, 4), Field("reserved_value", 24, 8))

PAD = Frame("PAD", 0x00, _DATA)
DATA = Frame("DATA", 0x01, _DATA)
NAK = Frame(
    "NAK",
    0x02,
    (*_SESSION, Field("term_id", 16, 4), Field("term_offset", 20, 4), Field("length", 24, 4)),
)
SM = Frame(
    "SM",
    0x03,
    (
        *_SESSION,
        Field("consumption_term_id", 16, 4),
        Field("consumption_term_offset", 20, 4),
        Field("receiver_window", 24, 4),
        Field("receiver_id", 28, 8),
    ),
)
SM_GROUP_TAG = Field("group_tag", 36, 8)
"""The group tag. An SM contains it if the SM's frame_length is 44."""

ERR = Frame(
    "ERR",
    0x04,
    (
        *_SESSION,
        Field("receiver_id", 16, 8),
        Field("group_tag", 24, 8),
        Field("error_code", 32, 4),
        Field("error_length", 36, 4),
    ),
)
SETUP = Frame(
    "SETUP",
    0x05,
    (
        *_STREAM,
        Field("initial_term_id", 20, 4),
        Field("active_term_id", 24, 4),
        Field("term_length", 28, 4),
        Field("mtu", 32, 4),
        Field("ttl", 36, 4),
    ),
)
RTTM = Frame(
    "RTTM",
    0x06,
    (
        *_SESSION,
        Field("echo_timestamp", 16, 8),
        Field("reception_delta", 24, 8),
        Field("receiver_id", 32, 8),
    ),
)
RES = Frame("RES", 0x07, ())
RES_ENTRY = (
    Field("res_type", 0, 1),
    Field("flags", 1, 1, signed=False),
    Field("udp_port", 2, 2, signed=False),
    Field("age_ms", 4, 4),
)
"""An entry of a RES frame. Offsets are from the start of the entry; address and name follow."""

RES_ADDRESS_LENGTH = {1: 4, 2: 16}
RES_FLAG_SELF = 0x80
RSP_SETUP = Frame("RSP_SETUP", 0x0B, (*_SESSION, Field("response_session_id", 16, 4)))

FRAMES = (PAD, DATA, NAK, SM, ERR, SETUP, RTTM, RES, RSP_SETUP)
BY_TYPE_CODE = {frame.type_code: frame for frame in FRAMES}

assert HEADER_LENGTH == 8
assert DATA.length == DATA_HEADER_LENGTH
