"""With cc=cubic, the first window is ten packets, and a loss shrinks the window by a fifth."""

import struct

import pytest

from tests.unit.harness.verdict import synthetic_run
from tests.unit.harness.verdict.synthetic_run import MTU, make_run
from tests.unit.harness.verdict.views.test_pauses import happen, pause
from windtunnel.harness.dissect.frames.layout import SM_FLAG_END_OF_STREAM
from windtunnel.harness.verdict.checks.flow_control import acknowledgement
from windtunnel.harness.verdict.checks.flow_control.cubic_windows import (
    COUNTER,
    cubic_windows_shrink,
)
from windtunnel.harness.verdict.core.evidence import Evidence
from windtunnel.harness.verdict.core.outcome import Outcome

WINDOW_AT, FLAGS_AT = 24, 5
"""Offsets in a status message."""


LIMIT = 23
"""Packets in half a term, the maximum window."""


def messages_of(run):
    return [each for each in run.packets["b"] if each.kind == "SM"]


def grown(run, *losses, limit=LIMIT, joined=0):
    """The windows of a sound driver, if losses shrink those of the messages with these numbers.
    The message `joined` is the first one of another image.
    """
    peak, since_ns, found = limit, None, []
    for number, each in enumerate(messages_of(run)):
        since_ns = each.time_ns if since_ns is None else since_ns
        if number == joined:
            peak, since_ns = limit, each.time_ns
            found.append(10)
            continue
        if number in losses:
            peak, since_ns = found[-1], each.time_ns
            found.append(max(1, peak * 8 // 10))
            continue
        seconds = (each.time_ns - since_ns) / 1e9
        found.append(min(limit, peak + int(0.4 * (seconds - (peak * 0.2 / 0.4) ** (1 / 3)) ** 3)))
    return [10, *found[1:]]


def finding_of(run, packets, receive="|cc=cubic", fidelity="sim", rejoins=False):
    """Check a run whose status messages have these windows, in packets, and then the last one."""
    for number, each in enumerate(messages_of(run)):
        window = int(packets[min(number, len(packets) - 1)] * MTU)
        payload = bytearray(each.payload)
        struct.pack_into("<i", payload, WINDOW_AT, window)
        each.payload = bytes(payload)
    run.case = run.case.model_copy(update={"fidelity": fidelity})
    changed = {"receive": run.traffic.receive + receive, "rejoins": rejoins}
    traffic = run.traffic.model_copy(update=changed)
    return cubic_windows_shrink(Evidence(run.write()), traffic)


@pytest.mark.parametrize("losses", [(), (2,), (2, 3), (2, 3, 4, 7), range(2, 100)])
def test_windows_that_shrink_by_a_fifth_and_grow_along_the_curve_are_a_pass(tmp_path, losses):
    run = make_run(tmp_path)
    finding = finding_of(run, grown(run, *losses))
    assert finding.outcome is Outcome.PASS, finding.text


def test_the_curve_before_the_first_loss_may_begin_below_the_first_window(tmp_path):
    run = make_run(tmp_path)
    packets = grown(run, 4, limit=11)
    assert packets[:5] == [10, 9, 9, 9, 7]
    assert finding_of(run, packets, f"|rcv-wnd={11 * MTU}|cc=cubic").outcome is Outcome.PASS


def test_a_later_window_is_not_the_begin_of_the_curve(tmp_path):
    run = make_run(tmp_path)
    finding = finding_of(run, [10, 9, 10, 9], f"|rcv-wnd={11 * MTU}|cc=cubic")
    assert finding.text == "the window shrank from 10 to 9 packets, expected 8"


def test_the_maximum_window_is_that_of_the_driver_and_not_half_of_a_long_term(
    tmp_path, monkeypatch
):
    monkeypatch.setattr(acknowledgement, "DEFAULT_WINDOW_BYTES", 20 * MTU)
    run = make_run(tmp_path)
    assert finding_of(run, grown(run, limit=20)).outcome is Outcome.PASS
    assert finding_of(make_run(tmp_path), grown(run)).outcome is Outcome.FAIL


@pytest.mark.parametrize(("host", "outcome"), [("b", Outcome.PASS), ("a", Outcome.FAIL)])
def test_the_first_window_after_a_pause_may_be_the_one_before_it(tmp_path, host, outcome):
    run = make_run(tmp_path)
    began_ns, ended_ns = (
        messages_of(run)[5].time_ns + 1,
        messages_of(run)[6].time_ns + 2_000_000_000,
    )
    for each in messages_of(run)[6:]:
        each.time_ns += 2_000_000_000
    packets = grown(run)
    assert packets[6] > packets[5] + 1
    packets[6] = packets[5]
    finding_of(run, packets)
    traffic = run.traffic.model_copy(update={"receive": run.traffic.receive + "|cc=cubic"})
    evidence = happen(run, pause(began_ns, ended_ns, host=host))
    finding = cubic_windows_shrink(evidence, traffic)
    assert finding.outcome is outcome, finding.text


@pytest.mark.parametrize(("rejoins", "outcome"), [(True, Outcome.PASS), (False, Outcome.FAIL)])
def test_a_new_image_begins_with_the_first_window(tmp_path, rejoins, outcome):
    run = make_run(tmp_path)
    finding = finding_of(run, grown(run, 20, joined=10), rejoins=rejoins)
    assert finding.outcome is outcome
    if outcome is Outcome.FAIL:
        assert "to 10 packets, expected " in finding.text


@pytest.mark.parametrize(
    ("repeats", "window", "outcome"),
    [(2, 1, Outcome.PASS), (2, 4, Outcome.PASS), (2, 5, Outcome.FAIL), (0, 1, Outcome.FAIL)],
)
def test_a_repeated_window_of_one_packet_may_begin_a_curve(tmp_path, repeats, window, outcome):
    run = make_run(tmp_path)
    # After 2.4 s, the curve of the loss with 2 packets is at 3, that of one with 1 packet at 2.
    shrinking = [10, 18, 14, 11, 8, 6, 4, 3, 2, 1, *[1] * repeats]
    for each in messages_of(run)[len(shrinking) :]:
        each.time_ns += 2_400_000_000
    finding = finding_of(run, [*shrinking, window])
    assert finding.outcome is outcome, finding.text


def test_two_losses_between_status_messages_are_a_pass(tmp_path):
    run = make_run(tmp_path)
    packets = grown(run, 2, 3)
    assert finding_of(run, [*packets[:2], *packets[3:]]).outcome is Outcome.PASS


@pytest.mark.parametrize(
    ("number", "wrong", "text"),
    [
        (0, 1, "the first window is 1408 bytes, expected 14080"),
        (3, 1, "shrank from 15 to 1 packets, expected 12"),
        (3, 13, "shrank from 15 to 13 packets, expected 12"),
        (-1, 20, "the window is 20 packets, "),
    ],
)
def test_other_windows_are_reported(tmp_path, number, wrong, text):
    run = make_run(tmp_path)
    packets = grown(run, 2, 3)
    packets[number] = wrong
    finding = finding_of(run, packets)
    assert finding.outcome is Outcome.FAIL
    assert text in finding.text


def test_a_window_that_never_grows_is_reported(tmp_path):
    finding = finding_of(make_run(tmp_path), [10])
    assert finding.text.startswith("the window is 10 packets, ")
    assert finding.text.endswith(" ns after the last loss with 23 packets, expected 19 to 19")


@pytest.mark.parametrize("packets", [[10, 9], [7, 9], [19, 20]])
def test_on_real_time_a_window_may_have_changed_before_it_is_sent(tmp_path, packets):
    assert finding_of(make_run(tmp_path), packets, fidelity="netns").outcome is Outcome.PASS


def test_a_window_that_is_no_number_of_packets_is_reported(tmp_path):
    run = make_run(tmp_path)
    finding = finding_of(run, [10, 10.5])
    assert "expected packets of 1408 bytes" in finding.text


def test_streams_without_cubic_are_not_judged(tmp_path):
    finding = finding_of(make_run(tmp_path), [1], receive="")
    assert finding.outcome is Outcome.INCONCLUSIVE
    assert "does not have cc=cubic" in finding.text


@pytest.mark.parametrize(
    ("more", "fidelity", "outcome"),
    [
        (0, "sim", Outcome.PASS),
        (MTU, "sim", Outcome.FAIL),
        (MTU, "netns", Outcome.PASS),
    ],
)
def test_the_counter_ends_with_the_last_window(tmp_path, monkeypatch, more, fidelity, outcome):
    named = {**synthetic_run.COUNTERS["b"], COUNTER: (69, 10)}
    monkeypatch.setitem(synthetic_run.COUNTERS, "b", named)
    run = make_run(tmp_path)
    packets = grown(run, 2)
    run.values[COUNTER] = packets[-1] * MTU + more
    finding = finding_of(run, packets, fidelity=fidelity)
    assert finding.outcome is outcome
    if outcome is Outcome.FAIL:
        assert finding.text.startswith(
            f"counter {COUNTER} is {packets[-1] * MTU + MTU}, but the last window"
        )


@pytest.mark.parametrize(
    ("flags", "more", "outcome"),
    [
        (SM_FLAG_END_OF_STREAM, MTU, Outcome.PASS),
        (SM_FLAG_END_OF_STREAM, -MTU, Outcome.FAIL),
        (0, MTU, Outcome.FAIL),
    ],
)
def test_after_the_end_of_the_stream_the_window_may_grow(
    tmp_path, monkeypatch, flags, more, outcome
):
    named = {**synthetic_run.COUNTERS["b"], COUNTER: (69, 10)}
    monkeypatch.setitem(synthetic_run.COUNTERS, "b", named)
    run = make_run(tmp_path)
    packets = grown(run, 2)
    run.values[COUNTER] = packets[-1] * MTU + more
    last = messages_of(run)[-1]
    last.payload = last.payload[:FLAGS_AT] + bytes([flags]) + last.payload[FLAGS_AT + 1 :]
    finding = finding_of(run, packets)
    assert finding.outcome is outcome, finding.text
