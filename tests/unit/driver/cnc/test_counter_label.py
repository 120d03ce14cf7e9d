"""A label fits into its counter whatever letters it is made of, and its tail is always there."""

import pytest

from windtunnel.driver.cnc.counter_label import fitting
from windtunnel.driver.cnc.counters import LABEL_LENGTH_MAX


@pytest.mark.parametrize(
    ("head", "expected"),
    [
        ("", " - tail"),
        ("head", "head - tail"),
        ("h\u00e9ad\ufffd", "h?ad? - tail"),
        ("x" * 372, "x" * 372 + " - tail"),
        ("x" * 374, "x" * 373 + " - tail"),
        ("\u00e9" * 5_000, "?" * 373 + " - tail"),
    ],
)
def test_what_does_not_fit_is_cut_off_the_head(head, expected):
    label = fitting(head, " - tail")
    assert label == expected
    assert len(label.encode()) <= LABEL_LENGTH_MAX
