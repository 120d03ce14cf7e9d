"""The impairments of a link direction, which apply to every packet (YAML key `impairments`).

    impairments:
      a->b: {loss: 2%, delay: {mean: 5ms, jitter: 1ms, distribution: normal}}
      b->a: {rate: 200Mbit/s, queue: 4000}

Fault rules select Aeron frames. Impairments apply to all packets, after the fault rules. Relay and
netem apply impairments in the same order: loss, duplication, corruption, delay, reordering, rate
limit. netem's `correlation` is deliberately not supported, because its generator does not produce
the requested share.
"""

from typing import Literal

from pydantic import Field

from windtunnel.harness.scenario.schema.loss_model import LossModel
from windtunnel.harness.scenario.schema.table import Duration, Rate, Share, Table

Distribution = Literal["uniform", "normal", "pareto"]
DELAY_MAX_NS = 10_000_000_000
QUEUE_MAX = 1_000_000


class Delay(Table):
    """A packet delay with optional jitter."""

    mean_ns: Duration = Field(alias="mean", gt=0, le=DELAY_MAX_NS)
    """Mean delay; at most 10s."""

    jitter_ns: Duration = Field(default=0, alias="jitter", ge=0)
    """Half the width of a uniform distribution, or the standard deviation of a normal one; at most
    the mean. Jitter above the interval between packets reorders them, unless a rate is set.
    Default: none.
    """

    distribution: Distribution = "uniform"
    """Distribution of the jitter. `pareto` has a long tail of late packets. Default: uniform."""


class Reorder(Table):
    """Reordering: some packets skip the delay and therefore arrive before earlier packets."""

    share: Share
    """Share of the eligible packets, in percent."""

    gap: int = Field(default=1, ge=1, le=100_000)
    """Only every n-th packet is eligible. Default: 1."""


class Impairments(Table):
    """The impairments of one link direction. At least one key is required."""

    loss: LossModel | None = None
    """Loss model: a share of independent losses, bursts, or a Markov chain of two or four states.
    """

    delay: Delay | None = None
    """Delay with optional jitter, or only its mean, such as `20ms`."""

    rate_bits_per_s: Rate | None = Field(default=None, alias="rate", ge=1_000)
    """Rate limit; at least 1kbit/s. Packet headers count against it."""

    queue_packets: int | None = Field(default=None, alias="queue", ge=1, le=QUEUE_MAX)
    """Queue length in packets. Excess packets are dropped. Default: practically unlimited."""

    duplicate: Share | None = None
    """Share of the packets to duplicate, in percent."""

    corrupt: Share | None = None
    """Share of the packets in which a bit is flipped, in percent. The receiver discards these
    packets."""

    reorder: Reorder | None = None
    """Reordering, which needs a delay."""
