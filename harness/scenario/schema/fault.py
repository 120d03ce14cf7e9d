"""A fault rule: where, what, when, which transmission, which act, how much.

    {id: hole, where: {link: a->b},
     what: {type: DATA, stream: 1001, position: {from: 1MiB, length: 64KiB}}, attempt: 1,
     act: {drop: always}}

For each frame the rules are tried in file order, and the first that fires decides. Everything here
says what was written; `resolve` makes it exact.
"""

from itertools import pairwise
from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field, model_validator

from windtunnel.harness.scenario.schema.act import Act
from windtunnel.harness.scenario.schema.forged import FlagName
from windtunnel.harness.scenario.schema.table import Bytes, Duration, Name, Table, one_or_many

FrameType = Literal["DATA", "PAD", "HEARTBEAT", "SETUP", "SM", "NAK", "RTTM", "ERR", "RSP_SETUP"]
TypeName = Literal[FrameType, "CONTROL", "ANY"]
CONTROL: tuple[FrameType, ...] = ("SETUP", "SM", "NAK", "RTTM", "ERR", "RSP_SETUP")
ANY: tuple[FrameType, ...] = ("DATA", "PAD", "HEARTBEAT", *CONTROL)

COUNT_MAX = 1 << 31
LinkPattern = Annotated[
    str, Field(pattern=r"^(both|(\*|[a-z0-9][a-z0-9-]*)->(\*|[a-z0-9][a-z0-9-]*))$")
]
RANGES_MAX = 100_000


class Where(Table):
    """The links on which a rule looks at frames."""

    links: Annotated[tuple[LinkPattern, ...], BeforeValidator(one_or_many)] = Field(
        alias="link", strict=False, min_length=1
    )
    """A direction such as `a->b`, or a list; `*` for any host; `both` for all directions."""


class Flags(Table):
    """Which flags a frame must have, and which it must not."""

    set: Annotated[tuple[FlagName, ...], BeforeValidator(one_or_many)] = Field(
        default=(), strict=False
    )
    """Flags that are set; default any."""

    clear: Annotated[tuple[FlagName, ...], BeforeValidator(one_or_many)] = Field(
        default=(), strict=False
    )
    """Flags that are not set; default any."""


class Span(Table):
    """One range of many."""

    start: Bytes = Field(alias="from")
    """Position of its first byte."""

    length: Bytes = Field(gt=0)
    """Bytes of the range; a frame matches if it overlaps it."""


class Place(Table):
    """Which part of the stream: ranges, a range again and again, or one special frame."""

    start: Bytes | None = Field(default=None, alias="from")
    """Position of the range's first byte; default 0B."""

    length: Bytes | None = Field(default=None, gt=0)
    """Bytes of the range; a frame matches if it overlaps it. Default with `every`: 1B."""

    every: Bytes | None = Field(default=None, gt=0)
    """Repeat the range after so many bytes."""

    at: Literal["term-start", "term-end", "stream-end"] | None = None
    """The first or the last frame of each term, or the very last frame of the stream."""

    ranges: tuple[Span, ...] | None = Field(
        default=None, strict=False, min_length=1, max_length=RANGES_MAX
    )
    """A list of ranges, in the order of the stream; they may touch and not overlap."""

    @model_validator(mode="after")
    def _one_kind(self) -> "Place":
        ranged = self.start is not None or self.length is not None or self.every is not None
        if [ranged, self.at is not None, self.ranges is not None].count(True) != 1:
            raise ValueError("expected a range (from, length, every), ranges or at, one of them")
        spans = self.ranges or ()
        for before, after in pairwise(spans):
            if before.start + before.length > after.start:
                raise ValueError(
                    f"expected ranges in order and apart, found {after.start}B behind "
                    f"{before.start}B with {before.length}B"
                )
        if ranged and self.length is None and self.every is None:
            raise ValueError("expected the length of the range, or every")
        if self.every is not None and (self.length or 1) > self.every:
            raise ValueError("expected a length of at most `every`")
        return self


class Counted(Table):
    """Some of a row of things that are counted from 1."""

    first: int = Field(default=1, alias="from", ge=1, lt=COUNT_MAX)
    """The first one; default 1."""

    last: int = Field(default=COUNT_MAX - 1, alias="to", ge=1, lt=COUNT_MAX)
    """The last one; default all that follow."""

    every: int = Field(default=1, ge=1, lt=COUNT_MAX)
    """Only each so many-th, beginning with the first; default each."""

    @model_validator(mode="after")
    def _order(self) -> "Counted":
        if self.last < self.first:
            raise ValueError(f"expected from <= to, found {self.first} and {self.last}")
        return self


def _counted(value: object) -> Any:
    return {"from": value, "to": value} if isinstance(value, int) else value


Count = Annotated[Counted, BeforeValidator(_counted)]


class What(Table):
    """The frames to which a rule applies: all that is given must hold."""

    types: Annotated[tuple[TypeName, ...], BeforeValidator(one_or_many)] = Field(
        alias="type", strict=False, min_length=1
    )
    """One frame type or a list. DATA does not include HEARTBEAT; CONTROL is every type without
    DATA, PAD and HEARTBEAT; ANY is every type."""

    streams: Annotated[tuple[int, ...] | None, BeforeValidator(one_or_many)] = Field(
        default=None, alias="stream", strict=False, min_length=1
    )
    """Stream ids; default all of the scenario."""

    session: int | None = Field(default=None, ge=1, le=255)
    """Only the n-th session that opened on its stream, from 1; default all."""

    flags: Flags = Flags()
    """Flags of the frame; default any."""

    position: Place | None = None
    """Where in the stream; of an SM what is consumed, of a NAK what is missing. Default
    anywhere."""

    order: Count | None = None
    """Which of its type, stream and link, in order of appearance from 1; only for frames that are
    not DATA or PAD. Default each."""

    @property
    def frame_types(self) -> tuple[FrameType, ...]:
        """The types with their groups spelled out."""
        found: list[FrameType] = []
        for each in self.types:
            if each == "CONTROL":
                found += CONTROL
            elif each == "ANY":
                found += ANY
            else:
                found.append(each)
        return tuple(dict.fromkeys(found))


class Reached(Table):
    """A point of a stream, reached when a frame that ends there or later has come by."""

    stream_id: int = Field(alias="stream", ge=-(1 << 31), lt=1 << 31)
    """A stream id of the scenario."""

    position: Bytes
    """Counted from the beginning of the stream."""


class When(Table):
    """The time in which a rule is awake. Time counts from the first DATA frame."""

    after_ns: Duration = Field(default=0, alias="after")
    """How long after the beginning, or after `reached`; default at once."""

    for_ns: Duration = Field(default=0, alias="for")
    """For how long; default for ever."""

    every_ns: Duration = Field(default=0, alias="every")
    """Again after so long; default once."""

    reached: Reached | None = None
    """Begin when this point of a stream has come by."""

    until: Reached | None = None
    """End when this point of a stream has come by."""

    @model_validator(mode="after")
    def _pulses(self) -> "When":
        if self.every_ns and not 0 < self.for_ns < self.every_ns:
            raise ValueError("expected `for` above 0 and below `every`")
        return self


class Fault(Table):
    """One rule; for each frame rules are tried in file order, and the first that fires decides."""

    id: Name
    """Unique in the scenario."""

    where: Where
    what: What
    when: When | None = None
    """Default always."""

    attempt: Count | None = None
    """Which passages of the same position, from 1: the first is its transmission, the others are
    retransmissions. Only for DATA and PAD. Default each."""

    act: Act
