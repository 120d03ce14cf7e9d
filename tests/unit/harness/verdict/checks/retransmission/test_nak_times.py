"""NAKs when they are due: first ones, retries, and the random delays of a group."""

import copy
import math

import numpy as np
import pytest

from tests.unit.harness.verdict.judged import judged
from tests.unit.harness.verdict.synthetic_run import STEP_NS, SyntheticRun, make_run
from tests.unit.harness.verdict.views.test_pauses import happen, pause
from windtunnel.harness.verdict.checks.retransmission.nak_times import (
    GROUP_BACKOFF_NS,
    SLACK_NS,
    naks_in_time,
)
from windtunnel.harness.verdict.core.evidence import Evidence
from windtunnel.harness.verdict.core.outcome import Outcome

PASS, FAIL = Outcome.PASS, Outcome.FAIL
WAIT_NS = STEP_NS // 2
"""Time from the frame after each gap to its NAK."""
NAK_DELAY = "|nak-delay=15us"
ALL_GAPS = "|windtunnel.nak-all-gaps=true"
GROUP = "|control=10.64.0.10:24400|control-mode=dynamic"


@pytest.fixture(params=["", ALL_GAPS])
def run(request, tmp_path) -> SyntheticRun:
    made = make_run(tmp_path)
    made.case = made.case.model_copy(update={"fidelity": "sim"})
    return with_channels(made, receive=f"{NAK_DELAY}{request.param}")


@pytest.fixture
def first_only(tmp_path) -> SyntheticRun:
    made = make_run(tmp_path)
    made.case = made.case.model_copy(update={"fidelity": "sim"})
    return with_channels(made, receive=NAK_DELAY)


def with_channels(run, receive="", channel=""):
    (traffic,) = run.case.traffic
    before = traffic.receive
    if "nak-delay" in receive:
        before = before.replace(NAK_DELAY, "")
    changed = {"receive": before + receive, "channel": traffic.channel + channel}
    run.case = run.case.model_copy(update={"traffic": (traffic.model_copy(update=changed),)})
    return run


def finding_of(run, evidence=None):
    return naks_in_time(evidence or Evidence(run.write()), run.traffic)


def nak_of(run, index):
    return [each for each in run.packets["b"] if each.kind == "NAK"][index]


def repair_of(run, index):
    frame = int(np.searchsorted(run.log.frames["position"], run.decisions[index][12]))
    content = run.frame_bytes(frame)
    return next(each for each in run.packets["b"] if each.payload == content)


def delay(run, index, more_ns):
    """Delay a NAK and its repair."""
    repair_of(run, index).time_ns += more_ns
    nak_of(run, index).time_ns += more_ns


def test_naks_when_they_are_due_are_a_pass(run):
    finding = finding_of(run)
    assert finding.outcome is PASS
    assert finding.text.startswith("30 gaps were requested 500000 to 500000 ns")
    assert finding.facts == {"gaps": 30}


@pytest.mark.parametrize(("more_ns", "outcome"), [(15_000, PASS), (15_001, FAIL)])
def test_a_late_nak_is_reported(run, more_ns, outcome):
    assert SLACK_NS == WAIT_NS
    delay(run, 4, more_ns)
    finding = finding_of(run)
    assert finding.outcome is outcome
    if outcome is FAIL:
        assert f"{run.decisions[4][12]} was not " in finding.text
        assert " until 515000 ns after" in finding.text


def test_a_nak_that_was_never_sent_is_reported(run):
    run.packets["b"].remove(nak_of(run, 4))
    assert finding_of(run).outcome is FAIL


def test_in_real_time_naks_may_be_late(run):
    delay(run, 4, STEP_NS)
    assert finding_of(run).outcome is FAIL
    run.case = run.case.model_copy(update={"fidelity": "netns"})
    assert finding_of(run).outcome is PASS


def test_a_paused_driver_may_be_late(run):
    delay(run, 4, 2 * STEP_NS)
    begun_ns = nak_of(run, 4).time_ns - 2 * STEP_NS
    evidence = happen(run, pause(begun_ns, begun_ns + 2 * STEP_NS))
    assert finding_of(run, evidence).outcome is PASS
    evidence = happen(run, pause(begun_ns, begun_ns + STEP_NS))
    assert finding_of(run, evidence).outcome is FAIL


