"""The figures that an envelope covers, computed from a row of results."""

import pytest

from windtunnel.harness.artifact.run.result_row import ResultRow
from windtunnel.harness.verdict.checks.envelope.figures import (
    EVENTS_MIN,
    LASTED_MIN_NS,
    TAIL_EVENTS_MIN,
    TAILS,
    UNITS,
    figure_text,
    figures_of,
)

FULL = {
    "published_messages": 1_000,
    "delivered_messages": 990,
    "delivered_bytes": 4 << 20,
    "reached_bytes_per_s": 2e6,
    "latency_p50_ns": 300_000,
    "finished_ns": 2_000_000_000,
    "lost_frames": 200,
    "lost_bytes": 20_000,
    "resent_bytes": 30_000,
    "gaps": 200,
    "naks": 150,
    "requested_gaps": 100,
    "status_messages": 640,
    "repair_p50_ns": 1_000_000,
    "repair_p99_ns": 9_000_000,
}


def row(**values):
    return ResultRow("feed", "a", "b", **{**FULL, **values})


def test_each_figure_is_the_quotient_or_the_value_that_its_unit_says():
    assert figures_of(row()) == {
        "naks_per_gap": 1.5,
        "repair_p50": 1_000_000,
        "repair_p99": 9_000_000,
        "resent_per_lost": 1.5,
        "missing_per_lost": 0.05,
        "status_messages_per_mib": 160.0,
        "bytes_per_s": 2e6,
        "latency_p50": 300_000,
    }
    assert set(figures_of(row())) == set(UNITS) >= set(TAILS)


@pytest.mark.parametrize(
    ("value", "least", "absent"),
    [
        ("requested_gaps", EVENTS_MIN, {"naks_per_gap"}),
        ("gaps", EVENTS_MIN, {"repair_p50"}),
        ("gaps", TAIL_EVENTS_MIN, {"repair_p99"}),
        ("lost_frames", EVENTS_MIN, {"resent_per_lost", "missing_per_lost"}),
        ("status_messages", EVENTS_MIN, {"status_messages_per_mib"}),
        ("finished_ns", LASTED_MIN_NS, {"bytes_per_s", "latency_p50"}),
    ],
)
def test_a_figure_of_too_little_is_absent(value, least, absent):
    for too_little in (None, 0, least - 1):
        assert not figures_of(row(**{value: too_little})).keys() & absent
    assert figures_of(row(**{value: least})).keys() >= absent


def test_an_unknown_or_zero_value_is_no_figure():
    assert figures_of(ResultRow("feed", "a", "b")) == {}
    assert "naks_per_gap" not in figures_of(row(naks=0))
    assert "missing_per_lost" not in figures_of(row(delivered_messages=1_000))


def test_a_duration_is_shown_with_its_unit_and_a_ratio_as_a_number():
    assert figure_text("repair_p50", 1_234_567) == "1.23 ms"
    assert figure_text("naks_per_gap", 1.23456) == "1.235"
