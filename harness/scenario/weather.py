"""What befalls every packet of a link direction, whatever the packet is: the weather of the link.

    weather:
      a->b: {loss: 2%, delay: {mean: 5ms, jitter: 1ms, distribution: normal}}
      b->a: {rate: 200Mbit/s, queue: 4000}

Faults choose frames and are told apart by what a frame is; weather knows packets only, and comes
after the faults. Relay and netem deliver it alike: each packet is lost or not, sent twice or not,
then damaged, then delayed, reordered, and put in line. Deliberately there is no way to ask for
netem's `correlation`: its generator does not deliver the share that was asked for.
"""

from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Discriminator, Field, Tag

from harness.scenario.quantities import NUMBER, Duration, Share, Table, quantity
from harness.scenario.units import parse_probability, parse_rate

Rate = Annotated[
    int, BeforeValidator(parse_rate), quantity(NUMBER + "(bit|kbit|Mbit|Gbit)/s$", "200Mbit/s")
]
Probability = Annotated[int, BeforeValidator(parse_probability), quantity(NUMBER + "%$", "0%")]
"""A share that may be nothing at all."""
Distribution = Literal["uniform", "normal", "pareto"]
DELAY_MAX_NS = 10_000_000_000
QUEUE_MAX = 1_000_000


class GilbertElliott(Table):
    """Loss in two states: a good one and a bad one; the state moves once a packet."""

    good_to_bad: Share
    """Chance that the good state turns bad."""

    bad_to_good: Share
    """Chance that the bad state turns good; its reciprocal is the mean stay."""

    bad_loss: Share = 1_000_000_000
    """Packets lost in the bad state; default 100%."""

    good_loss: Probability = 0
    """Packets lost in the good state; default 0%."""


class FourState(Table):
    """Loss in four states, as netem's `loss state` has it.

    1 received in a gap, 2 received in a burst, 3 lost in a burst, 4 lost alone; 4 always goes back
    to 1, and what is not named stays where it is.
    """

    p13: Share
    """A burst begins, with a loss."""

    p31: Share
    """A burst ends."""

    p32: Probability = 0
    """Within a burst, after a loss: the next is received."""

    p23: Probability = 0
    """Within a burst, after one received: the next is lost."""

    p14: Probability = 0
    """A loss alone."""


def _loss_model(value: Any) -> str:
    if not isinstance(value, dict):
        return "each by itself"
    return "four states" if any(str(key).startswith("p") for key in value) else "two states"


Loss = Annotated[
    Annotated[Share, Tag("each by itself")]
    | Annotated[GilbertElliott, Tag("two states")]
    | Annotated[FourState, Tag("four states")],
    Discriminator(_loss_model),
]


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

    loss: Loss | None = None
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
