"""A label fits into its counter, whatever its characters, and keeps its tail."""

import pytest

from windtunnel.driver.cnc.counter_label import fit_label
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
def test_the_head_is_truncated(head, expected):
    label = fit_label(head, " - tail")
    assert label == expected
    assert len(label.encode()) <= LABEL_LENGTH_MAX
