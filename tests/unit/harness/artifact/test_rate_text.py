"""Rates as text, each with a suitable unit."""

import pytest

from windtunnel.harness.artifact.rate_text import rate_text, rate_unit


@pytest.mark.parametrize(
    ("rate", "asked", "text"),
    [
        (0, None, "0 B/s"),
        (39.6, None, "40 B/s"),
        (999.4, None, "999 B/s"),
        (1000, None, "1.00 kB/s"),
        (4250, None, "4.25 kB/s"),
        (1e6, None, "1.00 MB/s"),
        (5_123_456_789, None, "5,123.46 MB/s"),
        (3e6, 4e6, "3.00 of 4.00 MB/s"),
        (2500, 4e6, "2.50 kB/s of 4.00 MB/s"),
        (0, 100, "0 of 100 B/s"),
    ],
)
def test_a_rate_has_the_unit_that_leaves_a_digit_before_the_point(rate, asked, text):
    assert rate_text(rate, asked) == text


def test_rates_that_are_shown_together_have_the_unit_of_the_largest():
    assert rate_unit([40, 5000.0]) == (1e3, "kB/s")
    assert rate_unit([]) == (1.0, "B/s")
