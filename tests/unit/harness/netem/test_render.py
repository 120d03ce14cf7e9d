"""Impairments as arguments of `tc`: every table, and a limit that itself loses no packet."""

import pytest

from windtunnel.harness.netem.render import LIMIT_MIN, arguments, limit, percent
from windtunnel.harness.scenario.resolved.impairment_case import ImpairmentCase, LossCase


def words(**impairments):
    return " ".join(arguments(ImpairmentCase(link="a->b", **impairments)))


@pytest.mark.parametrize(
    ("impairments", "text"),
    [
        ({"loss": LossCase(model="iid", shares_ppb=(20_000_000,))}, "loss random 2%"),
        (
            {"loss": LossCase(model="gilbert-elliott", shares_ppb=(10**6, 2 * 10**8, 10**9, 0))},
            "loss gemodel 0.1% 20% 100% 0%",
        ),
        (
            {"loss": LossCase(model="four-state", shares_ppb=(10**7, 9 * 10**8, 5 * 10**7, 1, 0))},
            "loss state 1% 90% 5% 0.0000001% 0%",
        ),
        ({"delay_ns": 5_000_000}, "delay 5ms"),
        ({"delay_ns": 1_500_000, "jitter_ns": 10_001}, "delay 1500us 10001ns"),
        (
            {"delay_ns": 5_000_000, "jitter_ns": 10**6, "distribution": "pareto"},
            "delay 5ms 1ms distribution pareto",
        ),
        ({"delay_ns": 5_000_000, "jitter_ns": 10**6}, "delay 5ms 1ms"),
        ({"duplicate_ppb": 10**7, "corrupt_ppb": 10**6}, "duplicate 1% corrupt 0.1%"),
        (
            {"delay_ns": 10**7, "reorder_ppb": 10**7, "reorder_gap": 5},
            "delay 10ms reorder 1% gap 5",
        ),
        ({"rate_bits_per_s": 2 * 10**8, "queue_packets": 4000}, "rate 200000000bit"),
    ],
)
def test_has_the_syntax_of_tc(impairments, text):
    found = words(**impairments)
    assert found.partition(" ")[0] == "limit"
    assert found.split(" ", 2)[2] == text
    assert "correlation" not in found


def test_a_delay_is_never_followed_by_a_share_that_tc_would_read_as_a_correlation():
    found = arguments(
        ImpairmentCase(link="a->b", delay_ns=1000, jitter_ns=1000, duplicate_ppb=1, corrupt_ppb=1)
    )
    shares = [index for index, word in enumerate(found) if word.endswith("%")]
    assert all(found[index - 1].isalpha() for index in shares)


def test_the_queue_is_the_limit():
    assert limit(ImpairmentCase(link="a->b", rate_bits_per_s=10**6, queue_packets=7)) == 7


def test_the_limit_is_twice_what_a_delay_can_hold():
    held = ImpairmentCase(link="a->b", rate_bits_per_s=10**9, delay_ns=10**8, jitter_ns=10**7)
    smallest_bits = 8 * 60
    assert limit(held) >= 2 * (10**9 // smallest_bits) * 0.14 - 1
    assert limit(ImpairmentCase(link="a->b", delay_ns=10**9)) >= 2 * 100_000
    assert limit(ImpairmentCase(link="a->b")) == LIMIT_MIN


@pytest.mark.parametrize(
    ("share", "text"), [(0, "0%"), (10**9, "100%"), (1, "0.0000001%"), (123_456_789, "12.3456789%")]
)
def test_shares_keep_every_digit(share, text):
    assert percent(share) == text
