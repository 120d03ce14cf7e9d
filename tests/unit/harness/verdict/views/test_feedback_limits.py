"""Feedback that a receiver may withhold, and the status messages, NAKs and windows without it."""

import copy

import pytest

from tests.unit.harness.verdict.checks.flow_control.test_cubic_windows import (
    finding_of as windows_of,
)
from tests.unit.harness.verdict.checks.flow_control.test_cubic_windows import grown
from tests.unit.harness.verdict.checks.flow_control.test_status_message_checks import (
    messages,
    on_time,
    position,
    wait,
)
from tests.unit.harness.verdict.checks.retransmission.test_nak_times import (
    delay,
    nak_of,
    repair_of,
    with_channels,
)
from tests.unit.harness.verdict.checks.retransmission.test_nak_times import (
    repeat as repeat_nak,
)
from tests.unit.harness.verdict.synthetic_run import (
    SESSION_ID,
    STEP_NS,
    TERM_LENGTH,
    SyntheticRun,
    data_header,
    make_run,
)
from windtunnel.harness.artifact.host.application import Part
from windtunnel.harness.artifact.middlebox import frame_class
from windtunnel.harness.artifact.run.manifest import SubjectFacts
from windtunnel.harness.verdict.checks.retransmission.nak_times import naks_in_time
from windtunnel.harness.verdict.core.evidence import Evidence
from windtunnel.harness.verdict.core.outcome import Outcome
from windtunnel.harness.verdict.views.feedback_limits import (
    CONNECTION_TIMEOUT_NS,
    UNSPENT_BYTES_MAX,
    withheld,
)

FAIL, PASS = Outcome.FAIL, Outcome.PASS
SM_BYTES, NAK_BYTES = 36, 28


@pytest.fixture
def run(tmp_path) -> SyntheticRun:
    return make_run(tmp_path)


def repeat(run, packet, times_ns):
    """Let the subscriber's host send a packet again at these times."""
    for time_ns in times_ns:
        again = copy.copy(packet)
        again.time_ns = time_ns
        run.packets["b"].append(again)
    run.packets["b"].sort(key=lambda each: each.time_ns)


def at_withheld(run, time_ns, length, evidence=None, **options):
    evidence = evidence or Evidence(run.write())
    found = withheld(evidence, run.traffic, evidence.wire(run.traffic), length, **options)
    return found.overlaps(time_ns, time_ns + 1)


def is_driver(run, driver):
    run.manifest.subjects = {"b": SubjectFacts("subscriber", driver, "1.53", {})}


def quiet_time(run):
    """Return a time at which nothing happens for a second, in the middle of the stream."""
    last = messages(run)[20]
    wait(run, last.time_ns, 1000 * STEP_NS)
    return last, last.time_ns + 10 * STEP_NS


def test_nothing_is_withheld_in_an_ordinary_stream(run):
    times_ns = [each.time_ns for each in run.packets["b"]]
    assert not any(at_withheld(run, each, SM_BYTES) for each in times_ns[::20])


def test_status_messages_use_all_that_is_permitted(run):
    packet, quiet_ns = quiet_time(run)
    most = UNSPENT_BYTES_MAX // SM_BYTES
    repeat(run, packet, range(quiet_ns, quiet_ns + most - 2))
    assert not at_withheld(run, quiet_ns + most, SM_BYTES)
    repeat(run, packet, [quiet_ns + most - 2, quiet_ns + most - 1])
    assert at_withheld(run, quiet_ns + most, SM_BYTES)
    assert not at_withheld(run, quiet_ns + 1000 * STEP_NS, SM_BYTES), "the next frame ends it"


def test_what_a_receiver_rejects_permits_nothing(run):
    packet, quiet_ns = quiet_time(run)
    most = UNSPENT_BYTES_MAX // SM_BYTES
    repeat(run, packet, range(quiet_ns, quiet_ns + most))
    beat = next(each for each in run.packets["b"] if each.kind == "HEARTBEAT")
    end = position(packet) + TERM_LENGTH // 2
    for beyond, expected in ((32, True), (0, False)):
        again = copy.copy(beat)
        again.payload = data_header(end + beyond, 0, 0xC0, frame_class.DATA)
        repeat(run, again, [quiet_ns + 2 * most])
        assert at_withheld(run, quiet_ns + 3 * most, SM_BYTES) is expected


def test_naks_leave_bytes_for_status_messages(run):
    _, quiet_ns = quiet_time(run)
    most = (UNSPENT_BYTES_MAX - 1024) // NAK_BYTES
    repeat(run, nak_of(run, 0), range(quiet_ns, quiet_ns + most))
    assert at_withheld(run, quiet_ns + most, NAK_BYTES, is_nak=True)
    assert not at_withheld(run, quiet_ns + most, SM_BYTES)


