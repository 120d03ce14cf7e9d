"""The loss report counts each byte that NAKs requested exactly once, and names the stream."""

import struct
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.unit.harness.verdict.judged import judged
from tests.unit.harness.verdict.synthetic_replication import SOCKET, replicate
from tests.unit.harness.verdict.synthetic_report import loss_report
from tests.unit.harness.verdict.synthetic_run import (
    ADDRESS,
    PORT,
    SENDER_PORT,
    SESSION_ID,
    STREAM_ID,
    make_run,
    nak,
)
from tests.unit.harness.verdict.views.test_pauses import ORDERED, pause
from windtunnel.harness.artifact.host.host_event import AppliedEvent, write_applied_events
from windtunnel.harness.dissect.driver_files.loss_report import ENTRY
from windtunnel.harness.verdict.checks.counters import loss_reports
from windtunnel.harness.verdict.checks.counters.loss_reports import LENGTH_MAX, loss_report_agrees
from windtunnel.harness.verdict.core.evidence import Evidence
from windtunnel.harness.verdict.core.outcome import Outcome


def finding_of(run):
    return loss_report_agrees(Evidence(run.write()), run.traffic)


@pytest.mark.parametrize("reliable", [True, False])
def test_a_report_of_all_gaps_is_a_pass(tmp_path, reliable):
    run = make_run(tmp_path, reliable=reliable)
    finding = finding_of(run)
    assert finding.outcome is Outcome.PASS, finding.text
    assert finding.facts["lost"] == finding.facts["most"] == sum(run.lost) > 0


@pytest.mark.parametrize("reliable", [True, False])
def test_a_gap_that_is_reported_twice_is_found(tmp_path, reliable):
    run = make_run(tmp_path, reliable=reliable)
    most = sum(run.lost)
    run.lost.append(run.lost[0])
    finding = finding_of(run)
    assert finding.outcome is Outcome.FAIL
    assert f"has {most + run.lost[0]} bytes" in finding.text
    assert f"to {most} according" in finding.text


def test_a_gap_that_is_not_reported_is_found(tmp_path):
    run = make_run(tmp_path)
    least = sum(run.lost)
    del run.lost[0]
    finding = finding_of(run)
    assert finding.outcome is Outcome.FAIL
    assert f"expected {least} to {least} according" in finding.text


@pytest.mark.parametrize("replicated", [True, False])
def test_an_entry_of_a_replicated_recording_is_not_of_the_stream(tmp_path, replicated):
    run = make_run(tmp_path)
    if replicated:
        replicate(run)
    folder = run.write()
    report = run.folder.host("b").loss_report
    content = report.read_bytes()
    channel = f"aeron:udp?endpoint={ADDRESS['b']}:8030|rejoin=false"
    more = loss_report([320], SESSION_ID, STREAM_ID, channel, f"{ADDRESS['a']}:{SOCKET}")
    report.write_bytes(content + bytes(-len(content) % 64) + more)
    finding = loss_report_agrees(Evidence(folder), run.traffic)
    assert finding.outcome is (Outcome.PASS if replicated else Outcome.FAIL), finding.text


@pytest.mark.parametrize("recorded", ["b", ""])
def test_the_channel_may_be_that_of_an_archive(tmp_path, recorded):
    run = make_run(tmp_path)
    receive = f"{run.traffic.receive}|nak-delay=1ms"
    folder = run.write()
    changes = {"receive": receive, "recorded": recorded}
    finding = loss_report_agrees(Evidence(folder), run.traffic.model_copy(update=changes))
    assert finding.outcome is (Outcome.PASS if recorded else Outcome.FAIL), finding.text


def test_an_empty_report_is_found(tmp_path):
    run = make_run(tmp_path)
    run.lost.clear()
    assert "has 0 bytes" in finding_of(run).text


@pytest.mark.parametrize(
    ("old", "new", "text"),
    [(b"aeron:udp", b"aeron:ipc", "has channel 'aeron:ipc"), (b":40", b":41", "has source '")],
)
def test_a_wrong_name_is_found(tmp_path, old, new, text):
    run = make_run(tmp_path)
    folder = run.write()
    report = run.folder.host("b").loss_report
    assert old in report.read_bytes()
    report.write_bytes(report.read_bytes().replace(old, new))
    finding = loss_report_agrees(Evidence(folder), run.traffic)
    assert finding.outcome is Outcome.FAIL
    assert text in finding.text


