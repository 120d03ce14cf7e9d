"""What a fault rule does to the frames that it strikes.

    drop  duplicate  hold  swap  displace  corrupt  truncate  inject  readdress

Each act says how much of what matches it strikes (`chance`), and what it needs besides. Acts on
time and order keep frames whole; acts on content change bytes and make lengths and checksums right
again.
"""

from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field, field_validator, model_validator

from windtunnel.harness.scenario.schema.forged import Forged
from windtunnel.harness.scenario.schema.loss_model import Much, share_ppb
from windtunnel.harness.scenario.schema.table import Bytes, Duration, Table
from windtunnel.harness.scenario.schema.units import BILLION

Action = Literal[
    "drop", "duplicate", "hold", "swap", "displace", "corrupt", "truncate", "inject", "readdress"
]
ACTIONS: tuple[Action, ...] = (
    *("drop", "duplicate", "hold", "swap", "displace"),
    *("corrupt", "truncate", "inject", "readdress"),
)

FieldName = Literal[
    "frame-length",
    "version",
    "flags",
    "type",
    "term-offset",
    "session-id",
    "stream-id",
    "term-id",
    "reserved",
    "payload",
]
DELAY_NS_MAX = 10_000_000_000


def _with_share(value: object) -> Any:
    """An act whose table may be no more than its share."""
    is_chain = isinstance(value, dict) and "share" not in value and len(value) > 1
    return {"share": value} if not isinstance(value, dict) or is_chain else value


class Until(Table):
    """An event that ends a hold: exactly one key."""

    frames: int | None = Field(default=None, ge=1, le=4096)
    """So many further DATA and PAD frames of the stream have passed."""

    advance: Bytes | None = Field(default=None, gt=0)
    """The stream has come by so far behind the frame."""

    consumed: Literal[True] | None = None
    """The receiver's status message says that it needs the frame no more."""

    repeated: Literal[True] | None = None
    """The same position has passed again."""

    @model_validator(mode="after")
    def _exactly_one(self) -> "Until":
        if len(self.model_fields_set) != 1:
            raise ValueError("expected exactly one of frames, advance, consumed, repeated")
        return self


class Hold(Table):
    """Keep some frames back: for a time, or until something happens."""

    share: Much
    """How much of what matches: per cent, or a chain."""

    delay_ns: Duration | None = Field(default=None, alias="for", gt=0, le=DELAY_NS_MAX)
    """How long; up to 10s."""

    until: Until | None = None
    """What sets them free."""

    at_most_ns: Duration | None = Field(default=None, alias="at_most", gt=0, le=DELAY_NS_MAX)
    """They leave after so long, even if it never happens; up to 10s."""

    @model_validator(mode="after")
    def _one_end(self) -> "Hold":
        if (self.delay_ns is None) == (self.until is None):
            raise ValueError("expected `for` or `until`, one of the two")
        if (self.until is None) != (self.at_most_ns is None):
            raise ValueError("expected at_most together with `until`")
        return self


class Duplicate(Table):
    """Let some frames leave more than once."""

    share: Much
    """How much of what matches: per cent, or a chain."""

    copies: int = Field(default=1, ge=1, le=4)
    """How many more; default 1."""

    delay_ns: Duration | None = Field(default=None, alias="for", gt=0, le=DELAY_NS_MAX)
    """The copies leave so much later; default right behind the datagram."""

    until: Until | None = None
    """What sets the copies free."""

    at_most_ns: Duration | None = Field(default=None, alias="at_most", gt=0, le=DELAY_NS_MAX)
    """The copies leave after so long, even if it never happens; up to 10s."""

    @model_validator(mode="after")
    def _one_end(self) -> "Duplicate":
        if self.delay_ns is not None and self.until is not None:
            raise ValueError("expected `for` or `until`, found both")
        if (self.until is None) != (self.at_most_ns is None):
            raise ValueError("expected at_most together with `until`")
        return self


class Displace(Table):
    """Let others of the stream overtake."""

    share: Much
    """How much of what matches: per cent, or a chain."""

    by: int = Field(ge=1, le=4096)
    """How many DATA and PAD frames of the stream."""

    at_most_ns: Duration = Field(default=100_000_000, alias="at_most", gt=0, le=DELAY_NS_MAX)
    """They leave after so long, even if too few follow; default 100ms."""


class Corrupt(Table):
    """Flip bits and make the checksum right again, so that the damage arrives."""

    share: Much
    """How much of what matches: per cent, or a chain."""

    field: FieldName
    """Where: a field of the header, or the payload."""

    bits: int = Field(default=1, ge=1, le=8)
    """How many neighbouring bits; default 1."""


class Truncate(Table):
    """Cut datagrams off, with lengths and checksum made right again."""

    share: Much
    """How much of what matches: per cent, or a chain."""

    to: Bytes
    """What is left of the frame, at least 1B; shorter ones pass as they are."""

    @field_validator("to")
    @classmethod
    def _leaves_something(cls, value: int) -> int:
        # An empty datagram is nobody's: neither the relay's weather nor the judge could count it.
        if value < 1:
            raise ValueError(f"expected at least 1B, found {value}B")
        return value


class Inject(Table):
    """Send forged frames right behind some frames."""

    share: Much = Field(default=BILLION, validate_default=False)
    """How much of what matches is followed; default all."""

    frames: tuple[Forged, ...] = Field(strict=False, min_length=1, max_length=8)
    """What is sent, each in a datagram of its own."""


class Readdress(Table):
    """Let datagrams come from another port, as behind a router that forgot who they were."""

    source_port: int = Field(ge=1, le=65_535)
    """The port they seem to come from; answers to it find their way back."""


class Act(Table):
    """What happens to the matching frames: exactly one key."""

    drop: Much | None = None
    """How many never leave."""

    duplicate: Annotated[Duplicate | None, BeforeValidator(_with_share)] = None
    """How many leave twice."""

    hold: Hold | None = None
    """Frames that leave late."""

    swap: Much | None = None
    """How many leave right after the next one of their stream and link."""

    displace: Displace | None = None
    """Frames that several others overtake."""

    corrupt: Corrupt | None = None
    """Frames that leave damaged."""

    truncate: Truncate | None = None
    """Frames that leave shorter."""

    inject: Inject | None = None
    """Frames that are followed by forged ones."""

    readdress: Readdress | None = None
    """Datagrams that seem to come from somewhere else: all that match."""

    @model_validator(mode="after")
    def _exactly_one(self) -> "Act":
        given = [name for name in ACTIONS if getattr(self, name) is not None]
        if len(given) != 1 or len(self.model_fields_set) != 1:
            raise ValueError(f"expected exactly one of {', '.join(ACTIONS)}")
        return self

    @property
    def action(self) -> Action:
        """The name of the one act."""
        return next(name for name in ACTIONS if getattr(self, name) is not None)

    @property
    def amount(self) -> Any:
        """How much of what matches is struck, as written."""
        act = getattr(self, self.action)
        return getattr(act, "share", BILLION if self.readdress else act)

    @property
    def share_ppb(self) -> int:
        """The long-run share of frames, in parts per billion."""
        return share_ppb(self.amount)
