"""How much: the share of frames that a rule strikes, and how the strokes cluster.

    2%                                                     each frame for itself
    {good_to_bad: 0.1%, bad_to_good: 20%, bad: 100%}       Gilbert and Elliott: two states
    {p13: 1%, p31: 20%, p32: 10%, p23: 5%, p14: 0.5%}      four states, as `tc-netem` numbers them

A chain takes one step for each frame that the rule looks at on its first passage, so it clusters in
the order of the stream and not in time. Shares are parts per billion throughout.
"""

from typing import Annotated, Literal

import numpy as np
from numpy.typing import NDArray
from pydantic import BeforeValidator, Discriminator, Field, Tag, WithJsonSchema, model_validator

from harness.scenario.quantities import Table
from harness.scenario.units import BILLION, parse_share

ALWAYS = "always"
"""In place of 100%."""

_PATTERN = r"^\d+(\.\d+)?\s*%$"


def _share(value: object) -> int:
    return BILLION if value == ALWAYS else parse_share(value)


def _share_or_none(value: object) -> int:
    """A share that may also be 0%."""
    return 0 if value == "0%" else parse_share(value)


def _schema(pattern: str) -> WithJsonSchema:
    return WithJsonSchema({"type": "string", "pattern": pattern, "examples": ["2%"]})


Share = Annotated[int, BeforeValidator(_share), _schema(_PATTERN + "|^always$")]
Chance = Annotated[int, BeforeValidator(_share_or_none), _schema(_PATTERN)]


class GilbertElliott(Table):
    """A good and a bad state, each with its own share of strokes."""

    good_to_bad: Chance = Field(gt=0)
    """Per cent of the steps from the good state that lead to the bad one."""

    bad_to_good: Chance = Field(gt=0)
    """Per cent of the steps from the bad state that lead to the good one."""

    bad: Chance = BILLION
    """Per cent of the frames struck in the bad state; default 100%."""

    good: Chance = 0
    """Per cent of the frames struck in the good state; default 0%."""


class FourState(Table):
    """Passing in a gap (1) and in a burst (2); struck in a burst (3) and alone (4)."""

    p13: Chance = Field(gt=0)
    """Per cent of the steps from passing in a gap to being struck in a burst."""

    p31: Chance = Field(gt=0)
    """Per cent of the steps from being struck in a burst to passing in a gap."""

    p32: Chance = 0
    """Per cent of the steps from being struck in a burst to passing in it; default 0%."""

    p23: Chance = Field(default=BILLION, gt=0)
    """Per cent of the steps from passing in a burst to being struck in it; default 100%."""

    p14: Chance = 0
    """Per cent of the steps from passing in a gap to being struck alone; default 0%."""

    @model_validator(mode="after")
    def _sums(self) -> "FourState":
        for left, right in (("p13", "p14"), ("p31", "p32")):
            if getattr(self, left) + getattr(self, right) > BILLION:
                raise ValueError(f"expected {left} and {right} to be at most 100% together")
        return self


def _kind(value: object) -> str:
    """Which of the three ways to say how much is meant: errors then tell of that one alone."""
    if not isinstance(value, dict):
        return "share"
    return "two states" if {"good_to_bad", "bad_to_good"} & set(value) else "four states"


Much = Annotated[
    Annotated[Share, Tag("share")]
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
            amount.bad,
            amount.good,
        )
    return "four states", (amount.p13, amount.p31, amount.p32, amount.p23, amount.p14)


def share_ppb(amount: int | GilbertElliott | FourState) -> int:
    """The long-run share of frames that are struck, in parts per billion."""
    kind, parts = parts_ppb(amount)
    return parts[0] if kind == "independent" else round(Chain(kind, parts).share * BILLION)


class Chain:
    """The steps of a chain as a matrix over four states, some of which mean a stroke.

    Gilbert and Elliott's two states become four: each with and without a stroke.
    """

    def __init__(self, kind: Kind, parts: tuple[int, ...]) -> None:
        shares = [part / BILLION for part in parts]
        if kind == "two states":
            self.struck = np.array([False, True, False, True])
            self.steps = _two_states(*shares)
        else:
            self.struck = np.array([False, False, True, True])
            self.steps = _four_states(*shares)
        self.stationary = _stationary(self.steps)

    @property
    def share(self) -> float:
        """The long-run share of strokes."""
        return float(self.stationary[self.struck].sum())

    @property
    def burst_length(self) -> float:
        """The mean number of strokes in a row."""
        begins = self.stationary[~self.struck] @ self.steps[~self.struck][:, self.struck]
        return self.share / float(begins.sum())

    @property
    def inflation(self) -> float:
        """How much wider a count of strokes spreads than that of independent ones.

        Source: the asymptotic variance of a Markov chain's mean, by its fundamental matrix.
        """
        share = self.share
        if not 0.0 < share < 1.0:
            return 1.0
        centred = self.struck - share
        weighted = self.stationary * centred
        limit = np.outer(np.ones(4), self.stationary)
        fundamental = np.linalg.inv(np.eye(4) - self.steps + limit)
        variance = 2 * weighted @ fundamental @ centred - weighted @ centred
        return max(1.0, float(variance) / (share * (1 - share)))


def _two_states(leave: float, back: float, bad: float, good: float) -> NDArray[np.float64]:
    from_good = [(1 - leave) * (1 - good), (1 - leave) * good, leave * (1 - bad), leave * bad]
    from_bad = [back * (1 - good), back * good, (1 - back) * (1 - bad), (1 - back) * bad]
    return np.array([from_good, from_good, from_bad, from_bad])


def _four_states(p13: float, p31: float, p32: float, p23: float, p14: float) -> NDArray[np.float64]:
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