def test_the_source_is_that_of_the_setup_if_a_fault_changed_that_of_data(tmp_path):
    run = make_run(tmp_path)
    for each in run.packets["b"]:
        if each.kind in ("DATA", "PAD"):
            each.ports = (SENDER_PORT + 1, PORT)
    finding = finding_of(run)
    assert finding.outcome is Outcome.PASS, finding.text


def test_a_gap_before_the_image_existed_may_be_reported(tmp_path):
    """The receiver requests the first two frames, which arrived before its first status message."""
    run = make_run(tmp_path, drops=False)
    begun, later = [each for each in run.packets["b"] if each.kind == "DATA"][1:3]
    run.packets["b"] = [
        each for each in run.packets["b"] if each.kind != "SM" or each.time_ns > begun.time_ns
    ]
    asked = replace(
        next(each for each in run.packets["b"] if each.kind == "SM"),
        time_ns=later.time_ns + 1,
        payload=nak(0, run.frame_end(1)),
        kind="NAK",
    )
    run.packets["b"].append(asked)
    run.lost.append(run.frame_end(1))
    finding = finding_of(run)
    assert finding.outcome is Outcome.PASS, finding.text


def test_a_missing_report_is_inconclusive(tmp_path):
    run = make_run(tmp_path)
    folder = run.write()
    run.folder.host("b").loss_report.unlink()
    assert judged(loss_report_agrees, Evidence(folder), run.traffic).outcome is Outcome.INCONCLUSIVE


def changed(run, change):
    """Judge a run with a changed loss report."""
    folder = run.write()
    report = run.folder.host("b").loss_report
    report.write_bytes(change(report.read_bytes()))
    return judged(loss_report_agrees, Evidence(folder), run.traffic)


def test_a_report_that_is_too_long_is_a_defect_of_the_harness(tmp_path):
    finding = changed(make_run(tmp_path), lambda old: old + bytes(LENGTH_MAX))
    assert finding.outcome is Outcome.HARNESS


@pytest.mark.parametrize("length", [-1, 1 << 20, (1 << 31) - 1])
def test_a_string_that_exceeds_the_report_is_the_drivers_failure(tmp_path, length):
    def change(old):
        return old[: ENTRY.itemsize] + struct.pack("<i", length) + old[ENTRY.itemsize + 4 :]

    finding = changed(make_run(tmp_path), change)
    assert finding.outcome is Outcome.FAIL
    text = "the driver wrote an invalid loss report: entry 0 at 0: a string exceeds the end"
    assert finding.text.startswith(text)


@pytest.mark.parametrize("source", [b"\xff\x00\x01", b":", b"no port", b":-1"])
def test_a_source_that_is_no_address_is_the_drivers_failure(tmp_path, source):
    def change(old):
        at = old.index(b":40")
        return old[: at - 2] + source.ljust(5) + old[at + 3 :]

    finding = changed(make_run(tmp_path), change)
    assert finding.outcome is Outcome.FAIL
    assert "the loss report has source " in finding.text


def test_several_sessions_are_not_judged(tmp_path):
    run = make_run(tmp_path)
    traffic = run.traffic.model_copy(update={"rejoins": True})
    finding = loss_report_agrees(Evidence(run.write()), traffic)
    assert finding.outcome is Outcome.INCONCLUSIVE
    assert "several images" in finding.text


