"""Counters of an image's gaps: which images have them, and their values."""

import copy

import numpy as np
import pytest

from tests.unit.harness.verdict import synthetic_run
from tests.unit.harness.verdict.judged import judged
from tests.unit.harness.verdict.synthetic_loss import let_arrive
from tests.unit.harness.verdict.synthetic_run import STEP_NS, SyntheticRun, data_header, make_run
from tests.unit.harness.verdict.views.test_pauses import happen, pause
from windtunnel.harness.artifact.run.manifest import SubjectFacts
from windtunnel.harness.verdict.checks.counters import gap_counters
from windtunnel.harness.verdict.checks.counters.gap_counters import SLACK_NS, gap_counters_agree
from windtunnel.harness.verdict.core.evidence import Evidence
from windtunnel.harness.verdict.core.outcome import Outcome

PASS, FAIL = Outcome.PASS, Outcome.FAIL
OPEN, OLDEST, RETRIES, REPAIR, EARLY = (
    "rcv-gaps-open", "rcv-oldest-gap", "rcv-nak-retries", "rcv-repair-time",
    "rcv-gaps-filled-early",
)  # fmt: skip
ALL_GAPS = "|windtunnel.nak-all-gaps=true"
EVIDENCE = "|windtunnel.gap-fill-datagrams=4"
REPAIR_NS = 3 * STEP_NS // 2
"""Time from each NAK to the frame that it asked for."""


@pytest.fixture(autouse=True)
def counters(monkeypatch):
    """Give the receiver's driver the counters of gaps, as far as a run has values for them."""
    names = {OPEN: (64, 5304), OLDEST: (65, 5305), RETRIES: (66, 5306), REPAIR: (67, 5307)}
    monkeypatch.setitem(
        synthetic_run.COUNTERS, "b", {**synthetic_run.COUNTERS["b"], **names, EARLY: (68, 5308)}
    )


def with_receive(run: SyntheticRun, more: str) -> SyntheticRun:
    (traffic,) = run.case.traffic
    changed = traffic.model_copy(update={"receive": traffic.receive + more})
    run.case = run.case.model_copy(update={"traffic": (changed,)})
    return run


@pytest.fixture
def run(tmp_path) -> SyntheticRun:
    run = with_receive(make_run(tmp_path), ALL_GAPS)
    run.values |= {OPEN: 0, OLDEST: 0, RETRIES: 0, REPAIR: REPAIR_NS}
    return run


@pytest.fixture
def filling(tmp_path) -> SyntheticRun:
    run = with_receive(make_run(tmp_path, reliable=False), EVIDENCE)
    run.values |= {OPEN: 0, OLDEST: 0, EARLY: 0}
    return run


def finding_of(run):
    return gap_counters_agree(Evidence(run.write()), run.traffic)


def test_counters_that_agree_are_a_pass(run):
    finding = finding_of(run)
    assert finding.outcome is PASS
    assert finding.text.endswith(f"{RETRIES} 0, {REPAIR} {REPAIR_NS}")


def test_an_image_without_the_modes_has_no_counters(tmp_path):
    run = make_run(tmp_path)
    assert finding_of(run).outcome is PASS
    run.values[OPEN] = 0
    finding = finding_of(run)
    assert finding.outcome is FAIL
    assert finding.text == "the image has counters of type 5304, expected none"


@pytest.mark.parametrize("name", [OPEN, OLDEST, RETRIES, REPAIR])
def test_an_image_with_the_mode_has_all_counters(run, name):
    del run.values[name]
    assert finding_of(run).outcome is FAIL


def test_a_driver_without_an_image_of_the_session_is_not_judged(run):
    for name in (OPEN, OLDEST, RETRIES, REPAIR, "rcv-pos"):
        del run.values[name]
    finding = finding_of(run)
    assert finding.outcome is Outcome.INCONCLUSIVE
    assert "has no image of the session" in finding.text


@pytest.mark.parametrize("driver", ["java", "aeronmd:/opt/aeronmd"])
def test_other_drivers_have_none(run, driver):
    run.manifest.subjects = {"b": SubjectFacts("subscriber", driver, "1.53", {})}
    assert finding_of(run).outcome is FAIL
    for name in (OPEN, OLDEST, RETRIES, REPAIR):
        del run.values[name]
    assert finding_of(run).outcome is PASS


@pytest.mark.parametrize("name", [OPEN, OLDEST])
def test_a_gap_after_the_whole_stream_was_read_is_reported(run, name):
    run.values[name] = 1
    finding = finding_of(run)
    assert finding.outcome is FAIL
    assert finding.text == f"counter {name} is 1, expected 0 at the end of the stream"


def repeat(run, index, after_ns):
    """Repeat a NAK, and delay its repair until then. Returns the repair."""
    first = [each for each in run.packets["b"] if each.kind == "NAK"][index]
    repair = repair_of(run, index)
    repair.time_ns = first.time_ns + after_ns + REPAIR_NS
    again = copy.copy(first)
    again.time_ns += after_ns
    run.packets["b"].append(again)
    return repair


def repair_of(run, index):
    frame = int(np.searchsorted(run.log.frames["position"], run.decisions[index][12]))
    content = run.frame_bytes(frame)
    return next(each for each in run.packets["b"] if each.payload == content)


