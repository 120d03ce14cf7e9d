"""Fault rules as written in a scenario: links, frames, active time, transmission attempts, and the
action.

    {id: gap, where: {link: a->b},
     what: {type: DATA, stream: 1001, position: {from: 1MiB, length: 64KiB}}, attempt: 1,
     act: {drop: always}}

For each frame, the rules are evaluated in file order, and only the first rule that applies to the
frame is executed. `resolve` converts these classes to the form that the middlebox compiles.
"""

from itertools import pairwise
from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field, model_validator

from windtunnel.harness.scenario.resolved.link_case import LINKS_MAX
from windtunnel.harness.scenario.schema.act import Act
from windtunnel.harness.scenario.schema.forged import FLAG_BITS, FlagName
from windtunnel.harness.scenario.schema.table import Bytes, Duration, Name, Table, one_or_many
from windtunnel.harness.scenario.schema.traffic import TRAFFIC_MAX

FrameType = Literal["DATA", "PAD", "HEARTBEAT", "SETUP", "SM", "NAK", "RTTM", "ERR", "RSP_SETUP"]
TypeName = Literal[FrameType, "CONTROL", "ANY"]
CONTROL_TYPES: tuple[FrameType, ...] = ("SETUP", "SM", "NAK", "RTTM", "ERR", "RSP_SETUP")
ALL_TYPES: tuple[FrameType, ...] = ("DATA", "PAD", "HEARTBEAT", *CONTROL_TYPES)

COUNT_MAX = 1 << 31
LinkPattern = Annotated[
    str, Field(pattern=r"^(both|(\*|[a-z0-9][a-z0-9-]*)->(\*|[a-z0-9][a-z0-9-]*))$")
]
RANGES_MAX = 50_000


class Where(Table):
    """The link directions to which a rule applies."""

    links: Annotated[tuple[LinkPattern, ...], BeforeValidator(one_or_many)] = Field(
        alias="link", strict=False, min_length=1, max_length=2 * LINKS_MAX
    )
    """A direction such as `a->b`, or a list. `*` stands for any host, `both` for all directions."""

    shared: bool = False
    """Whether the rule acts before a multicast packet is copied to these links, so that it affects
    the same frames on all of them. They have one sender, and the rule precedes rules for single
    links. Default: false, so each direction has draws of its own.
    """


class Flags(Table):
    """Flags that a frame must have, and flags that it must not have."""

    set: Annotated[tuple[FlagName, ...], BeforeValidator(one_or_many)] = Field(
        default=(), strict=False, max_length=len(FLAG_BITS)
    )
    """Flags that must be set. Default: none."""

    clear: Annotated[tuple[FlagName, ...], BeforeValidator(one_or_many)] = Field(
        default=(), strict=False, max_length=len(FLAG_BITS)
    )
    """Flags that must not be set. Default: none."""


class PositionRange(Table):
    """A range of stream positions."""

    start: Bytes = Field(alias="from")
    """Position of the range's first byte."""

    length: Bytes = Field(gt=0)
    """Length of the range. A frame matches if it overlaps the range."""


class PositionFilter(Table):
    """Selects frames by stream position: in ranges, in a repeated range, or at the ends of terms or
    of the stream.
    """

    start: Bytes | None = Field(default=None, alias="from")
    """Position of the range's first byte. Default: 0B."""

    length: Bytes | None = Field(default=None, gt=0)
    """Length of the range. A frame matches if it overlaps the range. Default with `every`: 1B."""

    every: Bytes | None = Field(default=None, gt=0)
    """Period with which the range is repeated."""

    at: Literal["term-start", "term-end", "stream-end"] | None = None
    """The first or last frame of each term, or the last frame of the stream."""

    ranges: tuple[PositionRange, ...] | None = Field(
        default=None, strict=False, min_length=1, max_length=RANGES_MAX
    )
    """Ranges in ascending order. They may be adjacent but must not overlap."""

    @model_validator(mode="after")
    def _one_kind(self) -> "PositionFilter":
        ranged = self.start is not None or self.length is not None or self.every is not None
        if [ranged, self.at is not None, self.ranges is not None].count(True) != 1:
            raise ValueError("expected exactly one of: a range (from, length, every), ranges, at")
        spans = self.ranges or ()
        for before, after in pairwise(spans):
            if before.start + before.length > after.start:
                raise ValueError(
                    "expected disjoint ranges in ascending order, but the range at "
                    f"{after.start}B follows the range of {before.length}B at {before.start}B"
                )
        if ranged and self.length is None and self.every is None:
            raise ValueError("expected `length` or `every`")
        if self.every is not None and (self.length or 1) > self.every:
            raise ValueError("expected `length` to be at most `every`")
        return self


