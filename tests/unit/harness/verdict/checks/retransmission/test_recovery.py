"""Loss recovery: NAKs and retransmits agree with the captures."""

from dataclasses import replace

import pytest

from tests.unit.harness.verdict.judged import judged
from tests.unit.harness.verdict.synthetic_events import add_earlier_session, write_with_event
from tests.unit.harness.verdict.synthetic_group import join, write
from tests.unit.harness.verdict.synthetic_run import STEP_NS, SyntheticRun, make_run, nak
from windtunnel.harness.verdict.checks.retransmission.recovery import (
    SHUTDOWN_NS,
    naks_and_retransmits_agree,
    no_naks,
    retransmits_identical,
)
from windtunnel.harness.verdict.checks.retransmission.retransmit_checks import (
    retransmits_only_if_asked,
)
from windtunnel.harness.verdict.core.evidence import Evidence
from windtunnel.harness.verdict.core.outcome import Outcome


@pytest.fixture
def reliable(tmp_path) -> SyntheticRun:
    return make_run(tmp_path)


@pytest.fixture
def unreliable(tmp_path) -> SyntheticRun:
    return make_run(tmp_path, reliable=False)


def only_requested(evidence, traffics):
    return [retransmits_only_if_asked(evidence, each) for each in traffics]


def agree(run):
    return naks_and_retransmits_agree(Evidence(run.write()), list(run.case.traffic))


def extend_run(run):
    """Extend the sender's activity, so that it has certainly processed all NAKs."""
    [each for each in run.packets["a"] if each.source == "a"][-1].time_ns += 10**9


def silent(run):
    return judged(no_naks, Evidence(run.write()), run.traffic)


def identical(run):
    return retransmits_identical(Evidence(run.write()), run.traffic)


def test_an_unreliable_receiver_that_sends_no_nak_is_a_pass(unreliable):
    assert silent(unreliable).outcome is Outcome.PASS


def test_a_captured_nak_of_an_unreliable_stream_is_reported_and_conclusive(unreliable):
    unreliable.send("b", nak(65536 + 64, 96), "NAK")
    finding = silent(unreliable)
    assert (finding.outcome, finding.conclusive, finding.position) == (Outcome.FAIL, True, 65600)
    assert (
        "1 NAKs in the capture at b, expected none; the first one is for 96 bytes at position 65600"
        in finding.text
    )


def test_a_nak_of_another_stream_is_not_attributed_to_this_one(unreliable):
    other = bytearray(nak(64, 96))
    other[12] ^= 1
    unreliable.send("b", bytes(other), "NAK")
    assert silent(unreliable).outcome is Outcome.PASS


@pytest.mark.parametrize(("name", "host"), [("rcv-naks-sent", "b"), ("snd-naks-received", "a")])
def test_a_nak_in_a_counter_alone_is_reported(unreliable, name, host):
    unreliable.values[name] = 2
    finding = silent(unreliable)
    assert finding.outcome is Outcome.FAIL
    assert f"{name} on {host} is 2, but no NAK is in any capture" in finding.text


@pytest.mark.parametrize("name", ["rcv-naks-sent", "snd-naks-received"])
def test_without_the_counter_the_absence_of_naks_is_unknown(unreliable, name):
    del unreliable.values[name]
    unreliable.samples = {
        host: [each for each in rows if each[1] != name]
        for host, rows in unreliable.samples.items()
    }
    finding = silent(unreliable)
    assert finding.outcome is Outcome.INCONCLUSIVE
    assert f"has no {name} of session" in finding.text


@pytest.mark.parametrize("host", ["a", "b"])
def test_without_a_capture_the_absence_of_naks_is_unknown(unreliable, host):
    path = unreliable.write()
    (path / f"captures/{host}.pcap").unlink()
    finding = judged(no_naks, Evidence(path), unreliable.traffic)
    assert finding.outcome is Outcome.INCONCLUSIVE
    assert f"captures/{host}.pcap: is missing" in finding.text


