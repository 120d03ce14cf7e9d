"""Validates loss models: rejects Markov chains with inconsistent probabilities."""

from collections.abc import Iterator

from windtunnel.harness.scenario.schema.loss_model import FourState, GilbertElliott
from windtunnel.harness.scenario.schema.problem import Path, Problem
from windtunnel.harness.scenario.schema.units import BILLION


def loss_model_problems(model: object, path: Path) -> Iterator[Problem]:
    """Yield all problems with the loss model of a fault rule or a link."""
    if isinstance(model, GilbertElliott):
        yield from _two_states(model, path)
    elif isinstance(model, FourState):
        yield from _four_states(model, path)


def _two_states(model: GilbertElliott, path: Path) -> Iterator[Problem]:
    if model.bad_loss <= model.good_loss:
        text = "expected more than good_loss: the bad state must lose more than the good state"
        yield Problem((*path, "bad_loss"), text)


def _four_states(model: FourState, path: Path) -> Iterator[Problem]:
    for left, right in (("p13", "p14"), ("p31", "p32")):
        if getattr(model, left) + getattr(model, right) > BILLION:
            text = f"expected {left} + {right} to be at most 100%: both leave the same state"
            yield Problem((*path, left), text)
    if bool(model.p32) != bool(model.p23):
        text = "expected both or neither of p32 and p23, which enter and leave state 2"
        yield Problem((*path, "p32" if model.p32 else "p23"), text)
