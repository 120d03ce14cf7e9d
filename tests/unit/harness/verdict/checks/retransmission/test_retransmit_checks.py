"""Retransmits: one for each NAK; any other is reported."""

import copy

import numpy as np
import pytest

from tests.naive import retransmits as naive
from tests.unit.harness.verdict.judged import judged
from tests.unit.harness.verdict.synthetic_run import SyntheticRun, make_run, nak
from windtunnel.harness.artifact.run_dir import RunDir
from windtunnel.harness.verdict.checks.retransmission.retransmit_checks import (
    find_unrequested,
    retransmits_only_if_asked,
)
from windtunnel.harness.verdict.core.evidence import Evidence
from windtunnel.harness.verdict.core.outcome import Outcome


@pytest.fixture
def run(tmp_path) -> SyntheticRun:
    return make_run(tmp_path)


def finding_of(run):
    return retransmits_only_if_asked(Evidence(run.write()), run.traffic)


def again(run):
    """Return the third retransmit at the publisher's host."""
    position = run.decisions[2][12]
    index = int(np.searchsorted(run.log.frames["position"], position))
    frame = run.frame_bytes(index)
    return [each for each in run.packets["a"] if each.payload == frame][1], position


def naks(run):
    return [each for each in run.packets["a"] if each.kind == "NAK"]


def test_requested_data_may_be_retransmitted(run):
    finding = finding_of(run)
    assert finding.outcome is Outcome.PASS
    assert finding.facts == {"frames": 30, "unasked": 0, "short_sends": 0}


def test_a_frame_retransmitted_without_a_nak_is_reported(run):
    packet, position = again(run)
    run.packets["a"].remove(naks(run)[2])
    finding = finding_of(run)
    assert (finding.outcome, finding.position) == (Outcome.FAIL, position)
    assert f"the frame at position {position} was retransmitted without a NAK" in finding.text
    assert finding.evidence == ("captures/a.pcap",)
    assert packet.kind == "DATA"


def test_a_nak_after_the_retransmit_does_not_justify_it(run):
    packet, position = again(run)
    naks(run)[2].time_ns = packet.time_ns + 1
    assert finding_of(run).position == position


def test_a_nak_answered_twice_is_reported(run):
    packet, position = again(run)
    twice = copy.copy(packet)
    twice.time_ns += 10
    run.packets["a"].append(twice)
    finding = finding_of(run)
    assert (finding.outcome, finding.position) == (Outcome.FAIL, position)
    asked_twice = copy.copy(naks(run)[2])
    asked_twice.time_ns += 1
    run.packets["a"].append(asked_twice)
    assert finding_of(run).outcome is Outcome.PASS


def test_a_nak_for_the_adjacent_frame_does_not_request_this_frame(run):
    _, position = again(run)
    asked = naks(run)[2]
    asked.payload = nak(position - 64, 64)
    assert finding_of(run).position == position
    asked.payload = nak(position - 64, 96)
    assert finding_of(run).outcome is Outcome.PASS


def test_a_datagram_that_the_system_refused_may_be_sent_again(run):
    run.packets["a"].remove(naks(run)[2])
    run.values["a/16"] = 1
    finding = finding_of(run)
    assert finding.outcome is Outcome.PASS
    assert finding.facts["unasked"] == 1
    run.packets["a"].remove(naks(run)[5])
    assert finding_of(run).outcome is Outcome.FAIL


@pytest.mark.parametrize("name", ["captures/a.pcap", "hosts/a/counters.json"])
def test_missing_evidence_is_inconclusive(run, name):
    path = run.write()
    (RunDir(path).path / name).unlink()
    finding = judged(retransmits_only_if_asked, Evidence(path), run.traffic)
    assert finding.outcome is Outcome.INCONCLUSIVE
    assert name in finding.text


@pytest.mark.parametrize("seed", range(20))
def test_agrees_with_the_reference_implementation(seed):
    chance = np.random.default_rng(seed)
    sendings = sorted(
        zip(
            (chance.integers(0, 12, 30) * 32).tolist(),
            chance.integers(0, 100, 30).tolist(),
            strict=True,
        )
    )
    starts = np.sort(chance.integers(0, 12, 25) * 32)
    lengths = chance.integers(0, 5, 25) * 32
    times = chance.integers(0, 100, 25)
    positions, sent = (np.array(each, dtype=np.int64) for each in zip(*sendings, strict=True))
    low = np.searchsorted(starts, positions - int(lengths.max()), side="right")
    wrong = np.zeros(len(positions), dtype=np.bool_)
    find_unrequested(positions, sent, starts, starts + lengths, times, low, wrong)
    ranges = list(zip(starts.tolist(), (starts + lengths).tolist(), times.tolist(), strict=True))
    assert wrong.tolist() == naive.unrequested(sendings, ranges)
    assert 0 < wrong.sum() < len(wrong)
