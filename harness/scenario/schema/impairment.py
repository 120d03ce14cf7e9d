"""What befalls every packet of a link direction, whatever the packet is: the weather of the link.

    weather:
      a->b: {loss: 2%, delay: {mean: 5ms, jitter: 1ms, distribution: normal}}
      b->a: {rate: 200Mbit/s, queue: 4000}

Faults choose frames and are told apart by what a frame is; weather knows packets only, and comes
after the faults. Relay and netem deliver it alike: each packet is lost or not, sent twice or not,
then damaged, then delayed, reordered, and put in line. Deliberately there is no way to ask for
netem's `correlation`: its generator does not deliver the share that was asked for.
"""

from typing import Literal

from pydantic import Field

from windtunnel.harness.scenario.schema.loss_model import Much
from windtunnel.harness.scenario.schema.table import Duration, Rate, Share, Table

Distribution = Literal["uniform", "normal", "pareto"]
DELAY_MAX_NS = 10_000_000_000
QUEUE_MAX = 1_000_000


class Delay(Table):
    """How much later packets arrive."""

    mean_ns: Duration = Field(alias="mean", gt=0, le=DELAY_MAX_NS)
    """Up to 10s."""

    jitter_ns: Duration = Field(default=0, alias="jitter", ge=0)
    """Half the width of a uniform distribution, the standard deviation of a normal one; at most
    the mean. Packets overtake each other where it exceeds their distance, unless a rate keeps them
    in line. Default none."""

    distribution: Distribution = "uniform"
    """Of the jitter; `pareto` has a long tail to the late side. Default uniform."""


class Reorder(Table):
    """Some packets skip the delay, and so overtake those before them."""

    share: Share
    """Of the packets that may: per cent."""

    gap: int = Field(default=1, ge=1, le=100_000)
    """Only every so many-th packet may; default 1, which is every packet."""


class Weather(Table):
    """What befalls every packet of one direction; at least one key."""

    loss: Much | None = None
    """A share of the packets, each by itself, or a table of two or four states."""

    delay: Delay | None = None
    """How much later packets arrive."""

    rate_bits_per_s: Rate | None = Field(default=None, alias="rate", ge=1_000)
    """Packets leave one behind the other, headers included; at least 1kbit/s."""

    queue_packets: int | None = Field(default=None, alias="queue", ge=1, le=QUEUE_MAX)
    """Packets that may be on their way; more are lost. Default: as many as never matter."""

    duplicate: Share | None = None
    """Packets that arrive twice; per cent."""

    corrupt: Share | None = None
    """Packets in which one bit is flipped, so that their receiver refuses them; per cent."""

    reorder: Reorder | None = None
    """Packets that overtake; needs a delay."""
