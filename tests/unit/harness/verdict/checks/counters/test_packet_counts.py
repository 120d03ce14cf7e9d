"""Counters against captures: exact for sent packets, bounded for received ones."""

import json

import pytest

from tests.unit.harness.verdict.synthetic_run import (
    STEP_NS,
    TERM_LENGTH,
    TRAFFIC,
    SyntheticRun,
    heartbeat,
    make_run,
)
from windtunnel.harness.artifact.middlebox.frame_class import PAD
from windtunnel.harness.artifact.run.manifest import SubjectFacts
from windtunnel.harness.verdict.checks.counters.packet_counts import counters_agree_with_packets
from windtunnel.harness.verdict.core.evidence import Evidence
from windtunnel.harness.verdict.core.outcome import Outcome

FAIL, PASS = Outcome.FAIL, Outcome.PASS
SENT = ("a/0", "b/5", "b/7", "a/9")
"""Bytes, NAKs, status messages and heartbeats sent, by host and system counter."""


@pytest.fixture
def run(tmp_path) -> SyntheticRun:
    return make_run(tmp_path)


def findings_of(run):
    return counters_agree_with_packets(Evidence(run.write()), list(run.case.traffic))


def by_host(run):
    return {finding.about: finding for finding in findings_of(run)}


def test_true_counters_are_a_pass_on_both_hosts(run):
    findings = findings_of(run)
    assert [(each.about, each.outcome) for each in findings] == [("a", PASS), ("b", PASS)]
    assert findings[0].facts["NAKs received"] == findings[1].facts["NAKs sent"] == 30
    assert findings[0].facts["Bytes sent"] > 200_000
    assert findings[1].facts["Heartbeats received"] == 3
    assert findings[0].evidence == ("captures/a.pcap", "hosts/a/counters.json")


@pytest.mark.parametrize("deviation", [-1, 1])
@pytest.mark.parametrize("name", SENT)
def test_a_sent_count_off_by_one_is_reported(run, name, deviation):
    run.values[name] += deviation
    finding = by_host(run)[name[0]]
    assert finding.outcome is FAIL
    assert (
        f"is {run.values[name]}, but the capture shows {run.values[name] - deviation} "
        in finding.text
    )


@pytest.mark.parametrize("deviation", [-1, 0, 1])
def test_a_java_driver_counts_padding(run, deviation):
    run.manifest.subjects["a"] = SubjectFacts(side="publisher", peer="java")
    log = run.log.frames
    pads = log[log["frame_type"] == PAD]
    padding = int((pads["frame_length"].astype(int) - 32).sum())
    assert padding > 0
    run.values["a/0"] += padding + deviation
    finding = by_host(run)["a"]
    assert finding.outcome is (FAIL if deviation else PASS)
    if deviation:
        expected = run.values["a/0"] - deviation
        assert f"shows {expected} bytes of new data and of heartbeats, with" in finding.text


@pytest.mark.parametrize(("exit_code", "outcome"), [(-9, PASS), (-15, FAIL), (0, FAIL)])
@pytest.mark.parametrize("name", SENT)
def test_a_killed_driver_may_not_have_counted_its_last_packet(run, name, exit_code, outcome):
    for each in run.manifest.processes:
        if each.role == "driver" and each.name.startswith(name[0]):
            each.exit_code = exit_code
    run.values[name] -= 1
    assert by_host(run)[name[0]].outcome is outcome
    run.values[name] += 2
    assert by_host(run)[name[0]].outcome is FAIL


@pytest.mark.parametrize("name", ["a/6", "a/8", "b/10", "b/1"])
def test_a_count_above_all_arrived_packets_is_reported(run, name):
    run.values[name] += 1
    finding = by_host(run)[name[0]]
    assert finding.outcome is FAIL
    assert f"counter {name[2:]} " in finding.text
    assert f" to {run.values[name] - 1} " in finding.text


@pytest.mark.parametrize("name", ["a/6", "a/8", "b/1"])
def test_a_count_below_the_packets_that_arrived_long_before_the_end_is_reported(run, name):
    count = run.values[name]
    run.values[name] = 0
    assert by_host(run)[name[0]].outcome is FAIL
    run.values[name] = count - 1
    assert by_host(run)[name[0]].outcome is PASS


