"""Positions of status messages: consumed only, in steps of a quarter of the window."""

import struct
from dataclasses import replace

import pytest

from tests.unit.harness.verdict.judged import judged
from tests.unit.harness.verdict.synthetic_run import (
    SESSION_ID,
    TRAFFIC,
    WINDOW,
    SyntheticRun,
    make_run,
    place,
)
from windtunnel.harness.artifact.host.application import Part, SubscriberFacts
from windtunnel.harness.verdict.checks.flow_control.acknowledgement import (
    status_messages_consumed,
    status_messages_in_strides,
)
from windtunnel.harness.verdict.core.evidence import Evidence
from windtunnel.harness.verdict.core.outcome import Outcome


@pytest.fixture
def run(tmp_path) -> SyntheticRun:
    return make_run(tmp_path)


def consumed(run):
    return judged(status_messages_consumed, Evidence(run.write()), run.traffic)


def strides(run):
    return judged(status_messages_in_strides, Evidence(run.write()), run.traffic)


def messages(run):
    return [each for each in run.packets["b"] if each.kind == "SM" and each.source == "b"]


def position_of(packet) -> int:
    term_id, offset = struct.unpack_from("<ii", packet.payload, 16)
    return (term_id + 3) * 65536 + offset


def set_position(packet, position: int) -> None:
    packet.payload = (
        packet.payload[:16] + struct.pack("<ii", *place(position)) + packet.payload[24:]
    )


def test_read_data_may_be_acknowledged(run):
    assert consumed(run).outcome is Outcome.PASS
    assert strides(run).outcome is Outcome.PASS


def test_an_acknowledgement_of_unread_data_is_reported(run):
    fourth = messages(run)[3]
    set_position(fourth, position_of(fourth) + 32)
    finding = consumed(run)
    assert finding.outcome is Outcome.FAIL
    assert finding.position == position_of(fourth)
    assert "1 of" in finding.text


def test_a_position_within_a_frame_is_reported(run):
    fourth = messages(run)[3]
    set_position(fourth, position_of(fourth) - 32)
    finding = consumed(run)
    assert (finding.outcome, finding.position) == (Outcome.FAIL, position_of(fourth))
    assert "no frame ends" in finding.text


@pytest.mark.parametrize(("later", "outcome"), [(0, Outcome.PASS), (32, Outcome.FAIL)])
def test_an_image_that_replaces_another_one_begins_at_the_position_where_it_joined(
    run, later, outcome
):
    """The image exists before the subscriber reads it."""
    fourth = messages(run)[3]
    set_position(fourth, position_of(fourth) + 4096 + later)
    path = run.write()
    document = run.folder.host("b").subscriber(TRAFFIC).document
    facts = SubscriberFacts.read(document)
    assert facts is not None
    joined = position_of(fourth) - later
    first = Part(SESSION_ID, 0, joined - 4096, False, 0, fourth.time_ns)
    second = Part(SESSION_ID, joined, facts.end_position, True, fourth.time_ns + 1, run.now_ns)
    replace(facts, join_position=joined, parts=[first, second]).write(document)
    finding = judged(status_messages_consumed, Evidence(path), run.traffic)
    assert finding.outcome is outcome


def test_data_that_is_read_later_was_not_read_by_then(run):
    moment_ns = messages(run)[3].time_ns
    run.seen_ns = [max(each, moment_ns + 1) for each in run.seen_ns]
    assert consumed(run).outcome is Outcome.FAIL


@pytest.mark.parametrize(
    ("stride", "outcome"), [(WINDOW // 4, Outcome.FAIL), (WINDOW // 4 + 32, Outcome.PASS)]
)
def test_a_stride_must_exceed_a_quarter_of_the_window(run, stride, outcome):
    third, fourth, fifth = messages(run)[2:5]
    set_position(fourth, position_of(third) + stride)
    set_position(fifth, position_of(fourth) + WINDOW)
    finding = strides(run)
    assert finding.outcome is outcome
    if outcome is Outcome.FAIL:
        assert finding.position == position_of(fourth)


def test_the_same_position_may_be_repeated(run):
    third, fourth = messages(run)[2:4]
    set_position(fourth, position_of(third))
    assert strides(run).outcome is Outcome.PASS


def test_another_window_may_be_sent_at_once(run):
    third, fourth = messages(run)[2:4]
    set_position(fourth, position_of(third) + 32)
    fourth.payload = fourth.payload[:24] + struct.pack("<i", WINDOW // 2) + fourth.payload[28:]
    messages(run)[4].payload = fourth.payload[:16] + messages(run)[4].payload[16:]
    assert strides(run).outcome is Outcome.PASS


@pytest.mark.parametrize(
    ("fidelity", "receive", "outcome"),
    [
        ("sim", "", Outcome.FAIL),
        ("netns", "", Outcome.PASS),
        ("netns", f"|rcv-wnd={WINDOW}", Outcome.FAIL),
        ("sim", f"|rcv-wnd={WINDOW // 2}", Outcome.FAIL),
    ],
)
def test_a_window_that_is_not_configured_is_reported(run, fidelity, receive, outcome):
    run.case = run.case.model_copy(update={"fidelity": fidelity})
    last = messages(run)[-1]
    last.payload = last.payload[:24] + struct.pack("<i", 21_845) + last.payload[28:]
    traffic = run.traffic.model_copy(update={"receive": run.traffic.receive + receive})
    finding = status_messages_in_strides(Evidence(run.write()), traffic)
    assert finding.outcome is outcome, finding.text
    if outcome is Outcome.FAIL:
        expected = WINDOW // 2 if "16384" in receive else WINDOW
        assert finding.text.endswith(f" bytes, expected {expected}")


def test_a_closed_window_is_a_pass(run):
    last = messages(run)[-1]
    last.payload = last.payload[:24] + struct.pack("<i", 0) + last.payload[28:]
    assert strides(run).outcome is Outcome.PASS


def test_congestion_control_may_send_at_any_time(run):
    set_position(messages(run)[3], position_of(messages(run)[2]) + 32)
    channel = f"{run.traffic.receive}|cc=cubic"
    traffic = run.traffic.model_copy(update={"receive": channel})
    finding = status_messages_in_strides(Evidence(run.write()), traffic)
    assert finding.outcome is Outcome.PASS


@pytest.mark.parametrize("check", [consumed, strides])
def test_missing_receivers_capture_is_inconclusive(run, check):
    path = run.write()
    run.folder.capture("b").unlink()
    run.write = lambda: path
    assert check(run).outcome is Outcome.INCONCLUSIVE