def test_counters_that_agree_with_the_capture_are_a_pass(reliable):
    findings = agree(reliable)
    assert [finding.outcome for finding in findings] == [Outcome.PASS] * 3
    assert findings[0].facts["naks_sent"] == 30
    assert findings[0].facts["resent_bytes"] == reliable.values["a/36"]


@pytest.mark.parametrize("deviation", [-1, 1])
@pytest.mark.parametrize("name", ["rcv-naks-sent", "snd-naks-received", "b/5", "a/6", "a/36"])
def test_a_counter_that_is_off_by_one_is_reported(reliable, name, deviation):
    extend_run(reliable)
    reliable.values[name] += deviation
    finding = (
        agree(reliable)[-1]
        if "/" not in name
        else next(each for each in agree(reliable) if each.outcome is not Outcome.PASS)
    )
    assert finding.outcome is Outcome.FAIL
    assert str(reliable.values[name]) in finding.text


@pytest.mark.parametrize(
    ("missed", "outcome"), [(2, Outcome.PASS), (3, Outcome.FAIL), (-1, Outcome.FAIL)]
)
def test_dropped_naks_excuse_an_equal_number_of_missing_ones(reliable, missed, outcome):
    extend_run(reliable)
    reliable.rcvbuf_errors["a"] = 2
    for name in ("snd-naks-received", "a/6"):
        reliable.values[name] -= missed
    findings = agree(reliable)
    assert findings[0].outcome is outcome
    assert {finding.outcome for finding in findings} == {outcome}


@pytest.mark.parametrize(("after_ns", "outcome"), [(0, Outcome.FAIL), (2 * 10**9, Outcome.PASS)])
def test_a_nak_that_comes_when_the_publication_is_gone_need_not_be_counted(
    reliable, after_ns, outcome
):
    """A delayed duplicate may arrive after the end of the stream."""
    extend_run(reliable)
    asked = next(each for each in reliable.packets["a"] if each.kind == "NAK")
    reliable.packets["a"].append(replace(asked, time_ns=asked.time_ns + 1 + after_ns))
    found = agree(reliable)
    assert found[0].outcome is outcome
    for name in ("snd-naks-received", "a/6"):
        reliable.values[name] += 1
    assert {each.outcome for each in agree(reliable)} == {Outcome.PASS}
    for name in ("snd-naks-received", "a/6"):
        reliable.values[name] += 1
    assert agree(reliable)[0].outcome is Outcome.FAIL


@pytest.mark.parametrize("name", ["snd-naks-received", "a/6"])
def test_just_before_the_end_of_a_stream_some_naks_may_not_have_been_counted(reliable, name):
    asked_ns = sorted(each.time_ns for each in reliable.packets["a"] if each.kind == "NAK")
    ends_ns = max(each.time_ns for each in reliable.packets["a"] if each.source == "a")
    late = sum(each > ends_ns - SHUTDOWN_NS for each in asked_ns)
    assert 0 < late < len(asked_ns)
    reliable.values[name] -= late
    assert {each.outcome for each in agree(reliable)} == {Outcome.PASS}
    reliable.values[name] -= 1
    assert Outcome.FAIL in {each.outcome for each in agree(reliable)}


def test_a_full_socket_excuses_no_wrong_count_of_sent_packets(reliable):
    reliable.rcvbuf_errors["b"] = 2
    reliable.values["rcv-naks-sent"] -= 1
    assert agree(reliable)[0].outcome is Outcome.FAIL


def test_a_host_that_counts_naks_without_any_is_reported(reliable):
    reliable.values["a/5"] = 1
    failing = [each for each in agree(reliable) if each.outcome is Outcome.FAIL]
    assert [(each.about, each.text) for each in failing] == [
        ("a", "counter 5 'NAKs sent' is 1, but the captures show 0")
    ]


