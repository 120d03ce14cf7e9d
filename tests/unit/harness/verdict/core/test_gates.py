"""Gates: each passes, fails on the smallest defect, and fails without its evidence."""

import itertools
import struct

import pytest

from tests.unit.harness.verdict.judged import gated
from tests.unit.harness.verdict.synthetic_run import A_TO_B, B_TO_A, SyntheticRun, make_run
from windtunnel.harness.artifact.host.host_facts import CaptureFacts
from windtunnel.harness.artifact.middlebox.decision import read_decisions
from windtunnel.harness.artifact.middlebox.ledger import FrameAccount
from windtunnel.harness.artifact.records import write_records
from windtunnel.harness.scenario.resolved.case import HostCase, LinkCase
from windtunnel.harness.verdict.core.evidence import Evidence
from windtunnel.harness.verdict.core.outcome import Outcome
from windtunnel.harness.verdict.gates.ledger_gates import faults_happened, ledger_balanced
from windtunnel.harness.verdict.gates.run_gates import (
    both_sides_talked,
    captures_complete,
    manifest_complete,
    sockets_dropped_nothing,
)
from windtunnel.harness.verdict.registry import GATES

INCONCLUSIVE, HARNESS, PASS = Outcome.INCONCLUSIVE, Outcome.HARNESS, Outcome.PASS


@pytest.fixture
def run(tmp_path) -> SyntheticRun:
    return make_run(tmp_path)


def findings_of(gate, run):
    return gate(Evidence(run.write()))


def closed_gate(findings):
    """Return the only finding that is not a PASS."""
    (found,) = [finding for finding in findings if finding.outcome is not PASS]
    return found


@pytest.mark.parametrize("name", GATES)
def test_every_gate_is_open_after_a_valid_run(run, name):
    findings = findings_of(GATES[name], run)
    assert findings
    assert {finding.outcome for finding in findings} == {PASS}


@pytest.mark.parametrize("name", GATES)
def test_no_gate_is_open_on_an_empty_folder(tmp_path, name):
    findings = gated(GATES[name], Evidence(tmp_path))
    assert findings
    assert {finding.outcome for finding in findings} == {INCONCLUSIVE}


def test_an_error_of_the_harness_closes_a_gate(run):
    run.manifest.errors = ["the relay died", "and more"]
    finding = closed_gate(findings_of(manifest_complete, run))
    assert finding.outcome is HARNESS
    assert "the relay died (and 1 more)" in finding.text


def test_an_incomplete_run_closes_a_gate(run):
    run.manifest.complete = False
    assert closed_gate(findings_of(manifest_complete, run)).outcome is INCONCLUSIVE


def test_another_payload_closes_a_gate(run):
    path = run.write()
    run.folder.payload.write_bytes(b"another")
    assert closed_gate(manifest_complete(Evidence(path))).outcome is HARNESS


@pytest.mark.parametrize("host", ["a", "b"])
def test_a_capture_that_lost_packets_closes_a_gate(run, host):
    path = run.write()
    count = len(run.packets[host])
    CaptureFacts(count, 1).write(run.folder.capture_statistics(host))
    finding = closed_gate(captures_complete(Evidence(path)))
    assert (finding.outcome, finding.about) == (INCONCLUSIVE, host)
    assert "1 packets dropped by the kernel" in finding.text


def test_a_capture_without_some_of_its_packets_closes_a_gate(run):
    path = run.write()
    CaptureFacts(len(run.packets["a"]) + 1, 0).write(run.folder.capture_statistics("a"))
    assert "captured but not in the file" in closed_gate(captures_complete(Evidence(path))).text


def set_back(file, fall_ns, *, same_direction):
    """Timestamp a packet before its predecessor in the same or the other direction."""
    content = bytearray(file.read_bytes())
    at, records = 24, []
    while at < len(content):
        seconds, fraction, length = struct.unpack_from("<III", content, at)
        source = bytes(content[at + 16 + 26 : at + 16 + 30])
        records.append((at, seconds * 10**9 + fraction, source))
        at += 16 + length
    before, after = next(
        (earlier, later)
        for earlier, later in itertools.pairwise(records)
        if (earlier[2] == later[2]) is same_direction
    )
    struct.pack_into("<II", content, after[0], *divmod(before[1] - fall_ns, 10**9))
    file.write_bytes(content)


@pytest.mark.parametrize(("fall_ns", "closed_gate"), [(900_000, False), (1_000_001, True)])
def test_a_clock_that_was_set_back_closes_a_gate(run, fall_ns, closed_gate):
    path = run.write()
    set_back(run.folder.capture("b"), fall_ns, same_direction=True)
    findings = captures_complete(Evidence(path))
    assert [each.outcome for each in findings] == [PASS, INCONCLUSIVE if closed_gate else PASS]
    if closed_gate:
        assert "1000001 ns by which the clock was set back" in findings[1].text


