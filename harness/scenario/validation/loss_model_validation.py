"""Chains that are well-formed and yet mean nothing, or not what they say."""

from collections.abc import Iterator

from windtunnel.harness.scenario.schema.loss_model import FourState, GilbertElliott
from windtunnel.harness.scenario.schema.problem import Path, Problem
from windtunnel.harness.scenario.schema.units import BILLION


def chance_problems(amount: object, path: Path) -> Iterator[Problem]:
    """All that is wrong with how much a rule or a link's weather strikes."""
    if isinstance(amount, GilbertElliott):
        yield from _two_states(amount, path)
    elif isinstance(amount, FourState):
        yield from _four_states(amount, path)


def _two_states(amount: GilbertElliott, path: Path) -> Iterator[Problem]:
    if amount.bad_loss <= amount.good_loss:
        text = "expected more than good_loss: else the bad state is no worse than the good one"
        yield Problem((*path, "bad_loss"), text)


def _four_states(amount: FourState, path: Path) -> Iterator[Problem]:
    for left, right in (("p13", "p14"), ("p31", "p32")):
        if getattr(amount, left) + getattr(amount, right) > BILLION:
            text = f"{left} and {right} leave the same state: together at most 100%"
            yield Problem((*path, left), text)
    if bool(amount.p32) != bool(amount.p23):
        text = "p32 and p23 lead into state 2 and out of it: expected both or neither"
        yield Problem((*path, "p32" if amount.p32 else "p23"), text)
