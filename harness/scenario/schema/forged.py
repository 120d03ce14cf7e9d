"""Forged frames: frames that the middlebox injects into a live stream.

    {type: PAD, place: {term_end: -64B}, length: 96B}     crosses the end of its term
    {type: DATA, session: other, payload: 100B}           belongs to a session that does not exist
    {type: SM, place: {advance: -1MiB}, window: 64KiB}    an outdated status message

A forged frame takes omitted values from the frame that it follows, so it is valid except for the
given values. `harness.dissect.frames.forged_frames` writes the bytes.
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
"""Bits of each flag, whose meaning depends on the frame type. Source: specification of Aeron 1.53,
section 1.
"""


def flag_bits(names: tuple[FlagName, ...]) -> int:
    """Return the flags byte in which these flags are set."""
    found = 0
    for name in names:
        found |= FLAG_BITS[name]
    return found


class ForgedPlace(Table):
    """The position that a forged frame claims. At most one of advance and term_end is allowed."""

    advance: SignedBytes | None = None
    """Distance from the preceding frame. A negative value is before that frame."""

    term_end: SignedBytes | None = None
    """Distance from the end of the preceding frame's term. A negative value is before the end."""

    shift: SignedBytes = 0
    """Number of bytes added to the resulting term offset, even if this makes it invalid."""

    term: int = Field(default=0, ge=-(1 << 31), lt=1 << 31)
    """Number added to the resulting term id."""

    @model_validator(mode="after")
    def _one_anchor(self) -> "ForgedPlace":
        if self.advance is not None and self.term_end is not None:
            raise ValueError("advance and term_end cannot be combined: remove one of them")
        return self


class Forged(Table):
    """A forged frame as described in a scenario file."""

    type: ForgedType
    """Type of the frame."""

    place: ForgedPlace = ForgedPlace()
    """Term id and offset, or consumed position of an SM. Default: those of the preceding frame."""

    session: Literal["same", "other"] = "same"
    """`same` as the preceding frame, or `other` for a session that does not exist."""

    stream: Literal["same", "other"] = "same"
    """`same` as the preceding frame, or `other` for a stream without subscribers."""

    receiver: Literal["same", "other"] = "same"
    """Receiver id of an SM, RTTM or ERR. `same` is possible only after an SM."""

    version: int = Field(default=0, ge=0, le=255)
    """Protocol version. Drivers accept 0."""

    flags: Annotated[tuple[FlagName, ...] | None, BeforeValidator(one_or_many)] = Field(
        default=None, strict=False, max_length=len(FLAG_BITS)
    )
    """Flags to set. Default: begin and end for DATA and PAD, else none."""

    length: Bytes | None = None
    """Value of frame_length, or the missing length for a NAK. Default: the correct value."""

    payload: Bytes = 0
    """Payload length of a DATA frame. Default: 0B."""

    holds: Literal["filler", "frames"] = "filler"
    """Payload content: bytes 0xFD, or empty DATA frames that claim to be at the start of the term.
    """

    window: Bytes = 1 << 17
    """Receiver window of an SM. Default: 128KiB."""

    @model_validator(mode="after")
    def _bounds(self) -> "Forged":
        if self.payload > PAYLOAD_MAX:
            raise ValueError(f"expected a payload of at most {PAYLOAD_MAX}B, found {self.payload}B")
        if self.payload and self.type != "DATA":
            raise ValueError(f"{self.type} frames have no payload: remove it")
        if self.holds == "frames" and (not self.payload or self.payload % FRAME_LENGTH):
            raise ValueError(
                f"expected a payload of one or more {FRAME_LENGTH}B frames, found {self.payload}B"
            )
        return self