@pytest.mark.parametrize(("again_ms", "outcome"), [(14, PASS), (40, FAIL)])
def test_a_repair_that_a_paused_driver_read_late_took_longer(tmp_path, again_ms, outcome):
    run = make_run(tmp_path)
    run.case = run.case.model_copy(update={"fidelity": "sim"})
    with_channels(run, receive=NAK_DELAY + ALL_GAPS)
    begun_ns = repair_of(run, 28).time_ns - 10
    ended_ns = begun_ns + 20 * STEP_NS
    asked = nak_of(run, 29)
    asked.time_ns = ended_ns + STEP_NS // 10
    again = copy.copy(asked)
    again.time_ns += again_ms * STEP_NS
    run.packets["b"].append(again)
    repair_of(run, 29).time_ns = again.time_ns + STEP_NS // 10
    finding = finding_of(run, happen(run, pause(begun_ns, ended_ns)))
    assert finding.outcome is outcome, finding.text


@pytest.mark.parametrize(("delay_us", "outcome"), [(1_000, PASS), (1_001, FAIL)])
def test_a_nak_before_the_delay_is_reported(run, delay_us, outcome):
    with_channels(run, receive=f"|nak-delay={delay_us}us")
    finding = finding_of(run)
    assert finding.outcome is outcome
    if outcome is FAIL:
        assert "was sent 500000 ns after its gap could be found" in finding.text


def test_a_gap_that_is_filled_before_the_delay_needs_no_nak(run):
    with_channels(run, receive="|nak-delay=3ms")
    for index in range(30):
        run.packets["b"].remove(nak_of(run, 0))
        repair_of(run, index)
    assert finding_of(run).outcome is PASS


def repeat(run, index, waits_ns):
    """Repeat a NAK after each of the times, and delay its repair until after the last."""
    first = nak_of(run, index)
    after_ns = 0
    for wait_ns in waits_ns:
        after_ns += wait_ns
        again = copy.copy(first)
        again.time_ns += after_ns
        run.packets["b"].append(again)
    repair_of(run, index).time_ns = first.time_ns + after_ns + STEP_NS // 10


@pytest.mark.parametrize(("last_ns", "outcome"), [(2_000_000, PASS), (2_000_001, FAIL)])
def test_a_retry_is_due_after_the_retry_delay(first_only, last_ns, outcome):
    repeat(first_only, 29, [1_600_000, 1_700_000, last_ns])
    finding = finding_of(first_only)
    assert finding.outcome is outcome
    if outcome is FAIL:
        assert finding.text.startswith("NAK 4 for position")


@pytest.mark.parametrize(("number", "outcome"), [(14, FAIL), (15, PASS)])
def test_the_retry_delay_doubles_after_sixteen_naks(first_only, number, outcome):
    repeat(first_only, 29, [*([1_600_000] * number), 3_400_000])
    assert finding_of(first_only).outcome is outcome


def in_group(run, waits_ns):
    """Let each gap's NAK be sent after a time."""
    with_channels(run, channel=GROUP)
    for index, wait_ns in enumerate(waits_ns):
        delay(run, index, int(wait_ns) - WAIT_NS)
    return run


def random_ns(share):
    rate = math.log(10) + 1
    return GROUP_BACKOFF_NS / rate * math.log1p(share * math.expm1(rate))


def test_random_delays_of_a_group_are_a_pass(run):
    waits_ns = [min(random_ns((index + 0.5) / 30), 8_000_000) for index in range(30)]
    assert finding_of(in_group(run, waits_ns)).outcome is PASS


def test_a_group_without_random_delays_is_reported(run):
    finding = finding_of(in_group(run, [WAIT_NS] * 30))
    assert finding.outcome is FAIL
    assert finding.text.startswith("30 of 30 gaps were requested within 38")


def test_a_group_waits_at_most_the_maximum_backoff(run):
    in_group(run, [8_000_000] * 29)
    for more_ns, outcome in ((10_000_000, PASS), (1, FAIL)):
        delay(run, 29, more_ns)
        assert finding_of(run).outcome is outcome


def test_missing_evidence_is_inconclusive(run):
    path = run.write()
    run.folder.capture("b").unlink()
    assert judged(naks_in_time, Evidence(path), run.traffic).outcome is Outcome.INCONCLUSIVE
