"""Requests for SETUPs and rejections: at most one in each interval, and one more."""

import struct

import pytest

from tests.unit.harness.verdict.synthetic_run import (
    PORT,
    SENDER_PORT,
    SESSION_ID,
    START_NS,
    STREAM_ID,
    Packet,
    make_run,
)
from windtunnel.harness.verdict.checks.flow_control.feedback_intervals import (
    TIMEOUT_SETTING,
    feedback_spaced,
)
from windtunnel.harness.verdict.core.evidence import Evidence
from windtunnel.harness.verdict.core.outcome import Outcome

PASS, FAIL = Outcome.PASS, Outcome.FAIL
MS = 1_000_000


@pytest.fixture
def run(tmp_path):
    return make_run(tmp_path)


def elicit_setup(run, after_ms, *, session=0, port=PORT):
    """Let host b request a SETUP at a time."""
    payload = struct.pack("<iBBHiiiiiq", 36, 0, 0x80, 3, session, 0, 0, 0, 0, 99)
    send(run, after_ms, payload, port)


def reject(run, after_ms):
    """Let host b reject an image at a time."""
    fixed = struct.pack("<iBBHiiqqii", 43, 0, 0, 4, SESSION_ID, STREAM_ID, 99, 0, 13, 3)
    send(run, after_ms, fixed + b"why", PORT)


def send(run, after_ms, payload, port):
    time_ns = START_NS + int(after_ms * MS)
    run.packets["b"].append(Packet(time_ns, "b", "a", (port, SENDER_PORT), payload, "SM"))


def finding_of(run):
    near, far = feedback_spaced(Evidence(run.write()), list(run.case.traffic))
    assert (near.about, near.outcome, far.about) == ("a", PASS, "b")
    return far


def test_a_run_without_such_feedback_passes(run):
    assert finding_of(run).text == "0 requests for a SETUP and 0 rejections, none too early"


@pytest.mark.parametrize(
    ("times_ms", "outcome"),
    [
        ([0, 1000, 2000, 3000], PASS),
        ([0, 996, 1996], PASS),
        ([0, 10, 1010, 2010], PASS),
        ([0, 10, 20], FAIL),
        ([0, 10, 1010, 1020], FAIL),
        ([0, 500, 1000, 1500, 2000], FAIL),
        ([0, 3000, 3500, 4500], PASS),
        ([0, 3000, 3500, 4000, 4500], FAIL),
        ([0, 10, 5000, 5010], PASS),
    ],
)
def test_one_request_per_second_and_one_more_are_permitted(run, times_ms, outcome):
    for each in times_ms:
        elicit_setup(run, each)
    finding = finding_of(run)
    assert finding.outcome is outcome
    if outcome is PASS:
        assert finding.text.startswith(f"{len(times_ms)} requests for a SETUP")


def test_the_finding_names_the_requests_and_how_early_they_were(run):
    for each in (0, 10, 20):
        elicit_setup(run, each)
    assert finding_of(run).text == (
        "3 requests for a SETUP of session 0, stream 0 were up to 1980.0 ms early, expected one "
        "in 1000 ms"
    )


def test_sockets_and_sessions_have_intervals_of_their_own(run):
    for index in range(4):
        elicit_setup(run, 10 * index, session=index)
        elicit_setup(run, 10 * index, port=PORT + 1 + index)
    assert finding_of(run).outcome is PASS


@pytest.mark.parametrize(
    ("step_ms", "timeout", "outcome"),
    [
        (200, None, PASS),
        (201, None, PASS),
        (150, None, FAIL),
        (0.1, None, FAIL),
        (150, "100ms", PASS),
        (90, "100ms", FAIL),
        (90, "unreadable", PASS),
    ],
)
def test_a_rejection_is_repeated_after_each_status_timeout(run, step_ms, timeout, outcome):
    if timeout:
        run.case = run.case.model_copy(update={"drivers": {"b": {TIMEOUT_SETTING: timeout}}})
    for index in range(14):
        reject(run, index * step_ms)
    finding = finding_of(run)
    assert finding.outcome is outcome
    assert outcome is PASS or finding.text.startswith(
        f"14 rejections of session {SESSION_ID}, stream {STREAM_ID} were up to"
    )


def test_a_missing_capture_is_inconclusive(run):
    path = run.write()
    run.folder.capture("b").unlink()
    found = feedback_spaced(Evidence(path), list(run.case.traffic))
    assert [each.outcome for each in found] == [PASS, Outcome.INCONCLUSIVE]


@pytest.mark.parametrize(
    ("changes", "session", "outcome"),
    [
        ({"fidelity": "sim"}, 0, FAIL),
        ({"fidelity": "sim"}, 5, PASS),
        ({"fidelity": "sim", "exercises": ("sessions",)}, 0, PASS),
        ({"fidelity": "netns"}, 0, PASS),
    ],
)
def test_a_socket_that_is_opened_once_elicits_once_from_a_control_address(
    run, changes, session, outcome
):
    for each in (0, 10, 1010):
        elicit_setup(run, each, session=session)
    run.case = run.case.model_copy(update=changes)
    assert finding_of(run).outcome is outcome


def test_a_socket_that_is_opened_once_may_elicit_each_second(run):
    for each in (0, 996, 2000):
        elicit_setup(run, each)
    run.case = run.case.model_copy(update={"fidelity": "sim"})
    assert finding_of(run).outcome is PASS