def test_packets_at_the_end_of_the_sender_may_not_be_counted(run):
    late = [each for each in run.packets["a"] if each.kind == "SM"]
    last_ns = max(each.time_ns for each in run.packets["a"] if each.source == "a")
    early = [each for each in late if each.time_ns <= last_ns - 200 * STEP_NS]
    run.values["a/8"] = len(early)
    assert by_host(run)["a"].outcome is PASS
    run.values["a/8"] -= 1
    finding = by_host(run)["a"]
    assert f"the capture shows {len(early)} to {len(late)} status messages" in finding.text


def test_datagrams_that_a_full_socket_dropped_may_not_be_counted(run):
    run.values["a/6"] = 0
    run.rcvbuf_errors["a"] = 30
    assert by_host(run)["a"].outcome is PASS
    run.rcvbuf_errors["a"] = 1
    assert by_host(run)["a"].outcome is FAIL


def test_a_full_socket_excuses_no_wrong_count_of_sent_packets(run):
    run.rcvbuf_errors["b"] = 30
    run.values["b/7"] -= 1
    assert by_host(run)["b"].outcome is FAIL


def test_heartbeats_count_while_an_image_is_read(run):
    beats = [each for each in run.packets["b"] if each.kind == "HEARTBEAT"]
    first_message = min(each.time_ns for each in run.packets["b"] if each.kind == "SM")
    beats[0].time_ns = first_message + STEP_NS // 4
    beats[0].payload = heartbeat(run.case.traffic[0].initial_position)
    run.values["b/10"] = 0
    finding = by_host(run)["b"]
    assert finding.outcome is FAIL
    assert "1 to 3 heartbeats for images" in finding.text
    run.values["b/10"] = 1
    assert by_host(run)["b"].outcome is PASS


@pytest.mark.parametrize(("ahead", "outcome"), [(0, FAIL), (32, PASS)])
def test_a_heartbeat_that_an_image_must_refuse_need_not_be_counted(run, ahead, outcome):
    """After a PAD, with a stalled subscriber, the driver rejects it as too far ahead."""
    beats = [each for each in run.packets["b"] if each.kind == "HEARTBEAT"]
    message = min(
        (each for each in run.packets["b"] if each.kind == "SM"), key=lambda each: each.time_ns
    )
    position = run.case.traffic[0].initial_position + TERM_LENGTH // 2 + ahead
    beats[0].time_ns, beats[0].payload = message.time_ns + STEP_NS // 4, heartbeat(position)
    run.values["b/10"] = 0
    assert by_host(run)["b"].outcome is outcome


def test_nothing_must_be_counted_once_the_reader_has_gone(run):
    path = run.write()
    document = run.folder.host("b").subscriber(TRAFFIC).document
    facts = json.loads(document.read_text())
    document.write_text(json.dumps({**facts, "ended_ns": facts["started_ns"]}))
    counters = run.folder.host("b").counters
    counters.write_text(counters.read_text().replace(str(run.values["b/1"]), "1"))
    findings = counters_agree_with_packets(Evidence(path), list(run.case.traffic))
    assert findings[1].outcome is PASS


def test_a_status_message_that_requests_a_setup_is_not_counted_as_sent(run):
    for host in ("a", "b"):
        packet = next(each for each in run.packets[host] if each.kind == "SM")
        packet.payload = packet.payload[:5] + b"\x80" + packet.payload[6:]
    run.values["b/7"] -= 1
    assert {each.outcome for each in findings_of(run)} == {PASS}


@pytest.mark.parametrize(
    "name", ["captures/b.pcap", "hosts/b/counters.json", "hosts/b/subscriber-one.json"]
)
def test_missing_evidence_is_inconclusive(run, name):
    path = run.write()
    (path / name).unlink()
    findings = counters_agree_with_packets(Evidence(path), list(run.case.traffic))
    assert findings[1].outcome is Outcome.INCONCLUSIVE
    assert name in findings[1].text