def test_a_packet_that_was_queued_is_not_a_clock_that_was_set_back(run):
    # Incoming packets are timestamped before they are queued, outgoing packets as they leave.
    path = run.write()
    set_back(run.folder.capture("b"), 7_000_000, same_direction=False)
    assert [each.outcome for each in captures_complete(Evidence(path))] == [PASS, PASS]


def test_a_truncated_capture_closes_a_gate(run):
    path = run.write()
    file = run.folder.capture("b")
    file.write_bytes(file.read_bytes()[:-1])
    assert "incomplete packet" in closed_gate(captures_complete(Evidence(path))).text


def test_an_invalid_capture_closes_a_gate(run):
    path = run.write()
    run.folder.capture("b").write_bytes(b"\x00" * 64)
    finding = closed_gate(captures_complete(Evidence(path)))
    assert finding.outcome is HARNESS
    assert "expected the magic number of pcap" in finding.text


@pytest.mark.parametrize("link", [A_TO_B, B_TO_A])
@pytest.mark.parametrize(
    ("name", "outcome", "what"),
    [
        ("kernel_drops", HARNESS, "1 packets dropped by the kernel"),
        ("send_failures", HARNESS, "1 packets that the relay could not send"),
        ("datagrams_held_at_end", HARNESS, "1 datagrams still held"),
        ("datagrams_in", HARNESS, "1 datagrams unaccounted for"),
        ("datagrams_dropped", HARNESS, "-1 datagrams unaccounted for"),
    ],
)
def test_a_ledger_that_does_not_balance_closes_a_gate(run, link, name, outcome, what):
    account = run.links[link]
    setattr(account, name, getattr(account, name) + 1)
    finding = closed_gate(findings_of(ledger_balanced, run))
    assert (finding.outcome, finding.about) == (outcome, link)
    assert what in finding.text


@pytest.mark.parametrize("name", ["received", "sent", "dropped", "duplicated"])
def test_a_frame_class_that_does_not_balance_closes_a_gate(run, name):
    frames = run.links[A_TO_B].frames["DATA"]
    setattr(frames, name, getattr(frames, name) + 1)
    finding = closed_gate(findings_of(ledger_balanced, run))
    assert finding.outcome is HARNESS
    assert "DATA frames unaccounted for" in finding.text


def test_an_unknown_frame_class_closes_a_gate(run):
    run.links[A_TO_B].frames["GHOST"] = FrameAccount()
    assert "unknown frame class GHOST" in closed_gate(findings_of(ledger_balanced, run)).text


@pytest.mark.parametrize(("host", "way"), [("a", "in"), ("b", "out")])
def test_a_datagram_that_only_one_side_has_closes_a_gate(run, host, way):
    packet = next(
        packet for packet in run.packets[host] if packet.kind == "DATA" and packet.source == "a"
    )
    run.packets[host].remove(packet)
    finding = closed_gate(findings_of(ledger_balanced, run))
    assert (finding.outcome, finding.about) == (INCONCLUSIVE, A_TO_B)
    count = run.links[A_TO_B].datagrams_in if way == "in" else run.links[A_TO_B].datagrams_out
    assert finding.text == (
        f"datagrams {way}: the ledger has {count}, but the capture at {host} has {count - 1}"
    )


def test_a_frame_that_changed_its_kind_in_transit_closes_a_gate(run):
    packet = next(packet for packet in run.packets["b"] if packet.kind == "DATA")
    changed = bytearray(packet.payload)
    changed[4] = 1
    packet.payload = bytes(changed)
    finding = closed_gate(findings_of(ledger_balanced, run))
    assert "DATA frames out:" in finding.text


def test_a_ledger_without_a_link_closes_a_gate(run):
    del run.links[B_TO_A]
    assert "has no entry for b->a" in closed_gate(findings_of(ledger_balanced, run)).text


def test_full_sockets_of_a_reliable_stream_are_only_reported(run):
    run.rcvbuf_errors["b"] = 4
    findings = findings_of(sockets_dropped_nothing, run)
    assert [finding.outcome for finding in findings] == [PASS, PASS]
    assert "4 datagrams dropped by full socket buffers; this is not a failure" in findings[1].text


def test_full_sockets_of_an_unreliable_stream_close_a_gate(tmp_path):
    run = make_run(tmp_path, reliable=False)
    run.rcvbuf_errors["b"] = 1
    finding = closed_gate(findings_of(sockets_dropped_nothing, run))
    assert (finding.outcome, finding.about) == (INCONCLUSIVE, "b")


