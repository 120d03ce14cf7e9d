"""NAKs: only for complete, detectable gaps, and not too often."""

import copy
import struct

import numpy as np
import pytest

from tests.unit.harness.verdict.judged import judged
from tests.unit.harness.verdict.synthetic_run import (
    PORT,
    SENDER_PORT,
    STEP_NS,
    SyntheticRun,
    make_run,
    nak,
    place,
)
from windtunnel.harness.artifact.run_dir import RunDir
from windtunnel.harness.verdict.checks.retransmission.nak_checks import (
    certainly_accepted,
    naks_only_for_gaps,
    naks_paced,
)
from windtunnel.harness.verdict.core.evidence import Evidence
from windtunnel.harness.verdict.core.outcome import Outcome


@pytest.fixture
def run(tmp_path) -> SyntheticRun:
    return make_run(tmp_path)


def finding_of(run):
    return naks_only_for_gaps(Evidence(run.write()), run.traffic)


def pace(run):
    return naks_paced(Evidence(run.write()), run.traffic)


def third_nak(run):
    """Return a NAK sent by the subscriber's host, the requested frame, and its position."""
    packet = [each for each in run.packets["b"] if each.kind == "NAK"][2]
    position = run.decisions[2][12]
    return packet, int(np.searchsorted(run.log.frames["position"], position)), position


def start(run, index: int) -> int:
    return int(run.log.frames["position"][index])


def arrive(run, payload: bytes, time_ns: int) -> None:
    """Let one more datagram arrive at the subscriber's host."""
    model = next(each for each in run.packets["b"] if each.kind == "DATA")
    packet = copy.copy(model)
    packet.payload, packet.time_ns = payload, time_ns
    run.packets["b"].append(packet)


def test_naks_for_gaps_are_a_pass(run):
    finding = finding_of(run)
    assert finding.outcome is Outcome.PASS
    assert finding.facts == {"naks": 30}
    assert finding.evidence == ("captures/b.pcap",)


@pytest.mark.parametrize(
    ("more", "what"),
    [
        (32, "covers frames that had already arrived"),
        (-32, "does not end at an arrived frame's boundary"),
        (1 << 14, "ends beyond the highest arrived position"),
        (1, "is not a frame-aligned range within one term"),
        (1 << 17, "is not a frame-aligned range within one term"),
    ],
)
def test_a_nak_for_more_or_less_than_the_gap_is_reported(run, more, what):
    packet, index, position = third_nak(run)
    length = run.frame_end(index) - position
    packet.payload = nak(position, length + more)
    finding = finding_of(run)
    assert (finding.outcome, finding.position) == (Outcome.FAIL, position)
    assert f"the NAK for {length + more} bytes at position {position} {what}" in finding.text


@pytest.mark.parametrize("length", [0, -32])
def test_a_nak_without_a_gap_is_reported(run, length):
    packet, _, position = third_nak(run)
    packet.payload = nak(position, length)
    assert "is not a frame-aligned range" in finding_of(run).text


def test_a_nak_within_a_frame_is_reported(run):
    packet, index, position = third_nak(run)
    packet.payload = nak(position + 16, run.frame_end(index) - position - 16)
    assert "is not a frame-aligned range" in finding_of(run).text


def test_a_nak_for_a_frame_that_had_arrived_is_reported(run):
    packet, index, position = third_nak(run)
    arrive(run, run.frame_bytes(index), packet.time_ns - 2 * STEP_NS)
    finding = finding_of(run)
    assert (finding.outcome, finding.position) == (Outcome.FAIL, position)
    assert "covers frames that had already arrived" in finding.text


def answer(run, port: int, time_ns: int) -> None:
    """Let the subscriber's host send a status message from a port."""
    message = copy.copy(next(each for each in run.packets["b"] if each.kind == "SM"))
    message.ports, message.time_ns = (port, message.ports[1]), time_ns
    run.packets["b"].append(message)
    run.packets["b"].sort(key=lambda each: each.time_ns)


