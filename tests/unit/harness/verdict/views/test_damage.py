"""Only bits that the scenario corrupts may differ."""

import zlib

import pytest

from tests.unit.harness.verdict.synthetic_run import make_run
from windtunnel.harness.artifact.middlebox.decision import CORRUPT
from windtunnel.harness.verdict.checks.delivery.delivery import delivered_intact, delivered_once
from windtunnel.harness.verdict.checks.logs.log_comparison import image_log_equals_publication
from windtunnel.harness.verdict.core.evidence import Evidence
from windtunnel.harness.verdict.core.outcome import Outcome
from windtunnel.harness.verdict.views.coverage import positions_covered

BIT = 8 * (32 + 5) + 3
"""Bit 3 of the sixth byte of the payload."""


@pytest.fixture(params=[True, False])
def run(request, tmp_path):
    made = make_run(tmp_path, reliable=request.param, drops=False)
    fault = made.case.faults[0] if made.case.faults else None
    if fault is None:
        made_with = make_run(tmp_path / "other", reliable=request.param)
        fault = made_with.case.faults[0]
    corrupt = fault.model_copy(update={"action": "corrupt", "field": "payload", "bits": 2})
    made.case = made.case.model_copy(update={"faults": (corrupt,)})
    return made


def damaged_frame(run):
    """Return a message in one frame, long enough to be unique."""
    log = run.log.frames
    whole = (log["flags"] == 0xC0) & (log["frame_length"] > 64) & (log["message"] >= 0)
    return int(whole.nonzero()[0][3])


def deliver_damaged(run, index, masks):
    """Deliver a frame with changed bits to the application."""
    row = run.log.frames[index]
    message = int(row["message"])
    position, data = run.messages[message]
    changed = bytearray(data)
    for byte, mask in masks.items():
        changed[byte] ^= mask
    run.messages[message] = (position, bytes(changed))
    checksum = zlib.crc32(bytes(changed))
    seen = [each[0] for each in run.frames].index(int(row["position"]))
    run.frames[seen] = (*run.frames[seen][:2], checksum)


def findings(run):
    evidence = Evidence(run.write())
    deliver = delivered_once if run.traffic.reliable else delivered_intact
    return [look(evidence, run.traffic) for look in (deliver, positions_covered)]


def test_the_corrupted_bits_may_differ(run):
    index = damaged_frame(run)
    run.decide(index, CORRUPT, detail=BIT)
    deliver_damaged(run, index, {5: 0b11000})
    assert [each.outcome for each in findings(run)] == [Outcome.PASS] * 2


def test_a_damaged_frame_that_was_repaired_passes_too(run):
    run.decide(damaged_frame(run), CORRUPT, detail=BIT)
    assert [each.outcome for each in findings(run)] == [Outcome.PASS] * 2


@pytest.mark.parametrize("masks", [{5: 0b1000}, {5: 0b11001}, {6: 0b11000}, {5: 0b11000, 9: 1}])
def test_any_other_bit_is_the_drivers_fault(run, masks):
    index = damaged_frame(run)
    run.decide(index, CORRUPT, detail=BIT)
    deliver_damaged(run, index, masks)
    assert [each.outcome for each in findings(run)] == [Outcome.FAIL] * 2


def test_the_same_bits_of_another_frame_are_the_drivers_fault(run):
    index = damaged_frame(run)
    run.decide(index + 1, CORRUPT, detail=BIT)
    deliver_damaged(run, index, {5: 0b11000})
    assert [each.outcome for each in findings(run)] == [Outcome.FAIL] * 2


@pytest.mark.parametrize(
    ("mask", "outcome"), [(0b11000, Outcome.PASS), (0b1000, Outcome.FAIL), (0b11001, Outcome.FAIL)]
)
def test_the_log_of_the_image_may_differ_in_the_corrupted_bits_only(run, mask, outcome):
    log = run.log.frames
    late = (log["flags"] == 0xC0) & (log["frame_length"] > 64)
    index = int(late.nonzero()[0][-2])
    run.decide(index, CORRUPT, detail=BIT)
    run.logs["b"][run.in_log(int(log["position"][index])) + 32 + 5] ^= mask
    finding = image_log_equals_publication(Evidence(run.write()), run.traffic)
    assert finding.outcome is outcome
