"""The weather of a case: numbers alone, as relay, netem and judge take them.

    Weather of `both` --resolve--> WeatherCase a->b, WeatherCase b->a

A loss model is a chain of states with a chance of loss in each; what it comes to in the long run
can be computed, and is what calibration and judge compare with.
"""

from typing import Literal

import numpy as np
from numpy.typing import NDArray
from pydantic import BaseModel, ConfigDict

from harness.scenario.chance import FourState, GilbertElliott
from harness.scenario.units import BILLION
from harness.scenario.weather import Distribution, Weather

LossModel = Literal["iid", "gilbert-elliott", "four-state"]
Direction = Literal["a->b", "b->a"]


class _Part(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class LossCase(_Part):
    """A loss model and its probabilities, in parts per billion and in the order of `tc`."""

    model: LossModel
    shares_ppb: tuple[int, ...]
    """iid: loss; gilbert-elliott: good to bad, bad to good, loss in bad, loss in good; four-state:
    p13, p31, p32, p23, p14."""

    def chain(self) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Transitions [from, to], and the chance of loss in each state."""
        parts = [share / BILLION for share in self.shares_ppb]
        if self.model == "iid":
            return np.ones((1, 1)), np.array(parts)
        if self.model == "gilbert-elliott":
            worse, better, bad_loss, good_loss = parts
            moves = np.array([[1 - worse, worse], [better, 1 - better]])
            return moves, np.array([good_loss, bad_loss])
        p13, p31, p32, p23, p14 = parts
        # Nothing leads to state 2 and out of it when both are 0; it must not seem to keep anything.
        p23 = p23 or 1.0
        moves = np.array(
            [
                [1 - p13 - p14, 0, p13, p14],
                [0, 1 - p23, p23, 0],
                [p31, p32, 1 - p31 - p32, 0],
                [1, 0, 0, 0],
            ]
        )
        return moves, np.array([0.0, 0.0, 1.0, 1.0])

    @property
    def rate(self) -> float:
        """Share of the packets that are lost in the long run."""
        moves, losses = self.chain()
        return float(_stationary(moves) @ losses)

    @property
    def burst_length(self) -> float:
        """Mean length of an unbroken run of losses, in packets."""
        moves, losses = self.chain()
        lost = _stationary(moves) * losses
        ends = float(lost @ moves @ (1 - losses))
        return float(lost.sum()) / ends if ends else float("inf")

    @property
    def variance(self) -> float:
        """Of the count of losses, per packet, over many packets.

        Bursts make it larger than a binomial's: the covariances of all distances are added up,
        which the chain's fundamental matrix does at once.
        """
        moves, losses = self.chain()
        share = _stationary(moves)
        rate = float(share @ losses)
        away = np.linalg.inv(np.eye(len(share)) - moves + np.tile(share, (len(share), 1)))
        behind = moves @ away - np.tile(share, (len(share), 1))
        return rate * (1 - rate) + 2 * float((share * losses) @ behind @ losses)


def _stationary(moves: NDArray[np.float64]) -> NDArray[np.float64]:
    """The share of time that a chain spends in each state."""
    count = len(moves)
    equations = np.vstack([moves.T - np.eye(count), np.ones(count)])
    wanted = np.append(np.zeros(count), 1.0)
    found: NDArray[np.float64] = np.linalg.lstsq(equations, wanted, rcond=None)[0]
    return found


class WeatherCase(_Part):
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