def test_a_frame_at_a_port_that_may_not_have_been_open_is_not_in_the_image(run):
    both = run.traffic.model_copy(update={"ports": (PORT, PORT + 1)})
    run.case = run.case.model_copy(update={"traffic": (both,)})
    packet, index, _ = third_nak(run)
    arrived_ns = packet.time_ns - 2 * STEP_NS
    arrive(run, run.frame_bytes(index), arrived_ns)
    run.packets["b"][-1].ports = (SENDER_PORT, PORT + 1)
    assert finding_of(run).outcome is Outcome.PASS
    answer(run, PORT + 1, arrived_ns + 1)
    assert finding_of(run).outcome is Outcome.PASS
    answer(run, PORT + 1, arrived_ns - 1)
    finding = finding_of(run)
    assert finding.outcome is Outcome.FAIL
    assert "covers frames that had already arrived" in finding.text


def test_a_frame_before_the_first_status_message_is_not_in_the_image(run):
    packet = next(each for each in run.packets["b"] if each.kind == "NAK")
    index = int(np.searchsorted(run.log.frames["position"], run.decisions[0][12]))
    arrived_ns = packet.time_ns - 2 * STEP_NS
    arrive(run, run.frame_bytes(index), arrived_ns)
    assert finding_of(run).outcome is Outcome.FAIL
    run.packets["b"] = [
        each for each in run.packets["b"] if each.kind != "SM" or each.time_ns > arrived_ns
    ]
    assert finding_of(run).outcome is Outcome.PASS


def test_a_frame_in_the_datagram_of_an_earlier_copy_may_have_been_ignored(run):
    packet, index, _ = third_nak(run)
    both = run.frame_bytes(index - 1) + run.frame_bytes(index)
    arrive(run, both, packet.time_ns - 2 * STEP_NS)
    assert finding_of(run).outcome is Outcome.PASS


def test_a_frame_beyond_half_a_term_may_have_been_rejected(run):
    packet, index, _ = third_nak(run)
    run.write()
    wire = Evidence(run.path).wire(run.traffic)
    assert certainly_accepted(wire, 0).all()
    first = next(each for each in run.packets["b"] if each.kind == "SM")
    back = place(start(run, index) - 40000)
    first.payload = first.payload[:16] + struct.pack("<ii", *back) + first.payload[24:]
    run.packets["b"] = [each for each in run.packets["b"] if each.kind != "SM" or each is first]
    arrive(run, run.frame_bytes(index), packet.time_ns - 2 * STEP_NS)
    assert finding_of(run).outcome is Outcome.PASS


def test_a_gap_is_requested_before_later_gaps(run):
    _, index, position = third_nak(run)
    run.packets["b"] = [
        each
        for each in run.packets["b"]
        if each.kind != "DATA" or each.payload != run.frame_bytes(index)
    ]
    finding = finding_of(run)
    assert finding.outcome is Outcome.FAIL
    assert finding.position > position
    assert "skips an earlier gap; 26 more such NAKs" in finding.text


def test_a_full_socket_explains_a_nak_that_the_capture_does_not(run):
    packet, index, _ = third_nak(run)
    arrive(run, run.frame_bytes(index), packet.time_ns - 2 * STEP_NS)
    run.rcvbuf_errors["b"] = 1
    finding = finding_of(run)
    assert finding.outcome is Outcome.INCONCLUSIVE
    assert "the host's sockets dropped 1 captured datagrams" in finding.text


@pytest.mark.parametrize("check", [naks_only_for_gaps, naks_paced])
def test_missing_receivers_capture_is_inconclusive(run, check):
    path = run.write()
    RunDir(path).capture("b").unlink()
    assert judged(check, Evidence(path), run.traffic).outcome is Outcome.INCONCLUSIVE


