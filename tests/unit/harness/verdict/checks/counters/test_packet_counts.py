"""Counters against captures: exact for sent packets, bounded for received ones."""

import json
import struct
from dataclasses import replace

import pytest

from tests.unit.harness.verdict.synthetic_events import write_with_event
from tests.unit.harness.verdict.synthetic_group import C_ADDRESS, CHANNEL
from tests.unit.harness.verdict.synthetic_run import (
    ADDRESS,
    PORT,
    SESSION_ID,
    STEP_NS,
    TERM_LENGTH,
    TRAFFIC,
    Packet,
    SyntheticRun,
    heartbeat,
    make_run,
)
from windtunnel.harness.artifact.host.application import Part, SubscriberFacts
from windtunnel.harness.artifact.middlebox.frame_class import PAD
from windtunnel.harness.artifact.run.manifest import SubjectFacts
from windtunnel.harness.scenario.resolved.case import HostCase
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


@pytest.mark.parametrize(("name", "outcome"), [("a/0", PASS), ("a/9", PASS), ("a/8", FAIL)])
def test_what_another_stream_sends_to_several_destinations_is_not_compared(run, name, outcome):
    """It is counted once, to however many destinations it goes. All else is compared."""
    other = run.traffic.model_copy(
        update={"id": "two", "stream_id": 1002, "to_host": "c", "channel": CHANNEL, "ordinal": 1}
    )
    hosts = (*run.case.hosts, HostCase(name="c", address=C_ADDRESS))
    traffic = (run.traffic, other)
    run.case = run.case.model_copy(update={"hosts": hosts, "traffic": traffic})
    run.values[name] += 1
    found = counters_agree_with_packets(Evidence(run.write()), [traffic[0]])[0]
    assert (found.about, found.outcome) == ("a", outcome)
    if outcome is PASS:
        expected = "with several destinations or publishers: Bytes sent, Heartbeats sent"
        assert found.text.endswith(expected)


def test_feedback_of_other_members_of_a_group_is_not_received(run, monkeypatch):
    """A capture contains it, but the driver is not in the group of the control address."""
    monkeypatch.setitem(ADDRESS, "c", C_ADDRESS)
    run.values["b/1"] = 0
    least = int(by_host(run)["b"].text.partition("capture shows ")[2].split()[0])
    message = next(each for each in run.packets["b"] if each.kind == "SM")
    other = replace(message, source="c", destination="b", ports=(PORT, PORT))
    run.packets["b"].append(replace(other, time_ns=message.time_ns + STEP_NS))
    run.values["b/1"] = least
    assert by_host(run)["b"].outcome is PASS
    run.values["b/1"] -= 1
    assert by_host(run)["b"].outcome is FAIL


def of_session(payload: bytes, at: int, session_id: int) -> bytes:
    return payload[:at] + struct.pack("<i", session_id) + payload[at + 4 :]


@pytest.mark.parametrize(("after_ns", "outcome"), [(-STEP_NS, FAIL), (STEP_NS, PASS)])
def test_feedback_for_an_ended_session_need_not_be_counted(run, after_ns, outcome):
    """The publisher was killed, and its successor has another session."""
    first = next(each for each in run.packets["a"] if each.kind == "DATA")
    run.packets["a"].append(replace(first, payload=of_session(first.payload, 12, 7)))
    run.values["a/0"] += len(first.payload)
    message = next(each for each in run.packets["a"] if each.kind == "SM")
    run.packets["a"] = [each for each in run.packets["a"] if each.kind != "SM"]
    run.values["a/8"] = 0
    time_ns = first.time_ns - 200 * STEP_NS + after_ns
    late = replace(message, time_ns=time_ns, payload=of_session(message.payload, 8, 7))
    run.packets["a"].append(late)
    assert by_host(run)["a"].outcome is outcome


def restarted(run, at_ns: int, parts: list[Part]) -> Evidence:
    """Return the evidence of a run in which b's driver was killed and restarted."""
    path = write_with_event(run, "kill", "b", "driver", (at_ns - STEP_NS, at_ns))
    document = run.folder.host("b").subscriber(TRAFFIC).document
    facts = SubscriberFacts.read(document)
    assert facts is not None
    replace(facts, parts=parts).write(document)
    return Evidence(path)


def count_since(packets: list[Packet], time_ns: int, source: str, kind: str) -> int:
    own = [each for each in packets if each.source == source and each.kind == kind]
    return sum(each.time_ns >= time_ns for each in own)


def test_a_restarted_driver_has_counted_what_it_sent_since(run):
    messages = [each.time_ns for each in run.packets["b"] if each.kind == "SM"]
    at_ns = messages[len(messages) // 2] - STEP_NS // 4
    parts = [
        Part(SESSION_ID, 0, 100, False, messages[0], at_ns),
        Part(SESSION_ID, 200, 300, True, at_ns, messages[-1]),
    ]
    assert counters_agree_with_packets(restarted(run, at_ns, parts), [run.traffic])[1].outcome is (
        FAIL
    )
    packets = run.packets["b"]
    run.values["b/5"] = count_since(packets, at_ns, "b", "NAK")
    run.values["b/7"] = count_since(packets, at_ns, "b", "SM")
    run.values["b/1"] = sum(
        len(each.payload) for each in packets if each.source == "a" and each.time_ns >= at_ns
    )
    findings = counters_agree_with_packets(restarted(run, at_ns, parts), [run.traffic])
    assert findings[1].outcome is PASS
    run.values["b/7"] += 1
    findings = counters_agree_with_packets(restarted(run, at_ns, parts), [run.traffic])
    assert findings[1].outcome is FAIL


@pytest.mark.parametrize(("is_read", "outcome"), [(False, PASS), (True, FAIL)])
def test_heartbeats_between_two_images_need_not_be_counted(run, is_read, outcome):
    messages = [each.time_ns for each in run.packets["b"] if each.kind == "SM"]
    beat = next(each for each in run.packets["b"] if each.kind == "HEARTBEAT")
    beat.time_ns, beat.payload = messages[5] + STEP_NS // 4, heartbeat(0)
    run.values["b/10"] = 0
    last_ns = run.now_ns + 1_000_000_000
    parts = [
        Part(SESSION_ID, 0, 100, False, messages[0], messages[4] + 200 * STEP_NS),
        Part(SESSION_ID, 200, 300, True, messages[7], last_ns),
    ]
    if is_read:
        parts = [Part(SESSION_ID, 0, 300, True, messages[0], last_ns)]
    found = counters_agree_with_packets(restarted(run, STEP_NS, parts), [run.traffic])[1]
    assert found.outcome is outcome
