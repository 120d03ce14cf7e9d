"""The summary of a comparison: totals, kinds of differences, and the smallest example of each."""

from windtunnel.harness.simulator.swarm.comparison import Comparison
from windtunnel.harness.simulator.swarm.result import Result


def result(seed, frames, tested, ours):
    return Result(seed, "", "", (), "", frames, "", tested, ours)


def made():
    comparison = Comparison()
    comparison.add(result(1, 500, {"NAK": 3, "SM": 9}, {"NAK": 2, "SM": 9}))
    comparison.add(result(2, 100, {"NAK": 7, "SM": 8}, {"NAK": 4, "SM": 9}))
    comparison.add(result(3, 50, {"NAK": 1, "SM": 5}, {"NAK": 1, "SM": 5}))
    comparison.add(result(4, 50, {"SM": 6}, {"SM": 7}))
    return comparison


def test_counts_kinds_and_totals():
    comparison = made()
    assert comparison.kinds == {"behaviour": 2, "equal": 1, "timing": 1}
    nak, sm = comparison.rows
    assert (nak["figure"], nak["ours"], nak["tested"], nak["different_trials"]) == ("NAK", 7, 11, 2)
    assert (sm["figure"], sm["ours"], sm["tested"], sm["different_trials"]) == ("SM", 30, 28, 2)


def test_the_example_is_the_trial_with_the_fewest_frames():
    nak, sm = made().rows
    assert (nak["example_seed"], nak["example_ours"], nak["example_tested"]) == (2, 4, 7)
    assert sm["example_seed"] == 4


def test_a_trial_that_did_not_end_is_not_compared():
    comparison = Comparison()
    comparison.add(result(1, 0, {}, {"NAK": 2}))
    comparison.add(result(2, 0, {"NAK": 2}, {}))
    assert (comparison.rows, dict(comparison.kinds)) == ([], {})


def test_the_table_names_the_example():
    lines = list(made().lines())
    assert lines[0] == "compared with `ours`: 2 behaviour, 1 equal, 1 timing"
    assert lines[2].split() == ["NAK", "7", "11", "2", "seed", "2:", "4", "and", "7"]
