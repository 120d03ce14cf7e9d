"""The actions of fault rules: what a rule does to the frames that it selects.

    drop  duplicate  hold  swap  displace  corrupt  truncate  inject  readdress

Each act has a share, or a loss model, of the matching frames to which it is applied, and its own
parameters. Acts on time and order leave frames unchanged; acts on content change bytes and correct
lengths and checksums.
"""

from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field, field_validator, model_validator

from windtunnel.harness.scenario.schema.forged import Forged
from windtunnel.harness.scenario.schema.loss_model import LossModel, share_ppb
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
    """Accept a share, or the table of a Markov chain, in place of the act's table."""
    is_chain = isinstance(value, dict) and "share" not in value and len(value) > 1
    return {"share": value} if not isinstance(value, dict) or is_chain else value


class Until(Table):
    """An event that ends a hold; exactly one key."""

    frames: int | None = Field(default=None, ge=1, le=4096)
    """This number of further DATA and PAD frames of the stream have passed."""

    advance: Bytes | None = Field(default=None, gt=0)
    """The stream has advanced this far beyond the frame."""

    consumed: Literal[True] | None = None
    """A status message of the receiver acknowledges the frame."""

    repeated: Literal[True] | None = None
    """The same position has been retransmitted."""

    @model_validator(mode="after")
    def _exactly_one(self) -> "Until":
        if len(self.model_fields_set) != 1:
            raise ValueError("expected exactly one of frames, advance, consumed, repeated")
        return self


class Hold(Table):
    """Delay some frames: for a fixed time, or until an event."""

    share: LossModel
    """Share of the matching frames in per cent, or a Markov chain."""

    delay_ns: Duration | None = Field(default=None, alias="for", gt=0, le=DELAY_NS_MAX)
    """Duration; up to 10s."""

    until: Until | None = None
    """Event that releases them."""

    at_most_ns: Duration | None = Field(default=None, alias="at_most", gt=0, le=DELAY_NS_MAX)
    """Maximum duration, if the event does not occur; up to 10s."""

    @model_validator(mode="after")
    def _one_end(self) -> "Hold":
        if (self.delay_ns is None) == (self.until is None):
            raise ValueError("expected exactly one of `for` and `until`")
        if (self.until is None) != (self.at_most_ns is None):
            raise ValueError("expected at_most together with `until`")
        return self


class Duplicate(Table):
    """Send some frames more than once."""

    share: LossModel
    """Share of the matching frames in per cent, or a Markov chain."""

    copies: int = Field(default=1, ge=1, le=4)
    """Number of duplicates; default 1."""

    delay_ns: Duration | None = Field(default=None, alias="for", gt=0, le=DELAY_NS_MAX)
    """Delay of the duplicates; default right after the datagram."""

    until: Until | None = None
    """Event that releases the duplicates."""

    at_most_ns: Duration | None = Field(default=None, alias="at_most", gt=0, le=DELAY_NS_MAX)
    """Maximum delay, if the event does not occur; up to 10s."""

    @model_validator(mode="after")
    def _one_end(self) -> "Duplicate":
        if self.delay_ns is not None and self.until is not None:
            raise ValueError("expected `for` or `until`, found both")
        if (self.until is None) != (self.at_most_ns is None):
            raise ValueError("expected at_most together with `until`")
        return self


class Displace(Table):
    """Reorder frames: send each after several later frames of its stream."""

    share: LossModel
    """Share of the matching frames in per cent, or a Markov chain."""

    by: int = Field(ge=1, le=4096)
    """Number of DATA and PAD frames of the stream that pass first."""

    at_most_ns: Duration = Field(default=100_000_000, alias="at_most", gt=0, le=DELAY_NS_MAX)
    """Maximum delay, if too few frames follow; default 100ms."""


class Corrupt(Table):
    """Flip bits and correct the checksum, so that the receiver gets the damaged frame."""

    share: LossModel
    """Share of the matching frames in per cent, or a Markov chain."""

    field: FieldName
    """Field of the header, or the payload."""

    bits: int = Field(default=1, ge=1, le=8)
    """Number of adjacent bits; default 1."""


class Truncate(Table):
    """Truncate datagrams, with corrected lengths and checksum."""

    share: LossModel
    """Share of the matching frames in per cent, or a Markov chain."""

    to: Bytes
    """Length to which frames are cut, at least 1B; shorter frames are not changed."""

    @field_validator("to")
    @classmethod
    def _leaves_something(cls, value: int) -> int:
        # An empty datagram has no frame to identify it: neither relay nor judge could count it.
        if value < 1:
            raise ValueError(f"expected at least 1B, found {value}B")
        return value


class Inject(Table):
    """Send forged frames right after some frames."""

    share: LossModel = Field(default=BILLION, validate_default=False)
    """Share of the matching frames that are followed by forged ones; default all."""

    frames: tuple[Forged, ...] = Field(strict=False, min_length=1, max_length=8)
    """Frames to send, each in a datagram of its own."""


class Readdress(Table):
    """Change the source port of datagrams, as a NAT router does that has lost its mapping."""

    source_port: int = Field(ge=1, le=65_535)
    """The new source port; datagrams sent to it are returned to the original port."""


class Act(Table):
    """What happens to the matching frames; exactly one key."""

    drop: LossModel | None = None
    """Share of frames to drop."""

    duplicate: Annotated[Duplicate | None, BeforeValidator(_with_share)] = None
    """Frames to duplicate."""

    hold: Hold | None = None
    """Frames to delay."""

    swap: LossModel | None = None
    """Share of frames to send right after the next frame of their stream and link."""

    displace: Displace | None = None
    """Frames to send after several later ones."""

    corrupt: Corrupt | None = None
    """Frames to damage."""

    truncate: Truncate | None = None
    """Frames to truncate."""

    inject: Inject | None = None
    """Frames to follow by forged ones."""

    readdress: Readdress | None = None
    """Datagrams whose source port is changed: all that match."""

    @model_validator(mode="after")
    def _exactly_one(self) -> "Act":
        given = [name for name in ACTIONS if getattr(self, name) is not None]
        if len(given) != 1 or len(self.model_fields_set) != 1:
            raise ValueError(f"expected exactly one of {', '.join(ACTIONS)}")
        return self

    @property
    def action(self) -> Action:
        """The name of the act."""
        return next(name for name in ACTIONS if getattr(self, name) is not None)

    @property
    def loss_model(self) -> Any:
        """The share or Markov chain of matching frames to act on, as written."""
        act = getattr(self, self.action)
        return getattr(act, "share", BILLION if self.readdress else act)

    @property
    def share_ppb(self) -> int:
        """The long-run share of frames, in parts per billion."""
        return share_ppb(self.loss_model)