def test_drops_without_naks_are_a_failure(tmp_path):
    run = make_run(tmp_path, drops=False)
    run.decide(9, 1)
    finding = agree(run)[0]
    assert finding.outcome is Outcome.FAIL
    assert "but 0 NAKs were sent and 0 bytes were retransmitted" in finding.text


@pytest.mark.parametrize(
    ("index", "attempt", "changes", "outcome"),
    [
        (9, 1, {}, Outcome.FAIL),
        (9, 1, {"reliable": False}, Outcome.PASS),
        (9, 2, {}, Outcome.PASS),
        (9, 1, {"rejoins": True}, Outcome.PASS),
    ],
    ids=["of a reliable stream", "of an unreliable stream", "of a retransmit", "of several images"],
)
def test_a_drop_that_leaves_no_gap_to_repair_needs_no_nak(
    tmp_path, index, attempt, changes, outcome
):
    run = make_run(tmp_path, drops=False)
    run.decide(index, 1, attempt=attempt)
    stream = run.traffic.model_copy(update=changes)
    run.case = run.case.model_copy(update={"traffic": (stream,)})
    assert agree(run)[0].outcome is outcome


def test_another_member_of_a_group_may_have_sent_the_naks(reliable, monkeypatch):
    """The retransmit goes to both, and may arrive before the other one's NAK is due."""
    reliable.decide(9, 1)
    join(reliable, monkeypatch, first="b")
    case = reliable.case.model_copy(update={"traffic": (reliable.traffic,)})
    reliable.case = case
    evidence = Evidence(write(reliable, of_streams={"rcv-naks-sent": 0}))
    decisions = evidence.decisions.copy()
    decisions["link"] = case.link_between("a", "c")
    monkeypatch.setattr(evidence, "decisions", decisions)
    (finding, *_) = naks_and_retransmits_agree(evidence, [reliable.traffic.flows[1]])
    assert finding.outcome is Outcome.PASS


@pytest.mark.parametrize(("events", "outcome"), [(1, Outcome.PASS), (0, Outcome.FAIL)])
def test_the_sessions_of_a_restarted_publisher_are_counted_together(reliable, events, outcome):
    extend_run(reliable)
    add_earlier_session(reliable, 7)
    for name in ("a/6", "b/5", "a/36"):
        reliable.values[name] *= 2
    path = reliable.write()
    if events:
        path = write_with_event(reliable, "kill", "a", "publisher", (1, 2))
    findings = naks_and_retransmits_agree(Evidence(path), list(reliable.case.traffic))
    assert findings[-1].outcome is outcome


@pytest.mark.parametrize("deviation", [-1, 0, 1])
def test_a_restarted_driver_has_counted_the_naks_that_it_sent_since(reliable, deviation):
    extend_run(reliable)
    asked_ns = sorted(each.time_ns for each in reliable.packets["b"] if each.kind == "NAK")
    span_ns = asked_ns[9] + 1, asked_ns[9] + STEP_NS // 4
    for name in ("rcv-naks-sent", "b/5"):
        reliable.values[name] = len(asked_ns) - 10 + deviation
    path = write_with_event(reliable, "kill", "b", "driver", span_ns)
    findings = naks_and_retransmits_agree(Evidence(path), list(reliable.case.traffic))
    expected = Outcome.FAIL if deviation else Outcome.PASS
    assert findings[-1].outcome is expected


def test_a_link_without_drops_and_naks_agrees(tmp_path):
    findings = agree(make_run(tmp_path, drops=False))
    assert {finding.outcome for finding in findings} == {Outcome.PASS}


@pytest.mark.parametrize("name", ["decisions.bin", "captures/a.pcap", "hosts/b/counters.json"])
def test_without_evidence_nothing_agrees(reliable, name):
    path = reliable.write()
    (path / name).unlink()
    findings = naks_and_retransmits_agree(Evidence(path), list(reliable.case.traffic))
    assert [finding.outcome for finding in findings] == [Outcome.INCONCLUSIVE]
    assert name in findings[0].text


