"""The kinds of differences between the figures of two trials."""

import pytest

from windtunnel.harness.simulator.swarm.trial_figures import (
    BEHAVIOUR,
    EQUAL,
    TIMING,
    compare,
    kind_of,
)

FIGURES = {"DATA": 100, "SM": 10, "NAK": 0, "duration_us": 5_000}


@pytest.mark.parametrize(
    ("changes", "kind"),
    [
        ({}, EQUAL),
        ({"ERR": 0}, EQUAL),
        ({"SM": 11}, TIMING),
        ({"SM": 11, "duration_us": 4_999}, TIMING),
        ({"NAK": 1}, BEHAVIOUR),
        ({"DATA": 99, "duration_us": 1}, BEHAVIOUR),
        ({"ERR": 1}, BEHAVIOUR),
    ],
)
def test_the_kind_depends_on_the_figures_that_differ(changes, kind):
    assert kind_of(compare(FIGURES, {**FIGURES, **changes})) == kind


def test_differences_have_both_values():
    assert compare({"DATA": 1, "SM": 2}, {"SM": 3, "NAK": 4, "PAD": 0}) == {
        "DATA": (1, 0),
        "SM": (2, 3),
        "NAK": (0, 4),
    }
