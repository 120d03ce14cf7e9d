"""Rejections that reach a publication, and the entries that they leave in the error log."""

import struct

import pytest

from tests.unit.harness.verdict.synthetic_run import (
    ADDRESS,
    PORT,
    SENDER_PORT,
    SESSION_ID,
    STREAM_ID,
    Packet,
    make_run,
)
from windtunnel.harness.artifact.host.host_facts import ErrorObservation, write_error_log
from windtunnel.harness.verdict.checks.counters.rejections import unrecorded
from windtunnel.harness.verdict.checks.counters.sums import system_counters_add_up
from windtunnel.harness.verdict.core.evidence import Evidence
from windtunnel.harness.verdict.core.outcome import Outcome

MS = 1_000_000
RECEIVER = 99
ENTRY = (
    f"sessionId={SESSION_ID}, streamId={STREAM_ID}, receiverId={RECEIVER}, groupId=-1, "
    "errorCode=13, errorMessage=enough"
)
LOGGED = f"onPublicationError: registrationId=5, {ENTRY}"


@pytest.fixture
def run(tmp_path):
    run = make_run(tmp_path)
    run.case = run.case.model_copy(update={"fidelity": "sim", "exercises": ("image-rejection",)})
    return run


def arrive(run, payload, before_end_ms):
    time_ns = max(each.time_ns for each in run.packets["a"]) - int(before_end_ms * MS)
    run.packets["a"].append(Packet(time_ns, "b", "a", (PORT, SENDER_PORT), payload, "ERR"))


def rejection(*, session=SESSION_ID, receiver=RECEIVER, flags=0, tag=0, cut=0, text=b"enough"):
    length = 40 + len(text)
    ids = session, STREAM_ID, receiver, tag, 13, len(text)
    fixed = struct.pack("<iBBHiiqqii", length, 0, flags, 4, *ids)
    return (fixed + text)[: length - cut]


def unrecorded_rejections(run, *texts):
    capture = Evidence(run.write()).capture("a")
    return unrecorded(capture, ADDRESS["a"], [ErrorObservation(1, 1, 1, each) for each in texts])


def test_nothing_is_missing_without_rejections(run):
    assert unrecorded_rejections(run) == ""


def test_a_rejection_leaves_an_entry_with_its_ids_and_its_message(run):
    arrive(run, rejection(), 150)
    assert unrecorded_rejections(run, "(-1) another error", LOGGED) == ""
    assert unrecorded_rejections(run, "(-1) another error") == ENTRY
    assert unrecorded_rejections(run, LOGGED.replace("enough", "other")) == ENTRY


def test_the_group_tag_of_a_receiver_is_part_of_its_entry(run):
    arrive(run, rejection(flags=8, tag=77), 150)
    assert unrecorded_rejections(run) == ENTRY.replace("groupId=-1", "groupId=77")


@pytest.mark.parametrize(
    "payload",
    [
        rejection(session=SESSION_ID + 1),
        rejection(receiver=RECEIVER + 1),
        rejection(cut=2),
    ],
)
def test_a_rejection_that_no_live_receiver_sent_leaves_none(run, payload):
    arrive(run, payload, 150)
    assert unrecorded_rejections(run) == ""


def test_a_receiver_that_has_left_or_is_silent_rejects_nothing(run):
    arrive(run, rejection(), 150)
    statuses = [each for each in run.packets["a"] if each.kind == "SM"]
    (err,) = (each for each in run.packets["a"] if each.kind == "ERR")
    last = max((each for each in statuses if each.time_ns < err.time_ns), key=lambda p: p.time_ns)
    whole = last.payload
    last.payload = whole[:5] + b"\x40" + whole[6:]
    assert unrecorded_rejections(run) == ""
    last.payload = whole
    assert unrecorded_rejections(run) == ENTRY
    for packets in run.packets.values():
        for each in packets:
            each.time_ns += 1_100 * MS if each.time_ns >= err.time_ns else 0
    assert unrecorded_rejections(run) == ""


def test_a_rejection_at_the_end_may_not_have_been_recorded(run):
    arrive(run, rejection(), 99)
    assert unrecorded_rejections(run) == ""


@pytest.mark.parametrize(("logged", "outcome"), [(True, Outcome.PASS), (False, Outcome.FAIL)])
def test_the_sums_of_a_host_include_its_rejections(run, logged, outcome):
    arrive(run, rejection(), 150)
    run.values |= {"a/15": int(logged)}
    path = run.write()
    for host in ("a", "b"):
        own = [ErrorObservation(1, 1, 1, LOGGED)] if logged and host == "a" else []
        write_error_log(run.folder.host(host).cnc_errors, own)
    finding = system_counters_add_up(Evidence(path), list(run.case.traffic))[0]
    assert finding.outcome is outcome
    if not logged:
        text = f"the error log has no entry of a rejection that arrived: {ENTRY}"
        assert finding.text == text
