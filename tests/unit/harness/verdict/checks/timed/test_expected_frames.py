"""Timed expectations with synthetic evidence: for each that passes, the nearest one that fails."""

import dataclasses

import pytest

from tests.unit.harness.verdict.synthetic_run import SESSION_ID, START_NS, STEP_NS, make_run
from windtunnel.harness.artifact.host.host_event import AppliedEvent, write_applied_events
from windtunnel.harness.scenario.frame_expectation import NAME
from windtunnel.harness.scenario.resolved.case import CheckCase
from windtunnel.harness.scenario.schema.host_event import EventCase
from windtunnel.harness.verdict.checks.timed.expected_frames import expected_frames
from windtunnel.harness.verdict.core.evidence import Evidence
from windtunnel.harness.verdict.core.kind import Kind
from windtunnel.harness.verdict.core.outcome import Outcome
from windtunnel.harness.verdict.judge import judge

HOURS = "600min"


@pytest.fixture
def run(tmp_path):
    return make_run(tmp_path / "run")


def finding_of(run, **changed):
    """Return the finding of one expectation, and the time of each of its decisions."""
    rule = run.case.faults[0].id
    arguments = {"after": rule, "then": "NAK", "from": "b", "to": "a", "within": HOURS} | changed
    run.case = run.case.model_copy(update={"expect": (CheckCase(name=NAME, arguments=arguments),)})
    run.write()
    (found,) = expected_frames(Evidence(run.path), arguments)
    return found


def decided_ns(run):
    return [each[0] for each in run.decisions]


def waits_ns(run, kind, host, payload_of=None):
    """Return the times from each decision to the first later packet of a kind from a host."""
    return [
        min(each.time_ns - at for each in run.packets[host]
            if each.kind == kind and each.source == host and each.time_ns > at)
        for at in decided_ns(run)
    ]  # fmt: skip


def end_late(run):
    """Extend the traffic beyond any expectation."""
    run.manifest.phases = [
        dataclasses.replace(each, ended_ns=START_NS + 48 * 3600 * 10**9)
        if each.name == "traffic" else each
        for each in run.manifest.phases
    ]  # fmt: skip
    assert any(each.name == "traffic" for each in run.manifest.phases)


def test_naks_in_time_pass_and_a_limit_below_the_longest_fails(run):
    end_late(run)
    waits = waits_ns(run, "NAK", "b")
    found = finding_of(run, within=f"{max(waits)}ns")
    assert found.outcome is Outcome.PASS
    assert found.facts == {"frames": len(waits), "wrong": 0, "unknown": 0}
    assert f"the first after {min(waits)} to {max(waits)} ns" in found.text
    found = finding_of(run, within=f"{max(waits) - 1}ns")
    assert found.outcome is Outcome.FAIL
    index = waits.index(max(waits))
    assert found.facts["decided_ns"] == decided_ns(run)[index]
    assert found.position == run.decisions[index][12]
    assert found.text.startswith(f"{waits.count(max(waits))} of {len(waits)} frame")
    assert f"of stream 1001, session {SESSION_ID}, position {found.position}, " in found.text
    assert f"the first one left after {max(waits)} ns" in found.text
    assert f"matched at {found.facts['decided_ns']} ns" in found.text


def test_the_whole_range_must_be_requested(run):
    end_late(run)
    assert finding_of(run).outcome is Outcome.PASS
    first = list(run.decisions[0])
    first[11] += 32
    run.decisions[0] = tuple(first)
    reaches = finding_of(run)
    # The NAK ended where the frame ended, which is now 32 bytes later.
    assert reaches.outcome is Outcome.FAIL
    assert "expected 1 NAK from b to a, found 0 within 600min; none followed" in reaches.text


def test_retransmits_answer_and_the_frame_itself_does_not(run):
    end_late(run)
    assert finding_of(run, **{"then": "DATA", "from": "a", "to": "b"}).outcome is Outcome.PASS
    kept = {each.time_ns for each in run.packets["a"] if each.time_ns <= max(decided_ns(run))}
    run.packets["a"] = [each for each in run.packets["a"] if each.time_ns in kept]
    found = finding_of(run, **{"then": "DATA", "from": "a", "to": "b"})
    assert found.outcome is Outcome.FAIL
    assert "none followed" in found.text


