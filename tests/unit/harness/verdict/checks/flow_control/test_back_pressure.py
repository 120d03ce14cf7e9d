"""snd-bpe counts each time that a window stopped its sender."""

import struct

import pytest

from tests.unit.harness.verdict.judged import judged
from tests.unit.harness.verdict.synthetic_run import WINDOW, make_run
from windtunnel.harness.verdict.checks.flow_control.back_pressure import back_pressure_counted
from windtunnel.harness.verdict.core.evidence import Evidence
from windtunnel.harness.verdict.core.outcome import Outcome

WINDOW_AT = 24


def finding_of(run, counted, **traffic):
    run.case = run.case.model_copy(update={"fidelity": "sim"})
    run.sample("a", "snd-bpe", counted)
    run.sample("a", "pub-pos", run.log.end_position)
    changed = run.traffic.model_copy(update=traffic)
    return back_pressure_counted(Evidence(run.write()), changed)


def narrow_windows(run, window):
    """Let the status messages that the publisher receives have a shorter window."""
    for each in run.packets["a"]:
        if each.kind == "SM":
            payload = bytearray(each.payload)
            struct.pack_into("<i", payload, WINDOW_AT, window)
            each.payload = bytes(payload)


def test_a_sender_that_is_never_stopped_counts_nothing(tmp_path):
    assert finding_of(make_run(tmp_path), 0).outcome is Outcome.PASS


def test_an_event_without_a_reason_is_reported(tmp_path):
    finding = finding_of(make_run(tmp_path), 1)
    assert finding.outcome is Outcome.FAIL
    assert "snd-bpe is 1, expected 0 to 0" in finding.text


def test_events_that_are_not_counted_are_reported(tmp_path):
    run = make_run(tmp_path)
    narrow_windows(run, WINDOW // 4)
    finding = finding_of(run, 0)
    assert finding.outcome is Outcome.FAIL
    assert 0 < finding.facts["least"] <= finding.facts["most"]


def test_each_event_may_be_counted(tmp_path):
    run = make_run(tmp_path)
    narrow_windows(run, WINDOW // 4)
    most = finding_of(run, 0).facts["most"]
    assert finding_of(run, most).outcome is Outcome.PASS
    assert finding_of(run, most + 1).outcome is Outcome.FAIL


@pytest.mark.parametrize(
    ("name", "text"), [("snd-bpe", "no counter of type 13"), ("pub-pos", "no pub-pos")]
)
def test_a_missing_counter_is_inconclusive(tmp_path, name, text):
    run = make_run(tmp_path)
    run.case = run.case.model_copy(update={"fidelity": "sim"})
    run.sample("a", "pub-pos" if name == "snd-bpe" else "snd-bpe", 0)
    finding = judged(back_pressure_counted, Evidence(run.write()), run.traffic)
    assert finding.outcome is Outcome.INCONCLUSIVE
    assert text in finding.text


def test_groups_are_not_judged(tmp_path):
    run = make_run(tmp_path)
    channel = "aeron:udp?control-mode=dynamic|control=10.0.0.1:24325"
    assert "several receivers" in finding_of(run, 9, channel=channel).text