def resend(run):
    """Return a retransmit and the original transmission of a frame."""
    first = {}
    for packet in run.packets["a"]:
        if packet.kind == "DATA":
            key = packet.payload[8:24]
            if key in first:
                return packet, first[key]
            first[key] = packet
    raise AssertionError("nothing was sent twice")


def test_retransmits_that_repeat_the_bytes_are_a_pass(reliable):
    finding = identical(reliable)
    assert finding.outcome is Outcome.PASS
    assert "30 of" in finding.text


@pytest.mark.parametrize("byte", [5, 24, 32, -1])
def test_a_retransmit_with_another_byte_is_reported(reliable, byte):
    packet, _ = resend(reliable)
    changed = bytearray(packet.payload)
    changed[byte] ^= 1
    packet.payload = bytes(changed)
    finding = identical(reliable)
    assert (finding.outcome, finding.conclusive) == (Outcome.FAIL, True)
    assert finding.position == reliable.decisions[0][12]
    assert f"differs from the original in byte {byte % len(changed)}" in finding.text


def test_a_retransmit_of_another_length_is_reported(reliable):
    packet, _ = resend(reliable)
    longer = bytearray(packet.payload)
    length = int.from_bytes(longer[:4], "little")
    packet.payload = (length + 32).to_bytes(4, "little") + bytes(longer[4:]) + bytes(32)
    assert identical(reliable).outcome is Outcome.FAIL


def test_without_the_senders_capture_no_retransmit_is_judged(reliable):
    path = reliable.write()
    (path / "captures/a.pcap").unlink()
    assert (
        judged(retransmits_identical, Evidence(path), reliable.traffic).outcome
        is Outcome.INCONCLUSIVE
    )


@pytest.mark.parametrize("first", ["b", "c"])
def test_naks_of_other_readers_do_not_count(tmp_path, monkeypatch, first):
    run = make_run(tmp_path)
    join(run, monkeypatch, first=first)
    evidence = Evidence(write(run, of_streams={"rcv-naks-sent": 0}))
    at_c = next(each for each in run.traffic.flows if each.to_host == "c")
    finding = no_naks(evidence, at_c)
    assert (finding.outcome, finding.text) == (
        Outcome.PASS,
        "no NAKs from this subscriber and 30 from others in the captures; "
        "the counters show no more",
    )
    run.values["snd-naks-received"] += 1
    finding = no_naks(Evidence(write(run, of_streams={"rcv-naks-sent": 0})), at_c)
    assert (finding.outcome, finding.text) == (
        Outcome.FAIL,
        "snd-naks-received on a is 31, but the captures show only 30 NAKs, "
        "all from other subscribers",
    )
    finding = no_naks(Evidence(write(run, of_streams={"rcv-naks-sent": 2})), at_c)
    assert finding.text.startswith("rcv-naks-sent on c is 2, but the captures show only 30")


@pytest.mark.parametrize("check", [naks_and_retransmits_agree, only_requested])
@pytest.mark.parametrize("late_ns", [1, 2_000_000])
def test_what_is_sent_to_another_port_at_once_is_no_retransmit(reliable, check, late_ns):
    extend_run(reliable)
    for packets in reliable.packets.values():
        packets += [
            replace(each, time_ns=each.time_ns + late_ns, ports=(each.ports[0], 30_000))
            for each in packets
            if each.source == "a" and each.kind in ("DATA", "PAD")
        ]
    changes = {"ports": (reliable.traffic.port, 30_000)}
    traffic = reliable.traffic.model_copy(update=changes)
    reliable.case = reliable.case.model_copy(update={"traffic": (traffic,)})
    findings = check(Evidence(reliable.write()), [traffic])
    failures = [each.text for each in findings if each.outcome is Outcome.FAIL]
    assert bool(failures) == (late_ns > 1), failures