def dated(tmp_path, first_ms=0, last_ms=0, fidelity="sim", events=(), observations=0):
    """Judge a run whose loss report has the times and the number of its NAKs, plus some
    milliseconds and observations.
    """
    run = make_run(tmp_path)
    run.case = run.case.model_copy(update={"fidelity": fidelity})
    sent_ms = [each.time_ns // 1_000_000 for each in run.packets["b"] if each.kind == "NAK"]
    assert len(sent_ms) > 1
    folder = run.write()
    if events:
        cases, applied = zip(*events, strict=True)
        run.case.model_copy(update={"events": cases}).write(run.folder.case)
        write_applied_events(run.folder.host_events, list(applied))
    report = run.folder.host("b").loss_report
    content = bytearray(report.read_bytes())
    struct.pack_into("<qq", content, 16, sent_ms[0] + first_ms, sent_ms[-1] + last_ms)
    (count,) = struct.unpack_from("<q", content)
    assert count == len(sent_ms)
    struct.pack_into("<q", content, 0, count + observations)
    report.write_bytes(content)
    return loss_report_agrees(Evidence(folder), run.traffic)


@pytest.mark.parametrize("late_ms", [0, 2])
def test_times_of_naks_are_a_pass(tmp_path, late_ms):
    finding = dated(tmp_path, late_ms, late_ms)
    assert finding.outcome is Outcome.PASS, finding.text


@pytest.mark.parametrize(
    ("late", "text"),
    [
        ({"first_ms": 3}, "the first observation"),
        ({"first_ms": -10_000}, "the first observation"),
        ({"last_ms": 3}, "the last observation"),
        ({"last_ms": -10_000}, "the last observation"),
    ],
)
def test_a_wrong_time_is_found_in_a_simulation(tmp_path, late, text):
    finding = dated(tmp_path, **late)
    assert finding.outcome is Outcome.FAIL
    assert text in finding.text
    assert dated(tmp_path / "real", **late, fidelity="netns").outcome is Outcome.PASS
    paused = [(ORDERED, pause(400, 450))]
    assert dated(tmp_path / "paused", **late, events=paused).outcome is Outcome.PASS


def step(tmp_path, step_ms, host="b"):
    """Return a step of a host's clock between the first NAK and the last one."""
    sent_ns = [each.time_ns for each in make_run(tmp_path).packets["b"] if each.kind == "NAK"]
    at_ns = (sent_ns[0] + sent_ns[-1]) // 2
    event = ORDERED.model_copy(
        update={"host": host, "action": "step_clock", "lasts_ns": 0, "step_ns": step_ms * 10**6}
    )
    return event, AppliedEvent(event.id, host, "step_clock", ["driver"], at_ns, at_ns)


@pytest.mark.parametrize("step_ms", [9_000, -3_600_000])
def test_times_after_a_step_of_the_clock_are_those_of_the_stepped_clock(tmp_path, step_ms):
    steps = [step(tmp_path / "made", step_ms)]
    assert dated(tmp_path / "same", events=steps).outcome is Outcome.FAIL
    assert dated(tmp_path / "last", last_ms=step_ms, events=steps).outcome is Outcome.PASS
    both = dated(tmp_path / "both", first_ms=step_ms, last_ms=step_ms, events=steps)
    assert "the first observation" in both.text
    other = [step(tmp_path / "other", step_ms, host="a")]
    assert dated(tmp_path / "peer", events=other).outcome is Outcome.PASS
    assert dated(tmp_path / "late", last_ms=step_ms, events=other).outcome is Outcome.FAIL


@pytest.mark.parametrize(
    ("more", "outcome"), [(0, Outcome.PASS), (1, Outcome.FAIL), (-1, Outcome.FAIL)]
)
def test_observations_are_naks_for_new_bytes_in_a_simulation(tmp_path, more, outcome):
    finding = dated(tmp_path, observations=more)
    assert finding.outcome is outcome, finding.text
    if outcome is Outcome.FAIL:
        assert " observations, but " in finding.text
    real = dated(tmp_path / "real", observations=more, fidelity="netns")
    assert real.outcome is Outcome.PASS


RANGES = st.lists(st.tuples(st.integers(0, 40), st.integers(1, 12)), max_size=40)


@given(RANGES)
def test_fresh_ranges_are_those_with_a_byte_that_none_before_had(ranges):
    seen, count = set(), 0
    for start, length in ranges:
        own = set(range(start, start + length))
        count += not own <= seen
        seen |= own
    starts, lengths = np.array(ranges, dtype=np.int64).reshape(-1, 2).T
    assert loss_reports._fresh_ranges(starts, starts + lengths) == count
