"""The window: a frame one byte beyond the limit is reported; a PAD needs its header only."""

import struct

import pytest

from tests.unit.harness.verdict.judged import judged
from tests.unit.harness.verdict.synthetic_run import (
    INITIAL_TERM_ID,
    TERM_LENGTH,
    WINDOW,
    SyntheticRun,
    make_run,
)
from windtunnel.harness.verdict.checks.flow_control.window import sends_within_window
from windtunnel.harness.verdict.core.evidence import Evidence
from windtunnel.harness.verdict.core.outcome import Outcome


@pytest.fixture
def run(tmp_path) -> SyntheticRun:
    return make_run(tmp_path)


def finding_of(run):
    return sends_within_window(Evidence(run.write()), run.traffic)


def messages(run):
    """Return the status messages that arrived at the publisher's host."""
    return [each for each in run.packets["a"] if each.kind == "SM"]


def set_window(packet, window: int) -> None:
    packet.payload = packet.payload[:24] + struct.pack("<i", window) + packet.payload[28:]


def frames_between(run, start_ns: int, end_ns: int):
    return [
        each
        for each in run.packets["a"]
        if each.kind in ("DATA", "PAD") and start_ns < each.time_ns < end_ns
    ]


def test_a_sender_that_keeps_within_the_window_passes(run):
    finding = finding_of(run)
    assert finding.outcome is Outcome.PASS
    assert finding.facts["status_messages"] == len(messages(run))
    assert finding.facts["least_room"] > 0


@pytest.mark.parametrize(("missing", "outcome"), [(0, Outcome.PASS), (32, Outcome.FAIL)])
def test_a_frame_may_reach_the_limit_and_no_further(run, missing, outcome):
    first, second = messages(run)[:2]
    last = frames_between(run, first.time_ns, second.time_ns)[-1]
    length, offset = struct.unpack_from("<i4xi", last.payload)
    end = offset + (length + 31) // 32 * 32
    set_window(first, end - missing)
    finding = finding_of(run)
    assert finding.outcome is outcome
    if outcome is Outcome.FAIL:
        assert (finding.position, finding.conclusive) == (offset, False)
        assert f"to {end} was sent, but the limit was {end - missing}" in finding.text
        assert finding.evidence == ("captures/a.pcap",)


def test_data_before_any_status_message_is_reported(run):
    first = messages(run)[0]
    first.time_ns = messages(run)[1].time_ns - 1
    finding = finding_of(run)
    assert (finding.outcome, finding.position) == (Outcome.FAIL, 0)
    assert "no status message had arrived yet" in finding.text


def test_a_status_message_that_requests_a_setup_allows_nothing(run):
    first = messages(run)[0]
    first.payload = first.payload[:5] + b"\x80" + first.payload[6:]
    assert finding_of(run).outcome is Outcome.FAIL


@pytest.mark.parametrize("missing", [0, 32])
def test_only_the_header_of_a_pad_counts(run, missing):
    pad = next(each for each in run.packets["a"] if each.kind == "PAD")
    length, offset, term_id = struct.unpack_from("<i4xi8xi", pad.payload)
    start = position_of(term_id, offset)
    assert length > 32
    for each in messages(run):
        if each.time_ns < pad.time_ns:
            consumed = position_of(*struct.unpack_from("<ii", each.payload, 16))
            set_window(each, min(WINDOW, start + 32 - missing - consumed))
    offender = finding_of(run).position
    assert offender == (start if missing else start + (length + 31) // 32 * 32)


def position_of(term_id: int, offset: int) -> int:
    return (term_id - INITIAL_TERM_ID) * TERM_LENGTH + offset


def test_retransmits_are_not_limited_by_the_window(run):
    asked = next(each for each in run.packets["a"] if each.kind == "NAK")
    again = frames_between(run, asked.time_ns, asked.time_ns + 10**9)[0]
    assert finding_of(run).outcome is Outcome.PASS
    assert [each.payload for each in run.packets["a"]].count(again.payload) == 2


def test_missing_status_messages_or_a_missing_capture_are_inconclusive(run):
    run.packets["a"] = [each for each in run.packets["a"] if each.kind != "SM"]
    finding = finding_of(run)
    assert finding.outcome is Outcome.INCONCLUSIVE
    assert "has no status message" in finding.text
    run.folder.capture("a").unlink()
    again = judged(sends_within_window, Evidence(run.path), run.traffic)
    assert again.outcome is Outcome.INCONCLUSIVE
