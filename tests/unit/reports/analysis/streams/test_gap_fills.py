"""The bounds of what an unreliable receiver filled and delivered contain the values of a model."""

import pytest

from tests.stand_ins.lossy_stream import MS, STEP, US, LossyStream, Plan
from windtunnel.reports.analysis.analyze import analyze
from windtunnel.reports.analysis.output.summary import summary_lines

LOSSY = [Plan(seed, loss=0.03, late=0.05, is_reliable=False) for seed in range(4)]
LATE = [Plan(seed, late=0.05, is_reliable=False, late_ns=MS) for seed in range(3)]
QUICK = [Plan(seed, loss=0.01, late=0.1, late_ns=550 * US, is_reliable=False) for seed in range(3)]
SLOW = [Plan(seed, loss=0.05, late=0.2, late_ns=40 * MS, is_reliable=False) for seed in range(3)]


def analysed(tmp_path, plan, *points):
    stream = LossyStream(plan)
    folder = stream.write(tmp_path)
    return stream, analyze([f"{point}={folder / point}.pcap" for point in points])


@pytest.mark.parametrize("plan", [*LOSSY, *LATE, *QUICK, *SLOW], ids=str)
def test_fills_and_messages_are_within_their_bounds(tmp_path, plan):
    stream, result = analysed(tmp_path, plan, "sub1")
    (receiver,), (flow,) = stream.receivers, result.flows.to_pylist()
    assert receiver.fills
    assert flow["gap_fills_min"] <= len(receiver.fills) <= flow["gap_fills_max"]
    assert flow["messages_min"] <= receiver.delivered <= flow["messages"]
    frames = plan.frames - len(receiver.lost)
    assert flow["messages"] <= frames
    counted = sum(flow[f"{name}_frames"] for name in ("first", "reordered", "late"))
    assert (counted, flow["resent_frames"], flow["duplicate_frames"]) == (frames, 0, 0)


@pytest.mark.parametrize("plan", LOSSY, ids=str)
def test_frames_that_arrived_too_late_are_not_called_lost(tmp_path, plan):
    stream, result = analysed(tmp_path, plan, "sub1")
    lost = len(stream.receivers[0].lost) * STEP
    line, _ = summary_lines(result)
    assert f"; lost {lost:,} bytes of first transmissions in " in line
    flow = result.flows.to_pylist()[0]
    delivered = f"{flow['messages_min']} to {flow['messages']} messages"
    fills = f"{flow['gap_fills_min']} to {flow['gap_fills_max']} gaps"
    assert f"; the unreliable receiver filled {fills}, and delivered {delivered}" in line


def test_without_a_skipped_gap_and_a_nak_the_text_is_conditional(tmp_path):
    stream, result = analysed(tmp_path, LATE[0], "sub1")
    (flow,), (line, _) = result.flows.to_pylist(), summary_lines(result)
    assert flow["gap_fills_min"] == 0
    assert f"an unreliable receiver would have filled up to {flow['gap_fills_max']} gaps" in line
    assert len(stream.receivers[0].fills) <= flow["gap_fills_max"]


def test_a_nak_shows_that_nothing_is_filled(tmp_path):
    plan = Plan(5, loss=0.03, late=0.05)
    stream, result = analysed(tmp_path, plan, "sub1")
    (flow,) = result.flows.to_pylist()
    assert (flow["gap_fills_min"], flow["gap_fills_max"]) == (0, 0)
    assert flow["messages_min"] == flow["messages"] == stream.receivers[0].delivered == plan.frames
    assert "filled" not in summary_lines(result)[0]


def test_at_the_sender_gap_fills_are_unknown(tmp_path):
    _, result = analysed(tmp_path, LOSSY[0], "pub")
    (line, _) = summary_lines(result)
    assert "no gap seen here" in line
    assert "filled" not in line
