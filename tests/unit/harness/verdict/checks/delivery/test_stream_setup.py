"""SETUPs: every 100 ms until a status message arrives, then only on request."""

from dataclasses import replace

import pytest

from tests.unit.harness.verdict.judged import judged
from tests.unit.harness.verdict.synthetic_events import add_earlier_session, write_with_event
from tests.unit.harness.verdict.synthetic_group import join, write
from tests.unit.harness.verdict.synthetic_run import (
    STEP_NS,
    Packet,
    SyntheticRun,
    make_run,
    status_message,
)
from windtunnel.harness.verdict.checks.delivery.stream_setup import (
    INTERVAL_NS,
    TIMEOUT_NS,
    setups_until_answered,
)
from windtunnel.harness.verdict.checks.flow_control.group_window import READ_WITHIN_NS
from windtunnel.harness.verdict.checks.flow_control.status_message_checks import TOLERANCE_NS
from windtunnel.harness.verdict.core.evidence import Evidence
from windtunnel.harness.verdict.core.outcome import Outcome


@pytest.fixture
def run(tmp_path) -> SyntheticRun:
    return make_run(tmp_path)


def finding_of(run):
    return setups_until_answered(Evidence(run.write()), run.traffic)


def setup(run, time_ns: int) -> None:
    first = next(each for each in run.packets["a"] if each.kind == "SETUP")
    run.packets["a"].append(Packet(time_ns, "a", "b", first.ports, first.payload, "SETUP"))


def elicit_setup(run, time_ns: int) -> None:
    """Return a status message that requests a SETUP."""
    asks = bytearray(status_message(0))
    asks[5] = 0x80
    ports = next(each for each in run.packets["a"] if each.kind == "SM").ports
    run.packets["a"].append(Packet(time_ns, "b", "a", ports, bytes(asks), "SM"))


def first_ns(run, kind: str) -> int:
    return min(each.time_ns for each in run.packets["a"] if each.kind == kind)


def delay_all_after_setup(run, more_ns: int) -> None:
    opened_ns = first_ns(run, "SETUP")
    for packets in run.packets.values():
        for each in packets:
            each.time_ns += more_ns if each.time_ns > opened_ns else 0


def test_a_stream_that_is_answered_at_once_passes(run):
    assert finding_of(run).outcome is Outcome.PASS


