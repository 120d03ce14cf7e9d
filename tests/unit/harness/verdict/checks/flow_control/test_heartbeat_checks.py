"""Heartbeats: missing, late and misplaced ones are reported."""

import struct

import pytest

from tests.unit.harness.verdict.checks.flow_control.test_status_message_checks import wait
from tests.unit.harness.verdict.synthetic_group import join, write
from tests.unit.harness.verdict.synthetic_run import (
    A_TO_B,
    INITIAL_TERM_ID,
    STEP_NS,
    TERM_LENGTH,
    SyntheticRun,
    heartbeat,
    make_run,
)
from windtunnel.harness.verdict.checks.flow_control.heartbeat_checks import heartbeats_in_silence
from windtunnel.harness.verdict.core.evidence import Evidence
from windtunnel.harness.verdict.core.kind import Kind
from windtunnel.harness.verdict.core.outcome import Outcome

FAIL, PASS = Outcome.FAIL, Outcome.PASS


@pytest.fixture
def run(tmp_path) -> SyntheticRun:
    return make_run(tmp_path)


def finding_of(run):
    return heartbeats_in_silence(Evidence(run.write()), run.traffic)


def data(run):
    return [each for each in run.packets["a"] if each.kind == "DATA"]


def end_of(packet) -> int:
    """Return the end position of a frame."""
    length, offset, term_id = struct.unpack_from("<i4xi8xi", packet.payload)
    return (term_id - INITIAL_TERM_ID) * TERM_LENGTH + offset + (length + 31) // 32 * 32


def rest(run, ms: int, *beats_ms: int, sent: int | None = None) -> None:
    """Pause data after the 20th frame, with heartbeats at some times. `sent` is their position."""
    first = data(run)[20]
    start_ns = first.time_ns + STEP_NS // 4
    position = end_of(first) if sent is None else sent
    wait(run, start_ns, ms * STEP_NS)
    for beat_ms in beats_ms:
        run.now_ns = start_ns + (beat_ms - 1) * STEP_NS
        run.send("a", heartbeat(position), "HEARTBEAT")
    run.now_ns = max(each.time_ns for each in run.packets["b"])
    run.rest()


def test_without_a_pause_of_data_there_is_nothing_to_check(run):
    finding = finding_of(run)
    assert finding.outcome is Outcome.INCONCLUSIVE
    assert "no heartbeat was due" in finding.text


def test_a_pause_with_heartbeats_is_a_pass(run):
    rest(run, 340, 100, 200, 300)
    finding = finding_of(run)
    assert finding.outcome is PASS, finding.text
    assert finding.facts["silences"] == 1


@pytest.mark.parametrize(("ms", "outcome"), [(190, PASS), (230, FAIL)])
def test_a_missing_heartbeat_is_reported(run, ms, outcome):
    rest(run, ms)
    finding = finding_of(run)
    assert finding.outcome is outcome, finding.text
    assert ("no data and no heartbeat for" in finding.text) == (outcome is FAIL)


def test_retransmits_do_not_show_the_position_of_the_sender(run):
    rest(run, 340)
    again = data(run)[3]
    run.now_ns = data(run)[20].time_ns + 150 * STEP_NS
    run.send("a", again.payload, "DATA")
    run.now_ns = max(each.time_ns for each in run.packets["b"])
    assert finding_of(run).outcome is FAIL


@pytest.mark.parametrize("off", [-32, 32])
def test_a_heartbeat_with_another_position_violates_the_protocol(run, off):
    rest(run, 150, 100, sent=end_of(data(run)[20]) + off)
    finding = finding_of(run)
    assert finding.outcome is FAIL
    assert finding.kind is Kind.PROTOCOL
    assert "the end of the data sent" in finding.text


@pytest.mark.parametrize(("off", "outcome"), [(0, Outcome.INCONCLUSIVE), (-32, FAIL)])
def test_a_destination_that_was_added_late_has_the_same_heartbeats(run, monkeypatch, off, outcome):
    """Their position is the end of the data that others were sent, before it was added."""
    rest(run, 150, 100, sent=end_of(data(run)[20]) + off)
    late_ns = data(run)[20].time_ns + 1
    join(run, monkeypatch, first="b")
    packets = run.packets["a"]
    run.packets["a"] = [
        each for each in packets if each.destination != "c" or each.time_ns > late_ns
    ]
    evidence = Evidence(write(run))
    finding = heartbeats_in_silence(evidence, run.traffic.between("a", "c"))
    assert finding.outcome is outcome, finding.text


def test_silence_after_the_publisher_ended_is_no_fault(run):
    rest(run, 150, 100)
    files = run.folder.host("a").publisher("one")
    path = run.write()
    text = files.document.read_text()
    ended_ns = max(each.time_ns for each in data(run))
    assert f'"ended_ns": {run.now_ns}' in text
    late = text.replace(f'"ended_ns": {run.now_ns}', f'"ended_ns": {run.now_ns + 400 * STEP_NS}')
    files.document.write_text(late)
    assert heartbeats_in_silence(Evidence(path), run.traffic).outcome is FAIL
    early = text.replace(f'"ended_ns": {run.now_ns}', f'"ended_ns": {ended_ns}')
    files.document.write_text(early)
    assert heartbeats_in_silence(Evidence(path), run.traffic).outcome is PASS


@pytest.mark.parametrize(("flags", "outcome"), [(0xE0, PASS), (0xC0, FAIL)])
def test_silence_after_a_replay_was_closed_is_no_fault(run, flags, outcome):
    """The workload that requested a replay ends later than the archive's publication."""
    rest(run, 150, 100)
    for packet in run.packets["a"]:
        if packet.kind == "HEARTBEAT" and packet.payload[5] == 0xE0:
            packet.payload = packet.payload[:5] + bytes([flags]) + packet.payload[6:]
    run.now_ns += 400 * STEP_NS
    replay = run.traffic.model_copy(update={"replays": run.traffic.id})
    assert heartbeats_in_silence(Evidence(run.write()), replay).outcome is outcome


def test_a_link_that_loses_heartbeats_is_no_fault_of_the_sender(run):
    rest(run, 340, 100, 200, 300)
    assert run.links[A_TO_B].frames["HEARTBEAT"].received == 6
    run.packets["b"] = [each for each in run.packets["b"] if each.kind != "HEARTBEAT"]
    assert finding_of(run).outcome is PASS


def test_a_stream_without_data_and_heartbeats_is_reported_as_one_that_cannot_be_judged(run):
    run.packets["a"] = [each for each in run.packets["a"] if each.kind in ("SETUP", "SM")]
    finding = finding_of(run)
    assert (finding.outcome, finding.about) == (Outcome.INCONCLUSIVE, run.traffic.id)
    assert "has neither data nor heartbeats" in finding.text