@pytest.mark.parametrize("check", [naks_only_for_gaps, naks_paced])
def test_no_naks_at_all_are_a_pass(tmp_path, check):
    run = make_run(tmp_path, drops=False)
    assert check(Evidence(run.write()), run.traffic).outcome is Outcome.PASS


def repeat(run, count: int, apart_ns: int) -> None:
    packet, _, _ = third_nak(run)
    for number in range(1, count):
        again = copy.copy(packet)
        again.time_ns += number * apart_ns
        run.packets["b"].append(again)


def test_one_nak_a_gap_is_paced(run):
    finding = pace(run)
    assert finding.outcome is Outcome.PASS
    assert finding.facts == {"naks": 30, "holes": 30, "most_for_one": 1}


@pytest.mark.parametrize(
    ("count", "apart_ns", "outcome"),
    [
        (2, 1, Outcome.PASS),
        (200, 100_000, Outcome.PASS),
        (200, 50_000, Outcome.FAIL),
        (60, 1_000, Outcome.FAIL),
    ],
)
def test_the_retry_delay_is_kept_up_to_a_time_slice(run, count, apart_ns, outcome):
    repeat(run, count, apart_ns)
    finding = pace(run)
    assert finding.outcome is outcome
    if outcome is Outcome.FAIL:
        assert finding.position == third_nak(run)[2]
        assert f"{count} NAKs for the same" in finding.text
        assert "expected an interval of 100000 ns" in finding.text


def test_a_group_may_repeat_naks_at_any_time_but_not_for_closed_gaps(run):
    (traffic,) = run.case.traffic
    group = traffic.model_copy(update={"channel": traffic.channel + "|control-mode=manual"})
    run.case = run.case.model_copy(update={"traffic": (group,)})
    repeat(run, 60, 1_000)
    finding = pace(run)
    assert finding.outcome is Outcome.PASS
    assert finding.text.startswith("89 NAKs, none after a part of its gap was filled")
    repeat(run, 2, 10**9)
    finding = pace(run)
    assert finding.outcome is Outcome.FAIL
    assert "after a part of its gap was filled" in finding.text


def test_the_channel_may_set_a_longer_delay(run):
    channel = run.traffic.receive + "|nak-delay=10us"
    traffic = run.traffic.model_copy(update={"receive": channel})
    repeat(run, 20, 100_000)
    path = run.write()
    assert naks_paced(Evidence(path), run.traffic).outcome is Outcome.PASS
    slower = naks_paced(Evidence(path), traffic)
    assert slower.outcome is Outcome.FAIL
    assert "expected an interval of 1000000 ns" in slower.text


@pytest.mark.parametrize(
    ("fidelity", "later_ms", "limit", "outcome"),
    [
        ("netns", 90, 100, Outcome.PASS),
        ("netns", 120, 100, Outcome.FAIL),
        ("sim", 90, 1, Outcome.FAIL),
    ],
)
def test_a_nak_long_after_its_gap_was_closed_is_reported(run, fidelity, later_ms, limit, outcome):
    run.case = run.case.model_copy(update={"fidelity": fidelity})
    packet, _, _ = third_nak(run)
    late = copy.copy(packet)
    late.time_ns += later_ms * STEP_NS
    run.packets["b"].append(late)
    finding = pace(run)
    assert finding.outcome is outcome
    text = f"after a part of its gap was filled (limit {limit} ms"
    assert (text in finding.text) == (outcome is Outcome.FAIL)
    assert finding_of(run).outcome is Outcome.PASS


def test_a_full_socket_explains_a_late_nak(run):
    packet, _, _ = third_nak(run)
    late = copy.copy(packet)
    late.time_ns += 120 * STEP_NS
    run.packets["b"].append(late)
    run.rcvbuf_errors["b"] = 3
    finding = pace(run)
    assert finding.outcome is Outcome.INCONCLUSIVE
    assert "1 NAKs were too late; however, the host's sockets dropped 3 captured" in finding.text
