"""The actions of fault rules: what a rule does to the frames that it selects.

    drop  duplicate  hold  swap  displace  corrupt  truncate  inject  readdress

Each action has its parameters and a share or loss model, which selects from the matching frames.
Actions on time and order leave frames unchanged. Actions on content change bytes, and correct
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
    """Convert the short form of an action, which is only a share or a Markov chain, to a table with
    the key `share`.
    """
    is_chain = isinstance(value, dict) and "share" not in value and len(value) > 1
    return {"share": value} if not isinstance(value, dict) or is_chain else value


class Until(Table):
    """An event that releases held frames. Exactly one key is required."""

    frames: int | None = Field(default=None, ge=1, le=4096)
    """The frame is released after this many DATA and PAD frames of its stream have passed."""

    advance: Bytes | None = Field(default=None, gt=0)
    """The frame is released when its stream has advanced this far past the frame."""

    consumed: Literal[True] | None = None
    """The frame is released when a status message acknowledges it."""

    repeated: Literal[True] | None = None
    """The frame is released when its position has been retransmitted."""

    @model_validator(mode="after")
    def _exactly_one(self) -> "Until":
        if len(self.model_fields_set) != 1:
            raise ValueError("expected exactly one of frames, advance, consumed, repeated")
        return self


class Hold(Table):
    """Delays frames for a fixed time, or until an event."""

    share: LossModel
    """Share of the matching frames in percent, or a Markov chain."""

    delay_ns: Duration | None = Field(default=None, alias="for", gt=0, le=DELAY_NS_MAX)
    """Duration of the delay; at most 10s."""

    until: Until | None = None
    """Event that releases the frames."""

    at_most_ns: Duration | None = Field(default=None, alias="at_most", gt=0, le=DELAY_NS_MAX)
    """Maximum delay if the event does not occur; at most 10s."""

    @model_validator(mode="after")
    def _one_end(self) -> "Hold":
        if (self.delay_ns is None) == (self.until is None):
            raise ValueError("expected exactly one of `for` and `until`")
        if (self.until is None) != (self.at_most_ns is None):
            raise ValueError("expected both or neither of `until` and `at_most`")
        return self


class Duplicate(Table):
    """Sends frames more than once."""

    share: LossModel
    """Share of the matching frames in percent, or a Markov chain."""

    copies: int = Field(default=1, ge=1, le=4)
    """Number of duplicates. Default: 1."""

    delay_ns: Duration | None = Field(default=None, alias="for", gt=0, le=DELAY_NS_MAX)
    """Delay of the duplicates. Default: they follow the original at once."""

    until: Until | None = None
    """Event that releases the duplicates."""

    at_most_ns: Duration | None = Field(default=None, alias="at_most", gt=0, le=DELAY_NS_MAX)
    """Maximum delay if the event does not occur; at most 10s."""

    @model_validator(mode="after")
    def _one_end(self) -> "Duplicate":
        if self.delay_ns is not None and self.until is not None:
            raise ValueError("`for` and `until` cannot be combined: remove one of them")
        if (self.until is None) != (self.at_most_ns is None):
            raise ValueError("expected both or neither of `until` and `at_most`")
        return self


class Displace(Table):
    """Reorders frames: each selected frame is sent after several later frames of its stream."""

    share: LossModel
    """Share of the matching frames in percent, or a Markov chain."""

    by: int = Field(ge=1, le=4096)
    """Number of the stream's DATA and PAD frames that overtake the frame."""

    at_most_ns: Duration = Field(default=100_000_000, alias="at_most", gt=0, le=DELAY_NS_MAX)
    """Maximum delay if too few frames follow. Default: 100ms."""


class Corrupt(Table):
    """Flips bits in frames and corrects the checksum, so that the receiver gets the damaged
    frames.
    """

    share: LossModel
    """Share of the matching frames in percent, or a Markov chain."""

    field: FieldName
    """Header field in which bits are flipped, or the payload."""

    bits: int = Field(default=1, ge=1, le=8)
    """Number of adjacent bits to flip. Default: 1."""


class Truncate(Table):
    """Truncates datagrams, and corrects their lengths and checksums."""

    share: LossModel
    """Share of the matching frames in percent, or a Markov chain."""

    to: Bytes
    """Length after truncation, at least 1B. Shorter frames do not change."""

    @field_validator("to")
    @classmethod
    def _leaves_something(cls, value: int) -> int:
        # An empty datagram has no frame that identifies it, so relay and judge could not count it.
        if value < 1:
            raise ValueError(f"expected at least 1B, found {value}B")
        return value


class Inject(Table):
    """Sends forged frames directly after some of the matching frames."""

    share: LossModel = Field(default=BILLION, validate_default=False)
    """Share of the matching frames after which forged frames are sent. Default: all."""

    frames: tuple[Forged, ...] = Field(strict=False, min_length=1, max_length=8)
    """Frames to send, each in a separate datagram."""


class Readdress(Table):
    """Changes the source port of datagrams, like a NAT router that has lost its mapping."""

    source_port: int = Field(ge=1, le=65_535)
    """The new source port. Datagrams sent to this port are forwarded to the original one."""


class Act(Table):
    """The action of a fault rule on the frames that it matches. Exactly one key is required."""

    drop: LossModel | None = None
    """Share of the frames to drop."""

    duplicate: Annotated[Duplicate | None, BeforeValidator(_with_share)] = None
    """Frames to duplicate."""

    hold: Hold | None = None
    """Frames to delay."""

    swap: LossModel | None = None
    """Share of the frames to swap with the next frame of their stream on the same link."""

    displace: Displace | None = None
    """Frames to send after several later frames."""

    corrupt: Corrupt | None = None
    """Frames to damage."""

    truncate: Truncate | None = None
    """Frames to truncate."""

    inject: Inject | None = None
    """Forged frames to send after matching frames."""

    readdress: Readdress | None = None
    """A new source port for all matching datagrams."""

    @model_validator(mode="after")
    def _exactly_one(self) -> "Act":
        given = [name for name in ACTIONS if getattr(self, name) is not None]
        if len(given) != 1 or len(self.model_fields_set) != 1:
            raise ValueError(f"expected exactly one of {', '.join(ACTIONS)}")
        return self

    @property
    def action(self) -> Action:
        """Return the action's name, as written in the scenario."""
        return next(name for name in ACTIONS if getattr(self, name) is not None)

    @property
    def loss_model(self) -> Any:
        """Return the share or Markov chain that selects the affected frames, as written in the
        scenario.
        """
        act = getattr(self, self.action)
        return getattr(act, "share", BILLION if self.readdress else act)

    @property
    def share_ppb(self) -> int:
        """Return the long-run share of the matching frames that are affected, in parts per
        billion.
        """
        return share_ppb(self.loss_model)
