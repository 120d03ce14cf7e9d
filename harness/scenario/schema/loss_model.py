"""Loss models: which share of frames or packets is lost or otherwise affected, and in what bursts.

    2%                                                     independent
    {good_to_bad: 0.1%, bad_to_good: 20%}                  Gilbert-Elliott: two states
    {p13: 1%, p31: 20%, p32: 10%, p23: 5%, p14: 0.5%}      four states, numbered as in `tc-netem`
    {burst: 50, every: 5000}                               two states, by their mean durations

A fault rule uses the same models to select frames for any action, and "lost" then means selected. A
rule's chain takes one step for each frame at its first transmission, so bursts follow the order of
the stream. A link's impairments take one step for each packet. Shares are parts per billion.
"""

from typing import Annotated, Any, Literal

import numpy as np
from numpy.typing import NDArray
from pydantic import BeforeValidator, Discriminator, Tag, WithJsonSchema

from windtunnel.harness.scenario.schema.table import NOT_ZERO, Probability, Share, Table, quantity
from windtunnel.harness.scenario.schema.units import BILLION, format_share, parse_share
from windtunnel.harness.scenario.yaml_document import quoted

ALWAYS = "always"
"""Synonym for a share of 100%."""


def _share(value: object) -> int:
    return BILLION if value == ALWAYS else parse_share(value)


Amount = Annotated[int, BeforeValidator(_share), quantity("%", "2%", prefix=NOT_ZERO, word=ALWAYS)]


class GilbertElliott(Table):
    """The Gilbert-Elliott model: a good and a bad state, with one step per frame or packet."""

    good_to_bad: Share
    """Probability of a transition from good to bad."""

    bad_to_good: Share
    """Probability of a transition from bad to good. Its reciprocal is the mean burst duration."""

    bad_loss: Share = BILLION
    """Loss probability in the bad state. Default: 100%."""

    good_loss: Probability = 0
    """Loss probability in the good state. Default: 0%."""


class FourState(Table):
    """The four-state model of netem's `loss state`.

    1 received outside a burst, 2 received within a burst, 3 lost within a burst, 4 isolated loss.
    State 4 always returns to 1. With the remaining probability, the state does not change.
    """

    p13: Share
    """Probability that a burst begins, with a loss."""

    p31: Share
    """Probability that a burst ends."""

    p32: Probability = 0
    """Within a burst, after a loss: probability that the next frame is received."""

    p23: Probability = 0
    """Within a burst, after a received frame: probability that the next frame is lost."""

    p14: Probability = 0
    """Probability of an isolated loss."""


BURST_KEYS = ("burst", "every")
BURST_PERIOD_MAX = BILLION
"""Maximum mean number of packets from one burst to the next. Shares are parts per billion."""


def _of_bursts(value: object) -> Any:
    """Convert mean burst lengths and periods, in packets, to the transition probabilities of the
    Gilbert-Elliott model.
    """
    if not isinstance(value, dict):
        return value
    for key in BURST_KEYS:
        count = value.get(key)
        if type(count) is not int or not 1 <= count <= BURST_PERIOD_MAX:
            found = "none" if count is None else quoted(count)
            text = f"{key}: expected a number of packets from 1 to {BURST_PERIOD_MAX}"
            raise ValueError(f"{text}, such as {{burst: 50, every: 5000}}, found {found}")
    unknown = [key for key in value if key not in BURST_KEYS]
    if unknown:
        raise ValueError(f"expected only burst and every, found {quoted(unknown[0])}")
    burst, every = (value[key] for key in BURST_KEYS)
    if burst >= every:
        text = "expected `burst` below `every`, the mean number of packets from one burst to the"
        raise ValueError(f"{text} next, found {burst} and {every}")
    shares = round(BILLION / (every - burst)), round(BILLION / burst)
    return dict(zip(("good_to_bad", "bad_to_good"), map(format_share, shares), strict=True))


BURSTS = "Bursts"
"""Name of the table of bursts in the JSON Schema."""


def _count(description: str) -> dict[str, Any]:
    limits = {"minimum": 1, "maximum": BURST_PERIOD_MAX}
    return {"type": "integer", **limits, "description": description}


BURSTS_SCHEMA = {
    "type": "object",
    "description": "Bursts, short for a Gilbert-Elliott model: `{burst: 50, every: 5000}` affects "
    "50 packets in a row, and starts once in 5000 packets, on average.",
    "properties": {
        "burst": _count("Mean number of packets in a burst."),
        "every": _count("Mean number of packets from the start of one burst to the next."),
    },
    "required": list(BURST_KEYS),
    "additionalProperties": False,
}


