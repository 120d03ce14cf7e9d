"""The end of stream: signalled at the right position and time, and received."""

import json
import struct

import pytest

from tests.unit.harness.verdict.judged import judged
from tests.unit.harness.verdict.synthetic_run import (
    STEP_NS,
    TRAFFIC,
    SyntheticRun,
    heartbeat,
    make_run,
)
from windtunnel.harness.artifact.run_dir import RunDir
from windtunnel.harness.verdict.checks.delivery.end_of_stream import eos_reaches_end
from windtunnel.harness.verdict.core.evidence import Evidence
from windtunnel.harness.verdict.core.outcome import Outcome


@pytest.fixture
def run(tmp_path) -> SyntheticRun:
    return make_run(tmp_path)


def finding_of(run, **changes):
    traffic = run.traffic.model_copy(update=changes)
    return eos_reaches_end(Evidence(run.write()), traffic)


def beats(run, host: str):
    return [each for each in run.packets[host] if each.kind == "HEARTBEAT"]


def clear_eos(run, host: str) -> None:
    """Remove the EOS flag from all heartbeats at a host."""
    for each in beats(run, host):
        each.payload = each.payload[:5] + b"\xc0" + each.payload[6:]


def change_document(run, **changes) -> None:
    """Change the subscriber's document."""
    document = run.folder.host("b").subscriber(TRAFFIC).document
    document.write_text(json.dumps({**json.loads(document.read_text()), **changes}))


def test_an_end_that_was_signalled_and_received_is_a_pass(run):
    finding = finding_of(run)
    assert finding.outcome is Outcome.PASS
    assert finding.facts == {"sent": 2, "arrived": 2, "end": run.log.end_position}
    assert finding.evidence == ("captures/a.pcap", "captures/b.pcap")


@pytest.mark.parametrize("wrong", [-32, 32])
def test_an_end_signalled_at_another_position_is_reported(run, wrong):
    end = run.log.end_position
    beats(run, "a")[1].payload = heartbeat(end + wrong, 0xE0)
    finding = finding_of(run)
    assert (finding.outcome, finding.position) == (Outcome.FAIL, end + wrong)
    assert f"an EOS heartbeat has position {end + wrong}, expected {end}" in finding.text


def test_an_end_signalled_before_all_is_sent_is_reported(run):
    last = [each for each in run.packets["a"] if each.kind == "DATA"][-1]
    beats(run, "a")[1].time_ns = last.time_ns - STEP_NS // 2
    assert "before the last data frame" in finding_of(run).text


def test_data_with_the_flag_of_the_end_is_reported(run):
    packet = [each for each in run.packets["a"] if each.kind == "DATA"][3]
    packet.payload = packet.payload[:5] + b"\xe0" + packet.payload[6:]
    finding = finding_of(run)
    assert finding.outcome is Outcome.FAIL
    assert finding.position == struct.unpack_from("<i", packet.payload, 8)[0]
    assert "has the EOS flag" in finding.text


def test_an_end_that_is_not_signalled_is_reported(run):
    clear_eos(run, "a")
    finding = finding_of(run)
    assert (finding.outcome, finding.position) == (Outcome.FAIL, run.log.end_position)
    assert "0 EOS heartbeats were sent, expected at least one" in finding.text


def test_an_end_that_must_not_be_signalled_passes(run):
    channel = run.traffic.channel + "|eos=false"
    assert finding_of(run, channel=channel).outcome is Outcome.FAIL
    clear_eos(run, "a")
    assert finding_of(run, channel=channel).outcome is Outcome.PASS


def test_a_link_that_drops_every_heartbeat_excuses_the_subject(run):
    clear_eos(run, "b")
    finding = finding_of(run)
    assert finding.outcome is Outcome.INCONCLUSIVE
    assert "the link dropped all 2 EOS heartbeats" in finding.text


@pytest.mark.parametrize(
    ("changes", "text"),
    [
        ({"eos_seen": False}, "did not see EOS"),
        ({"end_position": 96}, "saw EOS and stopped at 96"),
    ],
)
def test_a_subscriber_that_does_not_reach_the_end_is_reported(run, changes, text):
    path = run.write()
    change_document(run, **changes)
    finding = eos_reaches_end(Evidence(path), run.traffic)
    assert finding.outcome is Outcome.FAIL
    assert text in finding.text


@pytest.mark.parametrize(("host", "folder"), [("a", "publications"), ("b", "images")])
def test_a_log_with_another_end_is_reported(run, host, folder):
    run.logs[host][-4096 + 128] ^= 32
    finding = finding_of(run)
    assert finding.outcome is Outcome.FAIL
    assert f"the log in {folder} on {host} has end-of-stream position" in finding.text


def test_captures_suffice_without_logs_and_logs_do_not_without_captures(run):
    path = run.write()
    run.folder.host("b").log_index.unlink()
    assert eos_reaches_end(Evidence(path), run.traffic).outcome is Outcome.PASS
    RunDir(path).capture("b").unlink()
    assert judged(eos_reaches_end, Evidence(path), run.traffic).outcome is Outcome.INCONCLUSIVE


@pytest.mark.parametrize(
    ("closed_ms", "eos_ms", "is_late"),
    [
        # Everything had been sent for some time, so a heartbeat signals the end.
        (20, 105, False),
        (20, 106, True),
        # Otherwise, the timer signals it.
        (4, 1105, False),
        (4, 1106, True),
        (-50, 1105, False),
        (-50, 1106, True),
    ],
)
def test_the_first_signal_is_in_time_in_a_simulation(run, closed_ms, eos_ms, is_late):
    sent_ns = [each for each in run.packets["a"] if each.kind == "DATA"][-1].time_ns
    closed_ns = sent_ns + closed_ms * STEP_NS
    for index, each in enumerate(beats(run, "a")):
        each.time_ns = max(sent_ns, closed_ns) + (eos_ms if index else 0) * STEP_NS
    run.now_ns = closed_ns
    assert finding_of(run).outcome is Outcome.PASS
    run.case = run.case.model_copy(update={"fidelity": "sim"})
    finding = finding_of(run)
    assert (finding.outcome is Outcome.FAIL) == is_late
    if is_late:
        assert finding.text == (
            f"the first EOS heartbeat was sent {eos_ms} ms after the publication had been closed "
            f"and everything sent, expected {eos_ms - 1} ms at most"
        )
    settings = {"drivers": {"a": {"AERON_TIMER_INTERVAL": "2s"}}}
    run.case = run.case.model_copy(update=settings)
    assert finding_of(run).outcome is Outcome.PASS
