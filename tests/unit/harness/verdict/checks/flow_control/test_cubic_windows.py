"""With cc=cubic, the first window is ten packets, and a loss shrinks the window by a fifth."""

import struct

import pytest

from tests.unit.harness.verdict import synthetic_run
from tests.unit.harness.verdict.synthetic_run import MTU, make_run
from windtunnel.harness.verdict.checks.flow_control.cubic_windows import (
    COUNTER,
    cubic_windows_shrink,
)
from windtunnel.harness.verdict.core.evidence import Evidence
from windtunnel.harness.verdict.core.outcome import Outcome

WINDOW_AT = 24


def look(run, packets, receive="|cc=cubic", fidelity="sim"):
    """Check a run whose status messages have these windows, in packets, and then the last one."""
    messages = [each for each in run.packets["b"] if each.kind == "SM"]
    for number, each in enumerate(messages):
        window = int(packets[min(number, len(packets) - 1)] * MTU)
        payload = bytearray(each.payload)
        struct.pack_into("<i", payload, WINDOW_AT, window)
        each.payload = bytes(payload)
    run.case = run.case.model_copy(update={"fidelity": fidelity})
    traffic = run.traffic.model_copy(update={"receive": run.traffic.receive + receive})
    return cubic_windows_shrink(Evidence(run.write()), traffic)


@pytest.mark.parametrize(
    "packets", [[10], [10, 12, 9, 7], [10, 8, 6, 4], [10, 6], [10, 8, 11, 4], [10, 13, 13, 10]]
)
def test_windows_that_shrink_by_a_fifth_are_a_pass(tmp_path, packets):
    finding = look(make_run(tmp_path), packets)
    assert finding.outcome is Outcome.PASS, finding.text


@pytest.mark.parametrize(
    ("packets", "text"),
    [
        ([1, 2, 3], "the first window is 1408 bytes, expected 14080"),
        ([10, 12, 10], "shrank from 12 to 10 packets, expected 9"),
        ([10, 8, 11, 1], "shrank from 11 to 1 packets, expected 8"),
        ([10, 9], "shrank from 10 to 9 packets, expected 8"),
        ([10, 7], "shrank from 10 to 7 packets, expected 8"),
    ],
)
def test_other_windows_are_reported(tmp_path, packets, text):
    finding = look(make_run(tmp_path), packets)
    assert finding.outcome is Outcome.FAIL
    assert text in finding.text


def test_on_real_time_a_window_may_have_grown_before_it_shrank(tmp_path):
    assert look(make_run(tmp_path), [10, 9], fidelity="netns").outcome is Outcome.PASS


def test_a_window_that_is_no_number_of_packets_is_reported(tmp_path):
    run = make_run(tmp_path)
    finding = look(run, [10, 10.5])
    assert "expected packets of 1408 bytes" in finding.text


def test_streams_without_cubic_are_not_judged(tmp_path):
    finding = look(make_run(tmp_path), [1], receive="")
    assert finding.outcome is Outcome.INCONCLUSIVE
    assert "does not have cc=cubic" in finding.text


@pytest.mark.parametrize(
    ("value", "fidelity", "outcome"),
    [
        (8 * MTU, "sim", Outcome.PASS),
        (9 * MTU, "sim", Outcome.FAIL),
        (9 * MTU, "netns", Outcome.PASS),
    ],
)
def test_the_counter_ends_with_the_last_window(tmp_path, monkeypatch, value, fidelity, outcome):
    named = {**synthetic_run.COUNTERS["b"], COUNTER: (69, 10)}
    monkeypatch.setitem(synthetic_run.COUNTERS, "b", named)
    run = make_run(tmp_path)
    run.values[COUNTER] = value
    finding = look(run, [10, 8], fidelity=fidelity)
    assert finding.outcome is outcome
    if outcome is Outcome.FAIL:
        assert finding.text.startswith(f"counter {COUNTER} is {9 * MTU}, but the last window")
