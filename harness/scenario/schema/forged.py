"""A frame that nobody sent: what the middlebox writes into a live stream.

    {type: PAD, place: {term_end: -64B}, length: 96B}     crosses the end of its term
    {type: DATA, session: other, payload: 100B}           of a session that nobody opened
    {type: SM, place: {advance: -1MiB}, window: 64KiB}    a status message of long ago

What is left out is as in the frame that it follows, so a forged frame is genuine but for what it
says. Only words are checked here; the bytes are made by `harness.dissect.frames.forged_frames`.
"""

from typing import Annotated, Literal

from pydantic import BeforeValidator, Field, model_validator

from windtunnel.harness.scenario.schema.table import Bytes, SignedBytes, Table, one_or_many

ForgedType = Literal["DATA", "PAD", "HEARTBEAT", "SETUP", "SM", "NAK", "RTTM", "ERR"]
FlagName = Literal["begin", "end", "eos", "revoked", "group", "send-setup", "receiver-eos", "reply"]
PAYLOAD_MAX = 1 << 16
FRAME_LENGTH = 32
"""Of a DATA frame without payload."""
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
"""Source: specification of Aeron 1.53, section 1; a bit means what its frame's type makes of it."""


def flag_bits(names: tuple[FlagName, ...]) -> int:
    """The flags byte in which these are set."""
    found = 0
    for name in names:
        found |= FLAG_BITS[name]
    return found


class ForgedPlace(Table):
    """Where in the stream a forged frame says it is: exactly one key, then the shift."""

    advance: SignedBytes | None = None
    """So far behind (or, negative, before) the frame that it follows."""

    term_end: SignedBytes | None = None
    """So far from the end of the term of the frame that it follows; negative is before."""

    shift: SignedBytes = 0
    """Added to the term offset at last, whether or not that can be."""

    term: int = Field(default=0, ge=-(1 << 31), lt=1 << 31)
    """Added to the term id at last."""

    @model_validator(mode="after")
    def _one_anchor(self) -> "ForgedPlace":
        if self.advance is not None and self.term_end is not None:
            raise ValueError("expected advance or term_end, found both")
        return self


class Forged(Table):
    """One forged frame."""

    type: ForgedType
    """The kind of frame."""

    place: ForgedPlace = ForgedPlace()
    """Its term id and offset (of an SM: what was consumed); default those of the frame before."""

    session: Literal["same", "other"] = "same"
    """Its session; `other` is one that nobody has opened."""

    stream: Literal["same", "other"] = "same"
    """Its stream; `other` is one that nobody subscribes to."""

    receiver: Literal["same", "other"] = "same"
    """Whose SM, RTTM or ERR it claims to be; `same` follows an SM only."""

    version: int = Field(default=0, ge=0, le=255)
    """Of the protocol; drivers know 0."""

    flags: Annotated[tuple[FlagName, ...] | None, BeforeValidator(one_or_many)] = Field(
        default=None, strict=False
    )
    """Names of the flags that are set; default begin and end for DATA and PAD, else none."""

    length: Bytes | None = None
    """What frame_length (of a NAK: the missing length) says; default the truth."""

    payload: Bytes = 0
    """Bytes of payload of a DATA frame; default none."""

    holds: Literal["filler", "frames"] = "filler"
    """What the payload is: bytes 0xFD, or empty DATA frames that claim the start of the term."""

    window: Bytes = 1 << 17
    """The receiver window that an SM offers; default 128KiB."""

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
