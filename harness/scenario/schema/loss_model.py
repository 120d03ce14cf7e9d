"""How much: the share of frames or packets that is struck, and how the strokes cluster.

    2%                                                     each frame for itself
    {good_to_bad: 0.1%, bad_to_good: 20%}                  Gilbert and Elliott: two states
    {p13: 1%, p31: 20%, p32: 10%, p23: 5%, p14: 0.5%}      four states, as `tc-netem` numbers them

A rule's chain takes one step for each frame that it looks at on its first passage, so it clusters
in the order of the stream; the weather's takes one for each packet. Shares are parts per billion.
"""

from typing import Annotated, Literal

import numpy as np
from numpy.typing import NDArray
from pydantic import BeforeValidator, Discriminator, Tag

from windtunnel.harness.scenario.schema.table import NUMBER, Probability, Share, Table, quantity
from windtunnel.harness.scenario.schema.units import BILLION, parse_share

ALWAYS = "always"
"""In place of 100%."""


def _share(value: object) -> int:
    return BILLION if value == ALWAYS else parse_share(value)


Amount = Annotated[int, BeforeValidator(_share), quantity(NUMBER + "%$|^always$", "2%")]


class GilbertElliott(Table):
    """Two states, a good one and a bad one; the state moves once a frame or packet."""

    good_to_bad: Share
    """Chance that the good state turns bad."""

    bad_to_good: Share
    """Chance that the bad state turns good; its reciprocal is the mean stay."""

    bad_loss: Share = BILLION
    """Struck in the bad state; default 100%."""

    good_loss: Probability = 0
    """Struck in the good state; default 0%."""


class FourState(Table):
    """Four states, as netem's `loss state` has them.

    1 passing in a gap, 2 passing in a burst, 3 struck in a burst, 4 struck alone; 4 always goes
    back to 1, and what is not named stays where it is.
    """

    p13: Share
    """A burst begins, with a stroke."""

    p31: Share
    """A burst ends."""

    p32: Probability = 0
    """Within a burst, after a stroke: the next passes."""

    p23: Probability = 0
    """Within a burst, after one that passed: the next is struck."""

    p14: Probability = 0
    """A stroke alone."""


def _kind(value: object) -> str:
    """Which of the three ways to say how much is meant: errors then tell of that one alone."""
    if not isinstance(value, dict):
        return "share"
    return "two states" if {"good_to_bad", "bad_to_good"} & set(value) else "four states"


Much = Annotated[
    Annotated[Amount, Tag("share")]
    | Annotated[GilbertElliott, Tag("two states")]
    | Annotated[FourState, Tag("four states")],
    Discriminator(_kind),
]
"""A share, or a chain with memory."""


Kind = Literal["independent", "two states", "four states"]


def parts_ppb(amount: int | GilbertElliott | FourState) -> tuple[Kind, tuple[int, ...]]:
    """How much, as its kind and its shares in the order of its fields."""
    if isinstance(amount, int):
        return "independent", (amount,)
    if isinstance(amount, GilbertElliott):
        return "two states", (
            amount.good_to_bad,
            amount.bad_to_good,
            amount.bad_loss,
            amount.good_loss,
        )
    return "four states", (amount.p13, amount.p31, amount.p32, amount.p23, amount.p14)


def share_ppb(amount: int | GilbertElliott | FourState) -> int:
    """The long-run share of frames that are struck, in parts per billion."""
    kind, parts = parts_ppb(amount)
    return parts[0] if kind == "independent" else round(Chain(kind, parts).share * BILLION)


class Chain:
    """The steps of a chain, and how likely a stroke is in each of its states.

    One state if each frame is for itself, two of Gilbert and Elliott, four of netem's.
    """

    def __init__(self, kind: Kind, parts: tuple[int, ...]) -> None:
        shares = [part / BILLION for part in parts]
        if kind == "independent":
            self.steps, self.strokes = np.ones((1, 1)), np.array(shares)
        elif kind == "two states":
            leave, back, bad, good = shares
            self.steps = np.array([[1 - leave, leave], [back, 1 - back]])
            self.strokes = np.array([good, bad])
        else:
            self.steps = _four_states(*shares)
            self.strokes = np.array([0.0, 0.0, 1.0, 1.0])
        self.stationary = _stationary(self.steps)

    @property
    def share(self) -> float:
        """The long-run share of strokes."""
        return float(self.stationary @ self.strokes)

    @property
    def burst_length(self) -> float:
        """The mean number of strokes in a row."""
        struck = self.stationary * self.strokes
        ends = float(struck @ self.steps @ (1 - self.strokes))
        return float(struck.sum()) / ends if ends else float("inf")

    @property
    def variance(self) -> float:
        """Of the count of strokes, per step, over many steps.

        Bursts make it larger than a binomial's: the covariances of all distances are added up,
        which the chain's fundamental matrix does at once.
        """
        share, steps, strokes = self.stationary, self.steps, self.strokes
        limit = np.tile(share, (len(share), 1))
        behind = steps @ np.linalg.inv(np.eye(len(share)) - steps + limit) - limit
        rate = self.share
        return rate * (1 - rate) + 2 * float((share * strokes) @ behind @ strokes)

    @property
    def inflation(self) -> float:
        """How much wider a count of strokes spreads than that of independent ones; at least 1."""
        share = self.share
        return max(1.0, self.variance / (share * (1 - share))) if 0.0 < share < 1.0 else 1.0


def _four_states(p13: float, p31: float, p32: float, p23: float, p14: float) -> NDArray[np.float64]:
    # Nothing leads to state 2 and out of it when both are 0; it must not seem to keep anything.
    p23 = p23 or 1.0
    return np.array(
        [
            [1 - p13 - p14, 0.0, p13, p14],
            [0.0, 1 - p23, p23, 0.0],
            [p31, p32, 1 - p31 - p32, 0.0],
            [1.0, 0.0, 0.0, 0.0],
        ]
    )


def _stationary(steps: NDArray[np.float64]) -> NDArray[np.float64]:
    """The share of time in each state."""
    wanted = np.append(np.zeros(len(steps)), 1.0)
    equations = np.vstack([steps.T - np.eye(len(steps)), np.ones(len(steps))])
    found: NDArray[np.float64] = np.linalg.lstsq(equations, wanted, rcond=None)[0]
    return found
