"""The weather of a case: numbers alone, as relay, netem and judge take them.

    Weather of `both` --resolve--> WeatherCase a->b, WeatherCase b->a

A loss model is a chain of states with a chance of loss in each; what it comes to in the long run
can be computed, and is what calibration and judge compare with.
"""

from typing import Literal

from windtunnel.harness.scenario.schema.impairment import Distribution, Weather
from windtunnel.harness.scenario.schema.loss_model import Chain, FourState, GilbertElliott, Kind
from windtunnel.harness.scenario.schema.part import Part

LossModel = Literal["iid", "gilbert-elliott", "four-state"]
Direction = str
"""A name of a link direction, as a case gives it."""
_KINDS: dict[LossModel, Kind] = {
    "iid": "independent",
    "gilbert-elliott": "two states",
    "four-state": "four states",
}


class LossCase(Part):
    """A loss model and its probabilities, in parts per billion and in the order of `tc`."""

    model: LossModel
    shares_ppb: tuple[int, ...]
    """iid: loss; gilbert-elliott: good to bad, bad to good, loss in bad, loss in good; four-state:
    p13, p31, p32, p23, p14."""

    @property
    def chain(self) -> Chain:
        """The states, and the chance of a loss in each."""
        return Chain(_KINDS[self.model], self.shares_ppb)

    @property
    def rate(self) -> float:
        """Share of the packets that are lost in the long run."""
        return self.chain.share

    @property
    def burst_length(self) -> float:
        """Mean length of an unbroken run of losses, in packets."""
        return self.chain.burst_length


class WeatherCase(Part):
    """The weather of one link direction; 0 and None mean that there is none of it."""

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


def weather_case(link: Direction, weather: Weather) -> WeatherCase:
    """The weather of a direction with nothing left open."""
    delay, reorder = weather.delay, weather.reorder
    return WeatherCase(
        link=link,
        loss=None if weather.loss is None else _loss_case(weather.loss),
        delay_ns=delay.mean_ns if delay else 0,
        jitter_ns=delay.jitter_ns if delay else 0,
        distribution=delay.distribution if delay else "uniform",
        rate_bits_per_s=weather.rate_bits_per_s or 0,
        queue_packets=weather.queue_packets or 0,
        duplicate_ppb=weather.duplicate or 0,
        corrupt_ppb=weather.corrupt or 0,
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
