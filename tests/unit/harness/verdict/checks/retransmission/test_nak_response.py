"""Responses to NAKs: complete, counted, and not repeated within the linger time."""

import struct
from dataclasses import replace

import pytest

from tests.unit.harness.verdict.judged import judged
from tests.unit.harness.verdict.synthetic_events import add_earlier_session, write_with_event
from tests.unit.harness.verdict.synthetic_group import join, write
from tests.unit.harness.verdict.synthetic_run import PORT, STEP_NS, SyntheticRun, make_run, nak
from tests.unit.harness.verdict.views.test_pauses import happen, pause
from windtunnel.harness.verdict.checks.retransmission.nak_response import (
    max_retransmit_bytes,
    naks_answered_whole,
    retransmits_counted,
    retransmits_of,
)
from windtunnel.harness.verdict.checks.retransmission.retransmit_spacing import (
    LINGER_NS,
    retransmits_spaced,
)
from windtunnel.harness.verdict.core.evidence import Evidence
from windtunnel.harness.verdict.core.outcome import Outcome


@pytest.fixture
def run(tmp_path) -> SyntheticRun:
    return make_run(tmp_path)


def whole(run):
    return judged(naks_answered_whole, Evidence(run.write()), run.traffic)


def spaced(run):
    return judged(retransmits_spaced, Evidence(run.write()), run.traffic)


def counted(run):
    (finding,) = retransmits_counted(Evidence(run.write()), [run.traffic])
    return finding


def first_answer(run):
    """Return the first NAK that arrived at the publisher, and its retransmit."""
    asked = next(each for each in run.packets["a"] if each.kind == "NAK")
    sent = [each for each in run.packets["a"] if each.source == "a"]
    return asked, next(each for each in sent if each.time_ns > asked.time_ns)


def position(packet) -> int:
    """Return the position, which is in the first term in these tests."""
    return struct.unpack_from("<i", packet.payload, 20 if packet.kind == "NAK" else 8)[0]


def frame_after(run, packet):
    """Return the first transmission of the frame after a given one."""
    length = struct.unpack_from("<i", packet.payload)[0]
    behind = position(packet) + (length + 31 & ~31)
    data = [each for each in run.packets["a"] if each.kind in ("DATA", "PAD")]
    return next(each for each in data if position(each) == behind)


def test_answers_to_the_end_of_their_naks_are_a_pass(run):
    finding = whole(run)
    assert finding.outcome is Outcome.PASS
    assert finding.facts["answers"] > 5
    assert counted(run).outcome is Outcome.PASS
    assert spaced(run).outcome is Outcome.PASS


def extend_first_nak(run):
    """Extend the first NAK to the next frame, which had been sent by then."""
    asked, again = first_answer(run)
    behind = frame_after(run, again)
    end = position(behind) + len(behind.payload)
    asked.payload = nak(position(asked), end - position(asked))
    return again, behind


def test_an_answer_that_ends_early_is_reported(run):
    again, _ = extend_first_nak(run)
    finding = whole(run)
    assert finding.outcome is Outcome.FAIL
    assert finding.position == position(again)
    assert finding.facts["short"] == 1


@pytest.mark.parametrize(
    ("fidelity", "short_sends", "outcome"),
    [("sim", 0, Outcome.FAIL), ("sim", 1, Outcome.PASS), ("netns", 0, Outcome.PASS)],
)
def test_on_virtual_time_a_nak_without_an_answer_is_reported(run, fidelity, short_sends, outcome):
    run.case = run.case.model_copy(update={"fidelity": fidelity})
    run.values["a/16"] = short_sends
    asked, again = first_answer(run)
    assert whole(run).outcome is Outcome.PASS
    run.packets["a"].remove(again)
    finding = whole(run)
    assert finding.outcome is outcome
    if outcome is Outcome.FAIL:
        assert finding.position == position(asked)
        assert "was not answered" in finding.text