@pytest.mark.parametrize(
    ("after_ns", "outcome"),
    [
        (INTERVAL_NS, Outcome.PASS),
        (INTERVAL_NS // 2, Outcome.FAIL),
        (None, Outcome.FAIL),
    ],
)
def test_setups_are_repeated_each_interval_until_the_answer(run, after_ns, outcome):
    delay_all_after_setup(run, 5 * INTERVAL_NS // 2)
    opened_ns = first_ns(run, "SETUP")
    if after_ns is not None:
        for number in range(1, (5 * INTERVAL_NS // 2 - 1) // after_ns + 1):
            setup(run, opened_ns + number * after_ns)
    assert finding_of(run).outcome is outcome


def test_a_setup_that_left_late_excuses_the_next_one(run):
    delay_all_after_setup(run, 5 * INTERVAL_NS // 2)
    opened_ns = first_ns(run, "SETUP")
    for after_ns in (190_000_000, 200_000_000):
        setup(run, opened_ns + after_ns)
    assert finding_of(run).outcome is Outcome.PASS


def test_a_setup_after_the_answer_is_reported_unless_requested(run):
    late_ns = first_ns(run, "SM") + 2 * INTERVAL_NS
    setup(run, late_ns)
    finding = finding_of(run)
    assert finding.outcome is Outcome.FAIL
    assert finding.text.startswith("1 unrequested SETUPs")
    elicit_setup(run, late_ns - 1)
    assert finding_of(run).outcome is Outcome.PASS


@pytest.mark.parametrize(
    ("early_ns", "outcome"), [(1, Outcome.PASS), (READ_WITHIN_NS + 1, Outcome.FAIL)]
)
def test_a_second_request_may_be_read_after_the_setup(run, early_ns, outcome):
    """Two receivers requested it at once. The next SETUP is due an interval later."""
    late_ns = first_ns(run, "SM") + 2 * INTERVAL_NS
    elicit_setup(run, late_ns - early_ns - 1)
    elicit_setup(run, late_ns - early_ns)
    setup(run, late_ns)
    setup(run, late_ns + INTERVAL_NS)
    assert finding_of(run).outcome is outcome
    setup(run, late_ns + 2 * INTERVAL_NS)
    assert finding_of(run).outcome is Outcome.FAIL


def test_one_request_permits_one_setup(run):
    late_ns = first_ns(run, "SM") + 2 * INTERVAL_NS
    elicit_setup(run, late_ns - 1)
    setup(run, late_ns)
    setup(run, late_ns + INTERVAL_NS)
    assert finding_of(run).outcome is Outcome.FAIL


@pytest.mark.parametrize(
    ("silent_ns", "outcome"),
    [(TIMEOUT_NS, Outcome.PASS), (TIMEOUT_NS - 2 * TOLERANCE_NS, Outcome.FAIL)],
)
@pytest.mark.parametrize("count", [1, 3])
def test_a_sender_that_is_not_connected_repeats_a_requested_setup(run, silent_ns, outcome, count):
    """Until one leaves after the next status message."""
    again_ns = max(each.time_ns for each in run.packets["a"] if each.kind == "SM") + silent_ns
    elicit_setup(run, again_ns)
    for number in range(count + 1):
        setup(run, again_ns + 1 + number * INTERVAL_NS)
    answer = next(each for each in run.packets["a"] if each.kind == "SM")
    answered_ns = again_ns + count * INTERVAL_NS - STEP_NS
    run.packets["a"].append(replace(answer, time_ns=answered_ns))
    assert finding_of(run).outcome is outcome
    setup(run, again_ns + 1 + (count + 1) * INTERVAL_NS)
    assert finding_of(run).outcome is Outcome.FAIL


@pytest.mark.parametrize(("is_paused", "outcome"), [(True, Outcome.PASS), (False, Outcome.FAIL)])
def test_a_sender_that_was_paused_has_not_read_the_answer(run, is_paused, outcome):
    """It sends a SETUP that is due before it reads its socket."""
    answered_ns = first_ns(run, "SM")
    span_ns = answered_ns - STEP_NS // 4, answered_ns + 5 * INTERVAL_NS
    setup(run, span_ns[1] + 1)
    host = "a" if is_paused else "b"
    evidence = Evidence(write_with_event(run, "pause", host, "driver", span_ns))
    assert setups_until_answered(evidence, run.traffic).outcome is outcome


@pytest.mark.parametrize(("is_paused", "outcome"), [(True, Outcome.PASS), (False, Outcome.FAIL)])
def test_a_sender_that_is_paused_sends_no_setup(run, is_paused, outcome):
    opened_ns = first_ns(run, "SETUP")
    delay_all_after_setup(run, 5 * INTERVAL_NS)
    span_ns = opened_ns + STEP_NS, opened_ns + 4 * INTERVAL_NS
    host = "a" if is_paused else "b"
    evidence = Evidence(write_with_event(run, "pause", host, "driver", span_ns))
    assert setups_until_answered(evidence, run.traffic).outcome is outcome


def test_a_restarted_publisher_sends_no_setup_until_it_has_another_session(run):
    add_earlier_session(run, 7)
    assert finding_of(run).outcome is Outcome.FAIL
    evidence = Evidence(write_with_event(run, "kill", "a", "publisher", (1, 2)))
    assert setups_until_answered(evidence, run.traffic).outcome is Outcome.PASS


def test_missing_senders_capture_is_inconclusive(run):
    path = run.write()
    run.folder.capture("a").unlink()
    assert (
        judged(setups_until_answered, Evidence(path), run.traffic).outcome is Outcome.INCONCLUSIVE
    )


def of_group(run):
    evidence = Evidence(write(run))
    return {flow.to_host: setups_until_answered(evidence, flow) for flow in run.traffic.flows}


@pytest.mark.parametrize("late", ["b", "c"])
def test_setups_end_with_the_first_answer_of_any_reader(run, monkeypatch, late):
    join(run, monkeypatch, first="b")
    for packets in run.packets.values():
        for each in packets:
            each.time_ns += 5 * INTERVAL_NS if each.source == late else 0
    assert {each.outcome for each in of_group(run).values()} == {Outcome.PASS}


@pytest.mark.parametrize("asking", ["b", "c"])
def test_a_setup_that_one_reader_requested_is_sent_to_all(run, monkeypatch, asking):
    join(run, monkeypatch, first="b")
    late_ns = first_ns(run, "SM") + 2 * INTERVAL_NS
    setup(run, late_ns)
    run.packets["a"].append(replace(run.packets["a"][-1], destination="c"))
    assert {each.outcome for each in of_group(run).values()} == {Outcome.FAIL}
    elicit_setup(run, late_ns - 1)
    run.packets["a"][-1].source = asking
    assert {each.outcome for each in of_group(run).values()} == {Outcome.PASS}


def test_a_late_reader_needs_no_setup_before_it_elicits_one(run, monkeypatch):
    join(run, monkeypatch, first="c")
    joins_ns = first_ns(run, "SM") + 4 * INTERVAL_NS
    run.packets["a"] = [
        each for each in run.packets["a"] if "c" not in (each.source, each.destination)
    ]
    setup(run, joins_ns + 1)
    run.packets["a"].append(replace(run.packets["a"][-1], destination="c"))
    elicit_setup(run, joins_ns)
    run.packets["a"][-1].source = "c"
    assert {each.outcome for each in of_group(run).values()} == {Outcome.PASS}


@pytest.mark.parametrize(("more", "is_right"), [("", False), ("|ttl=3", True), ("|ttl=4", False)])
def test_a_setup_has_the_ttl_of_its_channel(run, more, is_right):
    (traffic,) = run.case.traffic
    changed = traffic.model_copy(update={"channel": traffic.channel + more})
    run.case = run.case.model_copy(update={"traffic": (changed,)})
    for packets in run.packets.values():
        for each in packets:
            if each.kind == "SETUP":
                each.payload = each.payload[:36] + (3).to_bytes(4, "little")
    finding = finding_of(run)
    assert (finding.outcome is Outcome.PASS) == is_right, finding.text
    assert is_right or "has a TTL of 3" in finding.text


@pytest.mark.parametrize("flags", [0x40, 0x80])
def test_a_flag_that_the_channel_does_not_have_is_reported(run, flags):
    for each in run.packets["a"]:
        if each.kind == "SETUP":
            each.payload = each.payload[:5] + bytes([flags]) + each.payload[6:]
    finding = finding_of(run)
    assert finding.outcome is Outcome.FAIL
    assert finding.text == f"a SETUP has the flags {flags:#04x}, expected 0x00"