def _kind(value: object) -> str:
    """Return the kind of a loss model: a share, bursts, two states or four states. Given the kind,
    pydantic reports only the errors of this kind.
    """
    if not isinstance(value, dict):
        return "share"
    if set(BURST_KEYS) & set(value):
        return "bursts"
    return "two states" if {"good_to_bad", "bad_to_good"} & set(value) else "four states"


LossModel = Annotated[
    Annotated[Amount, Tag("share")]
    | Annotated[
        GilbertElliott, BeforeValidator(_of_bursts), WithJsonSchema(BURSTS_SCHEMA), Tag("bursts")
    ]
    | Annotated[GilbertElliott, Tag("two states")]
    | Annotated[FourState, Tag("four states")],
    Discriminator(_kind),
]
"""A share of independent losses, or a Markov chain."""


ChainKind = Literal["independent", "two states", "four states"]


def chain_parameters(model: int | GilbertElliott | FourState) -> tuple[ChainKind, tuple[int, ...]]:
    """Return a loss model's kind and its parameters in field order."""
    if isinstance(model, int):
        return "independent", (model,)
    if isinstance(model, GilbertElliott):
        return "two states", (
            model.good_to_bad,
            model.bad_to_good,
            model.bad_loss,
            model.good_loss,
        )
    return "four states", (model.p13, model.p31, model.p32, model.p23, model.p14)


def share_ppb(model: int | GilbertElliott | FourState) -> int:
    """Return a loss model's long-run loss rate, in parts per billion."""
    kind, parameters = chain_parameters(model)
    if kind == "independent":
        return parameters[0]
    return round(MarkovChain(kind, parameters).share * BILLION)


class MarkovChain:
    """A loss model's transition matrix and its loss probability in each state.

    Independent losses have one state, Gilbert-Elliott has two, and netem's model has four.
    """

    def __init__(self, kind: ChainKind, parameters: tuple[int, ...]) -> None:
        shares = [each / BILLION for each in parameters]
        if kind == "independent":
            self.transitions, self.loss_probabilities = np.ones((1, 1)), np.array(shares)
        elif kind == "two states":
            to_bad, to_good, bad, good = shares
            self.transitions = np.array([[1 - to_bad, to_bad], [to_good, 1 - to_good]])
            self.loss_probabilities = np.array([good, bad])
        else:
            self.transitions = _four_states(*shares)
            self.loss_probabilities = np.array([0.0, 0.0, 1.0, 1.0])
        self.stationary = _stationary(self.transitions)

    @property
    def share(self) -> float:
        """Return the long-run loss rate."""
        return float(self.stationary @ self.loss_probabilities)

    @property
    def burst_length(self) -> float:
        """Return the mean number of consecutive losses."""
        lost = self.stationary * self.loss_probabilities
        ends = float(lost @ self.transitions @ (1 - self.loss_probabilities))
        return float(lost.sum()) / ends if ends else float("inf")

    @property
    def variance(self) -> float:
        """Return the asymptotic variance of the number of losses, per step.

        Bursts make it larger than the variance of a binomial distribution. The chain's fundamental
        matrix yields the sum of the covariances at all lags.
        """
        share, losses = self.stationary, self.loss_probabilities
        limit = np.tile(share, (len(share), 1))
        fundamental = np.linalg.inv(np.eye(len(share)) - self.transitions + limit)
        lags = self.transitions @ fundamental - limit
        rate = self.share
        return rate * (1 - rate) + 2 * float((share * losses) @ lags @ losses)

    @property
    def inflation(self) -> float:
        """Return the ratio of the loss variance to the variance of independent losses. The ratio is
        at least 1.
        """
        share = self.share
        return max(1.0, self.variance / (share * (1 - share))) if 0.0 < share < 1.0 else 1.0


def _four_states(p13: float, p31: float, p32: float, p23: float, p14: float) -> NDArray[np.float64]:
    # If p32 and p23 are 0, state 2 is unreachable, but it must not be absorbing either.
    p23 = p23 or 1.0
    return np.array(
        [
            [1 - p13 - p14, 0.0, p13, p14],
            [0.0, 1 - p23, p23, 0.0],
            [p31, p32, 1 - p31 - p32, 0.0],
            [1.0, 0.0, 0.0, 0.0],
        ]
    )


def _stationary(transitions: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the stationary distribution of a transition matrix."""
    count = len(transitions)
    right_side = np.append(np.zeros(count), 1.0)
    equations = np.vstack([transitions.T - np.eye(count), np.ones(count)])
    found: NDArray[np.float64] = np.linalg.lstsq(equations, right_side, rcond=None)[0]
    return found