@pytest.mark.parametrize(
    ("paused_ns", "outcome"), [(STEP_NS, Outcome.PASS), (STEP_NS // 2 - 1, Outcome.FAIL)]
)
def test_a_paused_driver_answers_a_nak_after_the_pause(run, paused_ns, outcome):
    run.case = run.case.model_copy(update={"fidelity": "sim"})
    asked, again = first_answer(run)
    again.time_ns = asked.time_ns + 2 * STEP_NS
    run.packets["a"].sort(key=lambda each: each.time_ns)
    assert whole(run).outcome is Outcome.FAIL
    paused = pause(asked.time_ns - 10, asked.time_ns - 10 + paused_ns, host="a")
    finding = naks_answered_whole(happen(run, paused), run.traffic)
    assert finding.outcome is outcome, finding.text


@pytest.mark.parametrize(("after_ms", "outcome"), [(5, Outcome.PASS), (15, Outcome.FAIL)])
def test_a_nak_soon_after_a_pause_may_be_for_a_part_of_the_last_response(run, after_ms, outcome):
    """The driver may look at it at once, or as late as the pause was long."""
    run.case = run.case.model_copy(update={"fidelity": "sim"})
    asked, _ = first_answer(run)
    again = replace(asked, time_ns=asked.time_ns + after_ms * STEP_NS)
    run.packets["a"] = [
        each for each in run.packets["a"] if each.kind != "NAK" or each.time_ns == asked.time_ns
    ]
    run.packets["a"] = sorted([*run.packets["a"], again], key=lambda each: each.time_ns)
    paused = pause(asked.time_ns - 20 * STEP_NS, asked.time_ns - 1, host="a")
    finding = naks_answered_whole(happen(run, paused), run.traffic)
    assert finding.outcome is outcome, finding.text


@pytest.mark.parametrize(("behind", "outcome"), [(0, Outcome.FAIL), (32, Outcome.PASS)])
def test_a_nak_for_data_of_half_a_term_ago_need_not_be_answered(run, behind, outcome):
    run.case = run.case.model_copy(update={"fidelity": "sim"})
    asked, again = first_answer(run)
    run.packets["a"].remove(again)
    payload = bytearray(again.payload)
    end = position(asked) + run.traffic.term_length // 2 + behind
    struct.pack_into("<i", payload, 8, end - (len(payload) + 31 & ~31))
    ahead = replace(again, time_ns=asked.time_ns + 900_000, payload=bytes(payload))
    run.packets["a"] = sorted([*run.packets["a"], ahead], key=lambda each: each.time_ns)
    assert whole(run).outcome is outcome


def test_an_answer_in_two_consecutive_datagrams_is_complete(run):
    again, behind = extend_first_nak(run)
    second = type(again)(again.time_ns + 1, "a", "b", again.ports, behind.payload, behind.kind)
    run.packets["a"].append(second)
    assert whole(run).outcome is Outcome.PASS


def test_a_datagram_that_the_system_refused_may_shorten_an_answer(run):
    extend_first_nak(run)
    run.values["a/16"] = 1
    assert whole(run).outcome is Outcome.PASS


def test_an_answer_need_not_contain_data_that_was_not_sent_yet(run):
    asked, again = first_answer(run)
    fresh = [each for each in run.packets["a"] if each.kind == "DATA" and each.source == "a"]
    sent = max(position(each) for each in fresh if each.time_ns < again.time_ns)
    behind = frame_after(run, again)
    assert position(behind) <= sent
    # The NAK extends much further, but the next frame had not been sent by then.
    run.packets["a"] = [
        each for each in run.packets["a"]
        if each.source == "b" or position(each) <= position(again) or each.kind == "SETUP"
        or each.time_ns > again.time_ns
    ]  # fmt: skip
    asked.payload = nak(position(asked), 8 * 1408)
    assert whole(run).outcome is Outcome.PASS


@pytest.mark.parametrize(
    ("after_ns", "outcome"),
    [
        ((1_000_000, 2_000_000), Outcome.FAIL),
        ((5_000_000, LINGER_NS), Outcome.PASS),
        ((5_000,), Outcome.PASS),
    ],
)
def test_answers_within_the_linger_time_of_an_earlier_one_are_reported(run, after_ns, outcome):
    """Two responses may be close, since the first one may have left late; a third may not."""
    asked, again = first_answer(run)
    later = [each for each in run.packets["a"] if each.time_ns > again.time_ns]
    for each in later:
        each.time_ns += 3 * LINGER_NS
    for each_ns in after_ns:
        for (source, target), payload, kind, more in (
            ("ba", asked.payload, "NAK", each_ns - 1), ("ab", again.payload, again.kind, each_ns),
        ):  # fmt: skip
            run.packets["a"].append(
                type(again)(again.time_ns + more, source, target, again.ports, payload, kind)
            )
    finding = spaced(run)
    assert finding.outcome is outcome
    if outcome is Outcome.FAIL:
        assert finding.position == position(again)


@pytest.mark.parametrize(
    ("fidelity", "after_ns", "outcome"),
    [
        ("sim", 5_000, Outcome.FAIL),
        ("sim", LINGER_NS, Outcome.PASS),
        ("netns", 5_000, Outcome.PASS),
    ],
)
def test_on_virtual_time_a_second_answer_is_reported(run, fidelity, after_ns, outcome):
    run.case = run.case.model_copy(update={"fidelity": fidelity})
    asked, again = first_answer(run)
    for each in run.packets["a"]:
        if each.time_ns > again.time_ns:
            each.time_ns += 3 * LINGER_NS
    for (source, target), payload, kind, more in (
        ("ba", asked.payload, "NAK", after_ns - 1), ("ab", again.payload, again.kind, after_ns),
    ):  # fmt: skip
        run.packets["a"].append(
            type(again)(again.time_ns + more, source, target, again.ports, payload, kind)
        )
    finding = spaced(run)
    assert finding.outcome is outcome
    assert ("was retransmitted again" in finding.text) == (outcome is Outcome.FAIL)


@pytest.mark.parametrize("before_ns", [-1, 1])
def test_a_nak_for_elsewhere_ends_the_linger_of_a_unicast_sender(run, before_ns):
    asked, again = first_answer(run)
    for each in run.packets["a"]:
        if each.time_ns > again.time_ns:
            each.time_ns += 3 * LINGER_NS
    elsewhere = nak(position(asked) + 32, 32)
    for source, payload, kind, more in (
        ("b", elsewhere, "NAK", -before_ns), ("b", asked.payload, "NAK", 2),
        ("a", again.payload, again.kind, STEP_NS),
    ):  # fmt: skip
        run.packets["a"].append(
            type(again)(again.time_ns + more, source, "a", again.ports, payload, kind)
        )
    assert spaced(run).outcome is Outcome.PASS


@pytest.mark.parametrize("more", [-1, 1])
def test_a_count_of_retransmits_that_the_capture_does_not_show_is_reported(run, more):
    run.values["a/11"] += more
    finding = counted(run)
    assert finding.outcome is Outcome.FAIL
    assert finding.facts["counted"] == run.values["a/11"]


@pytest.mark.parametrize("more", [-1, 0, 1])
def test_retransmits_of_all_sessions_of_a_restarted_publisher_are_counted(run, more):
    add_earlier_session(run, 7)
    run.values["a/11"] = 2 * run.values["a/11"] + more
    path = write_with_event(run, "kill", "a", "publisher", (1, 2))
    (finding,) = retransmits_counted(Evidence(path), [run.traffic])
    assert finding.outcome is (Outcome.FAIL if more else Outcome.PASS)


def test_responses_without_naks_are_reported(run):
    for host in ("a", "b"):
        run.packets[host] = [each for each in run.packets[host] if each.kind != "NAK"]
    finding = counted(run)
    assert finding.outcome is Outcome.FAIL
    responses = run.values["a/11"]
    expected = f"the capture shows {responses} responses, but NAKs can have caused at most 0"
    assert finding.text == expected


def test_answers_are_contiguous_ranges(run):
    found = retransmits_of(Evidence(run.write()).wire(run.traffic))
    assert (found.ends > found.starts).all()
    assert (found.sent >= found.ends).all()
    assert len(found.starts) == run.values["a/11"]


@pytest.mark.parametrize("check", [whole, spaced, counted])
def test_missing_senders_capture_is_inconclusive(run, check):
    path = run.write()
    run.folder.capture("a").unlink()
    run.write = lambda: path
    assert check(run).outcome is Outcome.INCONCLUSIVE


@pytest.mark.parametrize("first", ["b", "c"])
@pytest.mark.parametrize(
    ("more", "outcome"), [(0, Outcome.PASS), (-1, Outcome.FAIL), (1, Outcome.FAIL)]
)
def test_an_answer_to_a_group_counts_once_whoever_requested_it(
    run, monkeypatch, first, more, outcome
):
    join(run, monkeypatch, first=first)
    run.values["a/11"] += more
    (finding,) = retransmits_counted(Evidence(write(run)), [run.traffic])
    assert finding.outcome is outcome


def test_with_a_late_reader_only_naks_limit_the_count(run, monkeypatch):
    join(run, monkeypatch, first="c")
    _, again = first_answer(run)
    run.packets["a"] = [
        each for each in run.packets["a"]
        if each.destination != "c" or each.time_ns > again.time_ns - 1
    ]  # fmt: skip
    (finding,) = retransmits_counted(Evidence(write(run)), [run.traffic])
    assert finding.outcome is Outcome.PASS
    asked = sum(each.kind == "NAK" for each in run.packets["a"])
    assert finding.facts["most"] == asked


def test_copies_for_another_port_of_a_host_are_not_distinguished_from_answers(run, monkeypatch):
    join(run, monkeypatch, first="b")
    run.packets["a"] += [
        replace(each, ports=(each.ports[0], each.ports[1] + 1))
        for each in run.packets["a"]
        if each.destination == "b"
    ]
    traffic = run.traffic.model_copy(update={"ports": (PORT, PORT + 1)})
    run.case = run.case.model_copy(update={"traffic": (traffic,)})
    (finding,) = retransmits_counted(Evidence(write(run)), [run.traffic])
    assert finding.outcome is Outcome.INCONCLUSIVE
    assert "several ports" in finding.text


def test_another_readers_shorter_nak_may_be_the_one_that_was_answered(run, monkeypatch):
    join(run, monkeypatch, first="b")
    asked, _ = first_answer(run)
    extend_first_nak(run)
    traffic = run.case.traffic[0]
    assert naks_answered_whole(Evidence(write(run)), traffic).outcome is Outcome.FAIL
    length = struct.unpack_from("<i", first_answer(run)[1].payload)[0]
    short = nak(position(asked), length + 31 & ~31)
    run.packets["a"].append(replace(asked, time_ns=asked.time_ns - 1, source="c", payload=short))
    assert naks_answered_whole(Evidence(write(run)), traffic).outcome is Outcome.PASS


@pytest.mark.parametrize(
    ("channel", "windows"),
    [
        ("endpoint=10.0.0.2:24325", 16),
        ("control=10.0.0.1:24324|control-mode=dynamic|fc=min", 4),
        ("endpoint=224.20.30.39:24325", 4),
        ("endpoint=224.20.30.39:24325|fc=max,rrwm:2", 2),
        ("endpoint=10.0.0.2:24325|fc=max,rrwm:20", 16),
        ("endpoint=10.0.0.2:24325|fc=max,rrwm:5", 5),
    ],
)
def test_a_group_is_answered_in_fewer_windows(run, channel, windows):
    traffic = run.traffic.model_copy(update={"channel": f"aeron:udp?{channel}"})
    assert max_retransmit_bytes(traffic, 1 << 16) == windows << 15
    assert max_retransmit_bytes(traffic, 1 << 20) == windows << 17
