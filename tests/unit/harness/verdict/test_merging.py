"""Checks that compare a capture with one image do not apply to a subscriber that merges."""

from dataclasses import replace

import pytest

from tests.unit.harness.verdict.synthetic_run import SyntheticRun, make_run
from windtunnel.harness.scenario.schema.merge import MergeCase
from windtunnel.harness.verdict.checks.counters.rejected_datagrams import over_under_runs_counted
from windtunnel.harness.verdict.checks.retransmission.recovery import naks_and_retransmits_agree
from windtunnel.harness.verdict.core.evidence import Evidence
from windtunnel.harness.verdict.core.outcome import Outcome
from windtunnel.harness.verdict.registry import CHECKS, OF_CAPTURED_IMAGE

MERGE = MergeCase(after_bytes=1, live="aeron:udp?endpoint=b:3|control=a:2", port=3)


@pytest.fixture
def run(tmp_path) -> SyntheticRun:
    made = make_run(tmp_path)
    # A subscriber that merges has no tap.
    made.frames, made.seen_ns = [], []
    return made


def merge(run):
    traffic = run.traffic.model_copy(update={"merges": MERGE, "recorded": "b"})
    run.case = run.case.model_copy(update={"traffic": (traffic,)})


@pytest.mark.parametrize("name", sorted(OF_CAPTURED_IMAGE))
def test_such_a_check_is_not_applicable(run, name):
    merge(run)
    (finding,) = CHECKS[name].run(Evidence(run.write()), [run.traffic])
    assert finding.outcome is Outcome.INCONCLUSIVE
    assert finding.text.startswith("not applicable: the subscriber and its archive have")


def test_such_a_check_applies_to_other_subscribers(run):
    (finding,) = CHECKS["positions_covered"].run(Evidence(run.write()), [run.traffic])
    assert finding.outcome is Outcome.FAIL


@pytest.mark.parametrize(("merges", "outcome"), [(False, Outcome.FAIL), (True, Outcome.PASS)])
def test_frames_for_two_images_need_not_be_counted_as_under_runs(run, merges, outcome):
    if merges:
        merge(run)
    messages = [each for each in run.packets["b"] if each.kind == "SM"]
    early = next(each for each in run.packets["b"] if each.kind == "DATA")
    run.packets["b"].append(replace(early, time_ns=messages[len(messages) // 2].time_ns + 1))
    (finding,) = over_under_runs_counted(Evidence(run.write()), [run.traffic])
    assert finding.outcome is outcome, finding.text


@pytest.mark.parametrize(("merges", "outcome"), [(False, Outcome.FAIL), (True, Outcome.PASS)])
def test_naks_may_have_been_sent_over_the_loopback(run, merges, outcome):
    if merges:
        merge(run)
    run.values["rcv-naks-sent"] += 1
    (finding, *_) = naks_and_retransmits_agree(Evidence(run.write()), [run.traffic])
    assert finding.outcome is outcome, finding.text
    run.values["rcv-naks-sent"] -= 2
    (finding, *_) = naks_and_retransmits_agree(Evidence(run.write()), [run.traffic])
    assert finding.outcome is Outcome.FAIL, finding.text