@pytest.mark.parametrize(
    ("driver", "receive", "expected"),
    [
        ("ours", "", True),
        ("pyaeron", "", False),
        ("java", "", False),
        ("ours", "|control=10.64.0.10:24400|control-mode=dynamic", False),
    ],
)
def test_drivers_and_addresses_without_a_limit(run, driver, receive, expected):
    packet, quiet_ns = quiet_time(run)
    with_channels(run, receive=receive)
    is_driver(run, driver)
    repeat(run, packet, range(quiet_ns, quiet_ns + UNSPENT_BYTES_MAX // SM_BYTES))
    assert at_withheld(run, quiet_ns + 200, SM_BYTES) is expected


@pytest.mark.parametrize("driver", ["ours", "pyaeron"])
def test_no_driver_sends_feedback_to_a_source_that_was_silent_for_long(run, driver):
    is_driver(run, driver)
    last = messages(run)[20].time_ns
    wait(run, last, 2 * CONNECTION_TIMEOUT_NS)
    assert not at_withheld(run, last + CONNECTION_TIMEOUT_NS - 9 * STEP_NS, SM_BYTES)
    assert at_withheld(run, last + CONNECTION_TIMEOUT_NS, SM_BYTES)
    assert not at_withheld(run, run.now_ns - STEP_NS, SM_BYTES)


def test_a_new_image_has_nothing_of_the_one_before(run):
    _, quiet_ns = quiet_time(run)
    evidence = Evidence(run.write())
    parts = evidence.subscriber(run.traffic).parts
    for began_ns, session, expected in (
        (0, SESSION_ID, False),
        (quiet_ns, SESSION_ID + 1, False),
        (quiet_ns, SESSION_ID, True),
    ):
        parts.append(Part(session, 0, 0, False, began_ns, began_ns + 1))
        assert at_withheld(run, quiet_ns + 5, SM_BYTES, evidence) is expected


@pytest.mark.parametrize(
    ("count", "driver", "outcome"), [(3, "ours", PASS), (2, "ours", FAIL), (3, "pyaeron", FAIL)]
)
def test_after_a_setup_alone_three_status_messages_are_sent(run, count, driver, outcome):
    first = messages(run)[0]
    wait(run, first.time_ns, 1000 * STEP_NS)
    times_ns = [first.time_ns + 200 * STEP_NS * number for number in range(1, count)]
    repeat(run, first, times_ns)
    is_driver(run, driver)
    finding = on_time(run)
    assert finding.outcome is outcome
    if outcome is FAIL:
        assert f"beginning {200 * (count - 1)} ms after the first one" in finding.text


@pytest.mark.parametrize(("more_bytes", "outcome"), [(0, PASS), (-NAK_BYTES, FAIL)])
def test_a_withheld_nak_is_not_late(run, more_bytes, outcome):
    run.case = run.case.model_copy(update={"fidelity": "sim"})
    with_channels(run, receive="|nak-delay=15us")
    found_ns = nak_of(run, 4).time_ns - STEP_NS // 2
    delay(run, 4, STEP_NS // 10)
    most = (UNSPENT_BYTES_MAX - 1024 + more_bytes) // NAK_BYTES
    repeat(run, nak_of(run, 0), range(found_ns + 1, found_ns + 1 + most))
    finding = naks_in_time(Evidence(run.write()), run.traffic)
    assert finding.outcome is outcome, finding.text


@pytest.mark.parametrize(("others", "outcome"), [(400, PASS), (1, FAIL)])
def test_a_withheld_nak_counts_for_the_doublings_of_the_delay(run, others, outcome):
    run.case = run.case.model_copy(update={"fidelity": "sim"})
    with_channels(run, receive="|nak-delay=4us")
    for index in range(29):
        repair_of(run, index).time_ns = nak_of(run, index).time_ns + 200_000
    delays_ns = [400_000 << number // 16 for number in range(1, 40)]
    withheld_at = 10
    waits_ns = [*delays_ns]
    waits_ns[withheld_at : withheld_at + 2] = [sum(delays_ns[withheld_at : withheld_at + 2])]
    repeat_nak(run, 29, waits_ns)
    begun_ns = nak_of(run, 29).time_ns + sum(delays_ns[:withheld_at])
    repeat(run, nak_of(run, 0), range(begun_ns + 1, begun_ns + 1 + others))
    finding = naks_in_time(Evidence(run.write()), run.traffic)
    assert finding.outcome is outcome, finding.text


@pytest.mark.parametrize(("driver", "outcome"), [("ours", PASS), ("pyaeron", FAIL)])
def test_windows_may_change_while_status_messages_are_withheld(run, driver, outcome):
    is_driver(run, driver)
    packet, quiet_ns = quiet_time(run)
    most = UNSPENT_BYTES_MAX // SM_BYTES
    before = grown(run)[: messages(run).index(packet) + 1]
    repeat(run, packet, range(quiet_ns, quiet_ns + most))
    grown_unseen = before[-1] + 1
    packets = [*before, *before[-1:] * most, grown_unseen * 8 // 10]
    finding = windows_of(run, packets)
    assert finding.outcome is outcome, finding.text
    if outcome is FAIL:
        assert finding.text == "the window shrank from 21 to 17 packets, expected 16"
