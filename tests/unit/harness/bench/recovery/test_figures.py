"""Figures of the recovery benchmark: values of a run, medians, ratios and limits."""

from dataclasses import replace

import pytest

from windtunnel.harness.artifact.run.result_row import ResultRow
from windtunnel.harness.bench.measure import Reading
from windtunnel.harness.bench.recovery import figures
from windtunnel.harness.bench.recovery.figures import C_TUNED, OUR_RECEIVER, OURS, C

ROW = ResultRow(
    traffic="stream",
    from_host="a",
    to_host="b",
    published_messages=100,
    delivered_messages=100,
    reached_bytes_per_s=2e6,
    latency_p99_ns=5_000_000,
    finished_ns=4_000_000_000,
    lost_frames=10,
    lost_bytes=1_000,
    resent_bytes=1_100,
    gaps=8,
    naks=12,
    repair_p50_ns=250_000_000,
    repair_p99_ns=500_000_000,
)


def test_values_are_computed_from_the_row_of_a_run():
    assert figures.values_of([ROW]) == pytest.approx(
        {
            "complete": 1.0,
            "transfer": 4.0,
            "goodput": 2.0,
            "latency-p99": 5.0,
            "repair-p50": 0.25,
            "repair-p99": 0.5,
            "naks-per-gap": 1.5,
            "resent-per-lost": 1.1,
            "missing-per-lost": 0.0,
        }
    )


def test_a_group_is_as_fast_as_its_slowest_member_and_is_sent_a_retransmit_once():
    slow = replace(ROW, to_host="c", reached_bytes_per_s=1e6, naks=4, delivered_messages=95)
    values = figures.values_of([ROW, slow])
    expected = {"goodput": 1.0, "naks-per-gap": 1.0, "resent-per-lost": 0.55, "complete": 0.0}
    assert {name: values[name] for name in expected} == pytest.approx(expected)
    assert values["missing-per-lost"] == 5 / 20


def test_a_run_without_losses_has_no_values_per_loss():
    values = figures.values_of([replace(ROW, lost_frames=0, lost_bytes=0, gaps=0)])
    assert not {"naks-per-gap", "resent-per-lost", "missing-per-lost"} & set(values)
    assert figures.values_of([])["complete"] == 0.0


def readings(case, setup, *values, **others):
    return [
        Reading(setup.name, case, index, {"complete": 1.0, **others, **value})
        for index, value in enumerate(values)
    ]


def row(name, found):
    (only,) = [each for each in figures.compare(found) if each.figure.name == name]
    return only


def test_a_value_of_ours_is_the_median_and_is_compared_with_its_limits():
    found = readings("long-path", OURS, *({"transfer": each} for each in (9.0, 5.5, 6.0)))
    transfer = row("long-path-transfer", found)
    assert (transfer.medians, transfer.reached) == ({"ours": 6.0}, 6.0)
    assert (transfer.holds, transfer.reaches_goal, transfer.clock) == (True, False, "virtual")
    slow = row("long-path-transfer", readings("long-path", OURS, {"transfer": 8.1}))
    assert slow.holds is False


def test_a_ratio_is_that_to_the_better_c_driver():
    found = readings("bursts", OURS, {"goodput": 12.0})
    found += readings("bursts", C, {"goodput": 1.0})
    found += readings("bursts", C_TUNED, {"goodput": 2.0})
    assert row("bursts-goodput", found).reached == 6.0
    group = readings("group", OURS, {"naks-per-gap": 1.0})
    group += readings("group", C, {"naks-per-gap": 2.0})
    few = row("group-naks-per-gap", group)
    assert (few.reached, few.holds, few.reaches_goal) == (0.5, True, True)


def test_a_mixed_pair_is_compared_with_ours():
    found = readings("long-path", OURS, {"goodput": 2.0})
    found += readings("long-path", OUR_RECEIVER, {"goodput": 1.0})
    mixed = row("long-path-our-receiver-goodput", found)
    assert (mixed.reached, mixed.holds) == (0.5, False)


def test_incomplete_streams_are_counted_and_void_readings_are_not():
    found = readings("long-path", C, {"transfer": 60.0}, complete=0.0)
    found += [Reading("c", "long-path", 1, void="HARNESS: x")]
    found_row = row("long-path-transfer", found)
    assert (found_row.medians, found_row.incomplete) == ({"c": 60.0}, {"c": 1})
    assert (found_row.reached, found_row.holds) == (None, None)


def test_every_tail_must_be_complete():
    whole = readings("tail", OURS, *[{}] * 999)
    assert row("tail-complete", whole).holds is True
    assert row("tail-complete", whole + readings("tail", OURS, {}, complete=0.0)).holds is False


def test_a_limit_is_not_known_to_hold_if_a_run_was_cancelled():
    """A cancelled benchmark with 948 of 1,000 streams once reported that its limit `held`."""
    found = readings("tail", OURS, *[{}] * 946)
    found += [Reading("ours", "tail", 946 + each, void="cancelled") for each in range(2)]
    tail = row("tail-complete", found)
    assert (tail.reached, tail.void_count, tail.holds, tail.reaches_goal) == (1.0, 2, None, None)


def test_a_page_names_each_value():
    titles = {each.name: each.title for each in figures.FIGURES}
    assert titles["long-path-naks-per-gap"] == "NAKs per gap"
    assert titles["long-path-our-receiver-goodput"] == "goodput (C sends, ours receives)"
    assert [each.value for each in figures.FIGURES if not each.needs_all] == ["missing-per-lost"]


def test_each_figure_has_a_path_and_a_name_of_its_own():
    cases = {each.case for each in figures.PATHS}
    assert {each.case for each in figures.FIGURES} == cases
    assert len({each.name for each in figures.FIGURES}) == len(figures.FIGURES)