class Counted(Table):
    """A selection of transmission attempts or frames by number, counted from 1."""

    first: int = Field(default=1, alias="from", ge=1, lt=COUNT_MAX)
    """First number. Default: 1."""

    last: int = Field(default=COUNT_MAX - 1, alias="to", ge=1, lt=COUNT_MAX)
    """Last number. Default: no limit."""

    every: int = Field(default=1, ge=1, lt=COUNT_MAX)
    """Select only every n-th number, starting with the first. Default: 1."""

    @model_validator(mode="after")
    def _order(self) -> "Counted":
        if self.last < self.first:
            raise ValueError(f"expected `from` <= `to`, found {self.first} and {self.last}")
        return self


def _counted(value: object) -> Any:
    return {"from": value, "to": value} if isinstance(value, int) else value


Count = Annotated[Counted, BeforeValidator(_counted)]


class What(Table):
    """The frames to which a rule applies. All given conditions must hold."""

    types: Annotated[tuple[TypeName, ...], BeforeValidator(one_or_many)] = Field(
        alias="type", strict=False, min_length=1, max_length=len(ALL_TYPES)
    )
    """One frame type or a list. DATA does not include HEARTBEAT. CONTROL is every type except DATA,
    PAD and HEARTBEAT. ANY is every type.
    """

    streams: Annotated[tuple[int, ...] | None, BeforeValidator(one_or_many)] = Field(
        default=None, alias="stream", strict=False, min_length=1, max_length=TRAFFIC_MAX
    )
    """Stream ids. Default: all streams of the scenario."""

    session: int | None = Field(default=None, ge=1, le=255)
    """Select only the n-th session of the stream, counted from 1. Default: all sessions."""

    flags: Flags = Flags()
    """Flags of the frame. Default: any."""

    position: PositionFilter | None = None
    """Positions in the stream. For an SM the consumed position is used, for a NAK the missing
    range. Default: any.
    """

    order: Count | None = None
    """Numbers of frames with the same type, stream and link, counted from 1 in order of appearance.
    Only for frames other than DATA and PAD. Default: all.
    """

    @property
    def frame_types(self) -> tuple[FrameType, ...]:
        """Return the frame types, with groups such as CONTROL expanded."""
        found: list[FrameType] = []
        for each in self.types:
            if each == "CONTROL":
                found += CONTROL_TYPES
            elif each == "ANY":
                found += ALL_TYPES
            else:
                found.append(each)
        return tuple(dict.fromkeys(found))


class Reached(Table):
    """A stream position, which is reached when a frame that ends there or later has passed."""

    stream_id: int = Field(alias="stream", ge=-(1 << 31), lt=1 << 31)
    """A stream id of the scenario."""

    position: Bytes
    """Position relative to the start of the stream."""


class When(Table):
    """The time during which a rule is active, relative to the first DATA frame."""

    after_ns: Duration = Field(default=0, alias="after")
    """Delay after the first DATA frame, or after `reached`. Default: 0."""

    for_ns: Duration = Field(default=0, alias="for")
    """Duration. Default: no limit."""

    every_ns: Duration = Field(default=0, alias="every")
    """Period of repetition. Default: no repetition."""

    reached: Reached | None = None
    """Start when this stream position has passed."""

    until: Reached | None = None
    """End when this stream position has passed."""

    @model_validator(mode="after")
    def _pulses(self) -> "When":
        if self.every_ns and not 0 < self.for_ns < self.every_ns:
            raise ValueError("expected `for` above 0 and below `every`")
        return self


class Fault(Table):
    """A fault rule. For each frame, only the first rule that applies is executed."""

    id: Name
    """Name of the rule, unique in the scenario."""

    where: Where
    what: What
    when: When | None = None
    """The time during which the rule is active. Default: always."""

    attempt: Count | None = None
    """Transmissions of the same position, counted from 1. All but the first are retransmissions.
    Only for DATA and PAD. Default: all.
    """

    act: Act