@pytest.mark.parametrize(
    ("host", "kind", "what"),
    [
        ("b", "SETUP", "no SETUP of stream 1001 arrived at the subscriber's host"),
        ("b", "DATA", "no DATA of stream 1001 arrived at the subscriber's host"),
        ("a", "SM", "no SM of stream 1001 arrived at the publisher's host"),
    ],
)
def test_a_side_that_sent_nothing_closes_a_gate(run, host, kind, what):
    run.packets[host] = [packet for packet in run.packets[host] if packet.kind != kind]
    finding = closed_gate(findings_of(both_sides_talked, run))
    assert (finding.outcome, finding.text) == (INCONCLUSIVE, what)
    assert not finding.excuses


@pytest.mark.parametrize("kinds", [("SM", "NAK"), ("SETUP", "DATA", "PAD", "HEARTBEAT")])
def test_a_host_that_sent_nothing_is_excused(run, kinds):
    for host in ("a", "b"):
        run.packets[host] = [each for each in run.packets[host] if each.kind not in kinds]
    finding = closed_gate(findings_of(both_sides_talked, run))
    assert (finding.outcome, finding.excuses) == (INCONCLUSIVE, True)
    run.case = run.case.model_copy(update={"fidelity": "sim"})
    finding = closed_gate(findings_of(both_sides_talked, run))
    assert (finding.outcome, finding.excuses) == (INCONCLUSIVE, False)


def test_a_rule_that_never_matched_closes_a_gate(run):
    run.decisions.clear()
    finding = closed_gate(findings_of(faults_happened, run))
    assert (finding.outcome, finding.excuses) == (INCONCLUSIVE, True)
    assert "0 frames matched, expected 16 to" in finding.text


def test_a_rule_that_matched_too_often_closes_a_gate(run):
    run.decisions *= 3
    assert "90 frames matched" in closed_gate(findings_of(faults_happened, run)).text


def test_a_rule_with_too_few_frames_closes_a_gate_but_excuses_nothing(run):
    fault = run.case.faults[0].model_copy(update={"frame_types": ("NAK",), "links": (B_TO_A,)})
    run.case = run.case.model_copy(update={"faults": (fault,)})
    finding = closed_gate(findings_of(faults_happened, run))
    assert (finding.outcome, finding.excuses) == (INCONCLUSIVE, False)
    assert "of 30 frames: sample too small: at least 66 frames are needed" in finding.text


def test_a_decision_with_another_action_than_its_rule_closes_a_gate(run):
    row = list(run.decisions[0])
    row[2] = 2
    run.decisions[0] = tuple(row)
    assert closed_gate(findings_of(faults_happened, run)).outcome is HARNESS


def test_a_decision_of_a_rule_that_does_not_exist_closes_a_gate(run):
    row = list(run.decisions[0])
    row[1] = 9
    run.decisions[0] = tuple(row)
    assert closed_gate(findings_of(faults_happened, run)).outcome is HARNESS


def test_frames_that_an_earlier_rule_matched_do_not_count_for_a_later_one(run):
    first = run.case.faults[0]
    later = first.model_copy(update={"id": "later", "share_ppb": 110_000_000})
    run.case = run.case.model_copy(update={"faults": (first, later)})
    for index in range(0, 150, 5):
        run.decide(index + 1, 1, rule=1)
    findings = findings_of(faults_happened, run)
    data = run.links[A_TO_B].frames["DATA"].received
    assert [finding.facts["eligible"] for finding in findings] == [data, data - 30]


def test_frames_of_streams_that_the_scenario_does_not_specify_do_not_count(run):
    account = run.links[A_TO_B].frames["DATA"]
    (before,) = findings_of(faults_happened, run)
    account.other_streams = 9
    (after,) = findings_of(faults_happened, run)
    assert after.facts["eligible"] == before.facts["eligible"] - 9


def test_a_missing_frame_of_a_replay_is_on_the_link_that_the_case_names(run):
    links = tuple(LinkCase(between=each) for each in (("a", "c"), ("a", "b")))
    hosts = (*run.case.hosts, HostCase(name="c", address="10.64.2.10"))
    changed = {"replays": "first", "links": links, "hosts": hosts}
    run.case = run.case.model_copy(update=changed)
    path = run.write()
    ordered = read_decisions(run.folder.decisions)
    ordered["link"] = 2
    write_records(run.folder.replayed, ordered)
    write_records(run.folder.decisions, ordered[:0])
    (finding,) = faults_happened(Evidence(path))
    assert finding.outcome is INCONCLUSIVE
    assert "the first is DATA of stream 1001 on a->b at position" in finding.text
