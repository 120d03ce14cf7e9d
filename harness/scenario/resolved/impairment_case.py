"""Resolved impairments, which relay, netem and judge use.

    Impairments of `both` --resolve--> ImpairmentCase a->b, ImpairmentCase b->a

A loss model is a Markov chain with a loss probability in each state. Calibration and judge compare
measured losses with the computed long-run rate.
"""

from typing import Literal

from pydantic import AliasChoices

from windtunnel.harness.scenario.schema.impairment import Distribution, Impairments
from windtunnel.harness.scenario.schema.loss_model import (
    ChainKind,
    FourState,
    GilbertElliott,
    MarkovChain,
)
from windtunnel.harness.scenario.schema.part import Part

LossModelName = Literal["iid", "gilbert-elliott", "four-state"]
Direction = str
"""Name of a link direction, as in the case."""
FORMER_NAMES = AliasChoices("impairments", "weather")
"""The name of impairments in the files of a run, and the one that earlier versions wrote."""
_KINDS: dict[LossModelName, ChainKind] = {
    "iid": "independent",
    "gilbert-elliott": "two states",
    "four-state": "four states",
}


class LossCase(Part):
    """A loss model and its probabilities in parts per billion, in the order that `tc` uses."""

    model: LossModelName
    shares_ppb: tuple[int, ...]
    """iid: loss. gilbert-elliott: good to bad, bad to good, loss in bad, loss in good. four-state:
    p13, p31, p32, p23, p14.
    """

    @property
    def chain(self) -> MarkovChain:
        """Return the Markov chain of the loss model."""
        return MarkovChain(_KINDS[self.model], self.shares_ppb)

    @property
    def rate(self) -> float:
        """Return the long-run loss rate."""
        return self.chain.share

    @property
    def burst_length(self) -> float:
        """Return the mean number of consecutive losses."""
        return self.chain.burst_length


class ImpairmentCase(Part):
    """The impairments of one link direction. 0 or None means that an impairment is absent."""

    link: Direction
    loss: LossCase | None = None
    delay_ns: int = 0
    jitter_ns: int = 0
    distribution: Distribution = "uniform"
    rate_bits_per_s: int = 0
    queue_packets: int = 0
    duplicate_ppb: int = 0
    corrupt_ppb: int = 0
    reorder_ppb: int = 0
    reorder_gap: int = 0


def impairment_case(link: Direction, impairments: Impairments) -> ImpairmentCase:
    """Convert the impairments of a link direction in a scenario file to the form used in a resolved
    case.
    """
    delay, reorder = impairments.delay, impairments.reorder
    return ImpairmentCase(
        link=link,
        loss=None if impairments.loss is None else _loss_case(impairments.loss),
        delay_ns=delay.mean_ns if delay else 0,
        jitter_ns=delay.jitter_ns if delay else 0,
        distribution=delay.distribution if delay else "uniform",
        rate_bits_per_s=impairments.rate_bits_per_s or 0,
        queue_packets=impairments.queue_packets or 0,
        duplicate_ppb=impairments.duplicate or 0,
        corrupt_ppb=impairments.corrupt or 0,
        reorder_ppb=reorder.share if reorder else 0,
        reorder_gap=reorder.gap if reorder else 0,
    )


def _loss_case(loss: int | GilbertElliott | FourState) -> LossCase:
    if isinstance(loss, GilbertElliott):
        shares = (loss.good_to_bad, loss.bad_to_good, loss.bad_loss, loss.good_loss)
        return LossCase(model="gilbert-elliott", shares_ppb=shares)
    if isinstance(loss, FourState):
        four = (loss.p13, loss.p31, loss.p32, loss.p23, loss.p14)
        return LossCase(model="four-state", shares_ppb=four)
    return LossCase(model="iid", shares_ppb=(loss,))