@pytest.mark.parametrize("argument", ["from", "to", "after"])
def test_only_hosts_and_rules_of_the_case_are_looked_up(run, argument):
    end_late(run)
    outside = "../../outside"
    capture = run.path / "captures" / "b.pcap"
    finding_of(run)
    (run.path.parent / "outside.pcap").write_bytes(capture.read_bytes())
    found = finding_of(run, **{argument: outside})
    assert found.outcome is Outcome.HARNESS
    assert f"expected `{argument}` to name one of " in found.text
    assert repr(outside) in found.text


def test_an_answer_that_is_still_forbidden_when_the_run_ends_is_described(run):
    found = finding_of(run, then="ERR", count=0)
    assert found.outcome is Outcome.INCONCLUSIVE
    assert found.text.endswith("had passed, with no ERR from b to a")


def test_several_answers_can_be_expected(run):
    end_late(run)
    assert finding_of(run, then="SM", count=1).outcome is Outcome.PASS
    found = finding_of(run, then="SM", count=1000)
    assert found.outcome is Outcome.FAIL
    assert "expected 1000 SM from b to a, found " in found.text


def test_an_answer_can_be_forbidden(run):
    end_late(run)
    assert finding_of(run, then="ERR", count=0).outcome is Outcome.PASS
    waits = waits_ns(run, "NAK", "b")
    assert finding_of(run, count=0, within=f"{min(waits) - 1}ns").outcome is Outcome.PASS
    found = finding_of(run, count=0, within=f"{min(waits)}ns")
    assert found.outcome is Outcome.FAIL
    assert "expected no NAK from b to a, found 1 within" in found.text


def test_a_run_that_ended_too_early_is_unknown(run):
    found = finding_of(run, then="ERR")
    assert found.outcome is Outcome.INCONCLUSIVE
    assert found.facts["wrong"] == 0
    assert "the run ended before 600min had passed, with 0 of 1 ERR from b to a" in found.text
    assert finding_of(run, then="ERR", count=0).outcome is Outcome.INCONCLUSIVE
    # An answer that arrived proves the expectation, also in a run that ended early.
    assert finding_of(run).outcome is Outcome.PASS
    assert finding_of(run, count=0).outcome is Outcome.FAIL


def test_missing_evidence_is_unknown(run):
    run.write()
    end_late(run)
    finding_of(run)
    run.folder.capture("b").unlink()
    arguments = run.case.expect[0].arguments
    (found,) = expected_frames(Evidence(run.path), arguments)
    assert found.outcome is Outcome.INCONCLUSIVE
    assert found.text == "captures/b.pcap: is missing"


def test_a_rule_that_matched_nothing_is_unknown(run):
    run.decisions.clear()
    found = finding_of(run)
    assert found.outcome is Outcome.INCONCLUSIVE
    assert found.text == f"rule {run.case.faults[0].id} matched no frame between a and b"


def test_a_paused_driver_has_more_time(run):
    end_late(run)
    waits = waits_ns(run, "NAK", "b")
    within = f"{max(waits) - STEP_NS // 4}ns"
    before = finding_of(run, within=within).facts["wrong"]
    late = decided_ns(run)[waits.index(max(waits))]
    event = EventCase(
        id="rest", host="b", process="driver", trigger="after", at=1, action="pause", lasts_ns=1
    )
    run.case = run.case.model_copy(update={"events": (event,)})
    rest = AppliedEvent("rest", "b", "pause", ["driver"], late + 1, late + STEP_NS // 2)
    write_applied_events(run.folder.host_events, [rest])
    assert finding_of(run, within=within).facts["wrong"] == before - 1


def test_the_verdict_contains_the_check_with_the_kind_timing(run):
    end_late(run)
    finding_of(run, within="1ns")
    (row,) = [each for each in judge(run.path).checks if each.name == NAME]
    assert (row.outcome, row.kind) == (Outcome.FAIL, Kind.TIMING)
    assert row.about == f"NAK b->a after {run.case.faults[0].id}"
    run.manifest.complete = False
    run.write()
    (row,) = [each for each in judge(run.path).checks if each.name == NAME]
    assert row.outcome is Outcome.INCONCLUSIVE


def test_invalid_arguments_are_errors_of_the_harness(run):
    run.case = run.case.model_copy(
        update={"expect": (CheckCase(name=NAME, arguments={"after": "nope"}),)}
    )
    run.write()
    (row,) = [each for each in judge(run.path).checks if each.name == NAME]
    assert row.outcome is Outcome.HARNESS