@pytest.mark.parametrize(("value", "outcome"), [(1, FAIL), (2, PASS), (3, FAIL)])
def test_each_nak_for_bytes_of_an_earlier_one_is_a_retry(run, value, outcome):
    repeat(run, 3, 400 * STEP_NS)
    repeat(run, 5, 400 * STEP_NS)
    run.values[RETRIES] = value
    finding = finding_of(run)
    assert finding.outcome is outcome
    if outcome is FAIL:
        assert finding.text == f"counter {RETRIES} is {value}, expected 2"


@pytest.mark.parametrize(("value", "outcome"), [(0, PASS), (7, PASS), (-1, FAIL)])
def test_with_more_gaps_than_rows_other_naks_may_count_as_retries(run, monkeypatch, value, outcome):
    monkeypatch.setattr(gap_counters, "ROWS", 29)
    run.values[RETRIES] = value
    assert finding_of(run).outcome is outcome


def test_retries_of_several_images_are_not_compared(run):
    run.values[RETRIES] = 7
    assert finding_of(run).outcome is FAIL
    (traffic,) = run.case.traffic
    port = traffic.port
    several = traffic.model_copy(update={"ports": (port, port + 1)})
    run.case = run.case.model_copy(update={"traffic": (several,)})
    assert finding_of(run).outcome is PASS


@pytest.mark.parametrize(
    ("value", "outcome"),
    [
        (0, PASS),  # Repairs of 1.5 ms are within the tolerance.
        (REPAIR_NS + SLACK_NS, PASS),
        (REPAIR_NS + SLACK_NS + 1, FAIL),
    ],
)
def test_the_repair_time_is_at_most_the_longest_repair(run, value, outcome):
    run.values[REPAIR] = value
    assert finding_of(run).outcome is outcome


@pytest.mark.parametrize(("more_ns", "outcome"), [(0, PASS), (-1, FAIL)])
def test_the_repair_time_is_at_least_the_shortest_repair(run, more_ns, outcome):
    for index in range(len(run.decisions)):
        repair_of(run, index).time_ns += 40 * STEP_NS
    run.values[REPAIR] = REPAIR_NS + 40 * STEP_NS - SLACK_NS + more_ns
    assert finding_of(run).outcome is outcome


def test_a_frame_that_arrived_just_before_its_nak_may_be_the_repair(run):
    for index in range(len(run.decisions)):
        repair = repair_of(run, index)
        repair.time_ns -= REPAIR_NS + 1
        later = copy.copy(repair)
        later.time_ns += 40 * STEP_NS
        run.packets["b"].append(later)
    run.values[REPAIR] = 1
    assert finding_of(run).outcome is PASS


def test_a_paused_driver_measures_the_pause(run):
    run.values[REPAIR] = REPAIR_NS + SLACK_NS + 30 * STEP_NS
    assert finding_of(run).outcome is FAIL
    begun_ns = repair_of(run, 4).time_ns
    for lasts_ns, outcome in ((30 * STEP_NS, PASS), (30 * STEP_NS - 1, FAIL)):
        evidence = happen(run, pause(begun_ns, begun_ns + lasts_ns))
        assert gap_counters_agree(evidence, run.traffic).outcome is outcome


def test_datagrams_that_sockets_dropped_make_it_inconclusive(run):
    run.values[REPAIR] = 10**9
    run.rcvbuf_errors["b"] = 1
    finding = finding_of(run)
    assert finding.outcome is Outcome.INCONCLUSIVE
    assert "sockets dropped 1 captured datagrams" in finding.text


@pytest.mark.parametrize(("value", "outcome"), [(1, FAIL), (2, PASS), (3, FAIL)])
def test_each_filled_gap_of_which_a_datagram_arrived_is_counted_once(filling, value, outcome):
    for index in (2, 2, 7):
        let_arrive(filling, filling.decisions[index][12], 5 * STEP_NS)
    filling.values[EARLY] = value
    finding = finding_of(filling)
    assert finding.outcome is outcome
    if outcome is FAIL:
        assert finding.text == f"counter {EARLY} is {value}, expected 2 to 2"


@pytest.mark.parametrize(("remembered", "outcome"), [(5, PASS), (6, FAIL)])
def test_a_gap_that_was_filled_long_ago_may_be_forgotten(filling, monkeypatch, remembered, outcome):
    monkeypatch.setattr(gap_counters, "REMEMBERED", remembered)
    late_ns = repair_after(filling, 2, 5)
    let_arrive(filling, filling.decisions[2][12], late_ns)
    assert finding_of(filling).outcome is outcome


def repair_after(run, index, count):
    """Return the time from a lost frame until `count` later ones are lost, and their gaps seen."""
    return int(run.decisions[index + count][0] - run.decisions[index][0]) + 2 * STEP_NS


def test_a_forged_datagram_in_a_filled_gap_may_count(filling):
    position = filling.decisions[2][12]
    came = let_arrive(filling, filling.decisions[7][12], 5 * STEP_NS)
    came.payload = data_header(position, 64, 0xC0, 1) + bytes(32)
    for value, outcome in ((0, PASS), (1, PASS), (2, FAIL)):
        filling.values[EARLY] = value
        assert finding_of(filling).outcome is outcome


def test_missing_counters_are_inconclusive(run):
    path = run.write()
    run.folder.host("b").counters.unlink()
    assert judged(gap_counters_agree, Evidence(path), run.traffic).outcome is Outcome.INCONCLUSIVE
