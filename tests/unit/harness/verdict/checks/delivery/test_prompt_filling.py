"""Gaps of an unreliable stream are filled at once."""

import pytest

from tests.unit.harness.verdict.judged import judged
from tests.unit.harness.verdict.synthetic_run import STEP_NS, TERM_LENGTH, make_run
from windtunnel.harness.verdict.checks.delivery.prompt_filling import gap_fills_prompt
from windtunnel.harness.verdict.core.evidence import Evidence
from windtunnel.harness.verdict.core.outcome import Outcome

MS = 1_000_000


def finding_of(run, fidelity="netns", late_ns=0):
    """Check a run in which rcv-pos moves late."""
    run.case = run.case.model_copy(update={"fidelity": fidelity})
    run.samples["b"] = [
        (time_ns + late_ns if name == "rcv-pos" and value else time_ns, name, value)
        for time_ns, name, value in run.samples["b"]
    ]
    return gap_fills_prompt(Evidence(run.write()), run.traffic)


@pytest.mark.parametrize(
    ("fidelity", "late_ns", "outcome"),
    [
        ("netns", 0, Outcome.PASS),
        ("netns", 60_000_000, Outcome.PASS),
        ("netns", 120_000_000, Outcome.FAIL),
        ("sim", 0, Outcome.PASS),
        ("sim", 60_000_000, Outcome.FAIL),
    ],
)
def test_late_fills_are_reported(tmp_path, fidelity, late_ns, outcome):
    finding = finding_of(make_run(tmp_path, reliable=False), fidelity, late_ns)
    assert finding.outcome is outcome, finding.text
    assert ("after it could be detected" in finding.text) == (outcome is Outcome.FAIL)


@pytest.mark.parametrize(
    ("is_acknowledged", "outcome"), [(True, Outcome.FAIL), (False, Outcome.PASS)]
)
def test_a_frame_that_may_have_been_rejected_shows_no_gap(tmp_path, is_acknowledged, outcome):
    run = make_run(tmp_path, reliable=False)
    run.case = run.case.model_copy(update={"fidelity": "sim"})
    unseen = range(TERM_LENGTH, TERM_LENGTH + 30_000)
    run.samples["b"] = [
        (time_ns, name, value)
        for time_ns, name, value in run.samples["b"]
        if name != "rcv-pos" or value not in unseen
    ]
    if not is_acknowledged:
        run.packets["b"] = [each for each in run.packets["b"] if each.kind != "SM"]
    finding = gap_fills_prompt(Evidence(run.write()), run.traffic)
    assert finding.outcome is outcome, finding.text


def test_a_heartbeat_that_may_have_been_rejected_shows_no_gap(tmp_path):
    run = make_run(tmp_path, reliable=False)
    run.packets["b"] = [each for each in run.packets["b"] if each.kind != "SM"]
    run.samples["b"] = [
        (time_ns + 60 * MS if name == "rcv-pos" and value > TERM_LENGTH else time_ns, name, value)
        for time_ns, name, value in run.samples["b"]
    ]
    finding = finding_of(run, "sim")
    assert finding.outcome is Outcome.PASS, finding.text


def test_reliable_streams_are_not_judged(tmp_path):
    finding = finding_of(make_run(tmp_path))
    assert finding.outcome is Outcome.INCONCLUSIVE
    assert "gaps are repaired" in finding.text


def test_missing_samples_are_inconclusive(tmp_path):
    run = make_run(tmp_path, reliable=False)
    folder = run.write()
    run.folder.host("b").counter_samples.unlink()
    assert judged(gap_fills_prompt, Evidence(folder), run.traffic).outcome is Outcome.INCONCLUSIVE


ON_EVIDENCE = "|windtunnel.gap-fill-datagrams=2|windtunnel.gap-fill-delay="


def waiting_run(path, delay, more_datagrams, late_ns):
    """Return a simulated run whose gaps are filled after a number of later datagrams more than the
    first one, and some time.
    """
    run = make_run(path, reliable=False)
    (traffic,) = run.case.traffic
    changed = traffic.model_copy(update={"receive": traffic.receive + ON_EVIDENCE + delay})
    run.case = run.case.model_copy(update={"traffic": (changed,), "fidelity": "sim"})
    more_ns = more_datagrams * STEP_NS + late_ns
    run.samples["b"] = [
        (time_ns + more_ns if name == "rcv-pos" and value else time_ns, name, value)
        for time_ns, name, value in run.samples["b"]
    ]
    run.seen_ns = [time_ns + more_ns for time_ns in run.seen_ns]
    return run


@pytest.mark.parametrize(
    ("delay", "more_datagrams", "late_ns", "outcome"),
    [
        ("5s", 1, 0, Outcome.PASS),
        ("5s", 1, 1_900_000, Outcome.PASS),
        ("5s", 4, 0, Outcome.FAIL),
        ("1ms", 1, 1_900_000, Outcome.PASS),
        ("1ms", 4, 0, Outcome.FAIL),
    ],
)
def test_a_gap_is_filled_when_its_evidence_is_complete(
    tmp_path, delay, more_datagrams, late_ns, outcome
):
    run = waiting_run(tmp_path, delay, more_datagrams, late_ns)
    finding = gap_fills_prompt(Evidence(run.write()), run.traffic)
    assert finding.outcome is outcome, finding.text
    assert ("after 2 later datagrams, or" in finding.text) == (outcome is Outcome.FAIL)


def test_a_reader_that_sees_the_fill_in_time_is_enough(tmp_path):
    run = waiting_run(tmp_path, "5s", 1, 0)
    run.samples["b"] = [
        (time_ns + 30 * MS if name == "rcv-pos" and value else time_ns, name, value)
        for time_ns, name, value in run.samples["b"]
    ]
    assert gap_fills_prompt(Evidence(run.write()), run.traffic).outcome is Outcome.PASS
    run.seen_ns = [time_ns + 30 * MS for time_ns in run.seen_ns]
    assert gap_fills_prompt(Evidence(run.write()), run.traffic).outcome is Outcome.FAIL


def test_evidence_is_not_compared_in_real_time(tmp_path):
    run = waiting_run(tmp_path, "5s", 9, 0)
    run.case = run.case.model_copy(update={"fidelity": "netns"})
    finding = gap_fills_prompt(Evidence(run.write()), run.traffic)
    assert finding.text == "not compared: gaps are filled on evidence"
