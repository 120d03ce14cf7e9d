"""Forged frames: frames that the middlebox injects into a live stream.

    {type: PAD, place: {term_end: -64B}, length: 96B}     crosses the end of its term
    {type: DATA, session: other, payload: 100B}           belongs to a session that does not exist
    {type: SM, place: {advance: -1MiB}, window: 64KiB}    an outdated status message

Omitted values are those of the frame that it follows, so a forged frame is valid except for the
given values. The bytes are written by `harness.dissect.frames.forged_frames`.
"""

from typing import Annotated, Literal

from pydantic import BeforeValidator, Field, model_validator

from windtunnel.harness.scenario.schema.table import Bytes, SignedBytes, Table, one_or_many

ForgedType = Literal["DATA", "PAD", "HEARTBEAT", "SETUP", "SM", "NAK", "RTTM", "ERR"]
FlagName = Literal["begin", "end", "eos", "revoked", "group", "send-setup", "receiver-eos", "reply"]
PAYLOAD_MAX = 1 << 16
FRAME_LENGTH = 32
"""Length of a DATA frame without payload."""
FLAG_BITS: dict[FlagName, int] = {
    "begin": 0x80,
    "end": 0x40,
    "eos": 0x20,
    "revoked": 0x10,
    "group": 0x40,
    "send-setup": 0x80,
    "receiver-eos": 0x40,
    "reply": 0x80,
}
"""Source: specification of Aeron 1.53, section 1; the meaning depends on the frame type."""


def flag_bits(names: tuple[FlagName, ...]) -> int:
    """Return the flags byte with these flags set."""
    found = 0
    for name in names:
        found |= FLAG_BITS[name]
    return found


class ForgedPlace(Table):
    """The position that a forged frame claims; at most one of advance and term_end."""

    advance: SignedBytes | None = None
    """Distance after the frame that it follows; before it, if negative."""

    term_end: SignedBytes | None = None
    """Distance from the end of the preceding frame's term; before the end, if negative."""

    shift: SignedBytes = 0
    """Added to the resulting term offset, even if the sum is invalid."""

    term: int = Field(default=0, ge=-(1 << 31), lt=1 << 31)
    """Added to the resulting term id."""

    @model_validator(mode="after")
    def _one_anchor(self) -> "ForgedPlace":
        if self.advance is not None and self.term_end is not None:
            raise ValueError("expected advance or term_end, found both")
        return self


class Forged(Table):
    """One forged frame."""

    type: ForgedType
    """The frame type."""

    place: ForgedPlace = ForgedPlace()
    """Its term id and offset (of an SM: the consumed position); default those of the last frame."""

    session: Literal["same", "other"] = "same"
    """Its session; `other` is a session that does not exist."""

    stream: Literal["same", "other"] = "same"
    """Its stream; `other` is a stream without subscribers."""

    receiver: Literal["same", "other"] = "same"
    """The receiver id of an SM, RTTM or ERR; `same` is possible only after an SM."""

    version: int = Field(default=0, ge=0, le=255)
    """Protocol version; drivers accept 0."""

    flags: Annotated[tuple[FlagName, ...] | None, BeforeValidator(one_or_many)] = Field(
        default=None, strict=False, max_length=len(FLAG_BITS)
    )
    """Flags to set; default begin and end for DATA and PAD, else none."""

    length: Bytes | None = None
    """Value of frame_length (for a NAK: of the missing length); default the correct one."""

    payload: Bytes = 0
    """Payload length of a DATA frame; default 0B."""

    holds: Literal["filler", "frames"] = "filler"
    """Payload content: bytes 0xFD, or empty DATA frames that claim the start of the term."""

    window: Bytes = 1 << 17
    """The receiver window of an SM; default 128KiB."""

    @model_validator(mode="after")
    def _bounds(self) -> "Forged":
        if self.payload > PAYLOAD_MAX:
            raise ValueError(f"expected a payload of at most {PAYLOAD_MAX}B, found {self.payload}B")
        if self.payload and self.type != "DATA":
            raise ValueError(f"a {self.type} frame has no payload")
        if self.holds == "frames" and (not self.payload or self.payload % FRAME_LENGTH):
            raise ValueError(
                f"expected a payload of whole frames of {FRAME_LENGTH}B, found {self.payload}B"
            )
        return self
