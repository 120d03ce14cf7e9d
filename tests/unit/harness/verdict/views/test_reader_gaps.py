"""Gaps of frames that a receiver rejected, or that were only late, in runs made by hand.

    ms    1 to 250            300 301 302          340 341
    a     f0 ... f203         f204 f205 f206       f204 f205
    b                 SM                     NAK             all frames arrive after 10 ms

Frames 204 and 205 end beyond the window of the receiver, frame 206 is sent after a status message.
"""

import pytest

from tests.unit.harness.verdict.synthetic_reading import (
    FRAME_BYTES,
    MS,
    at_ms,
    captured,
    without_frames,
)
from tests.unit.harness.verdict.synthetic_run import (
    TERM_LENGTH,
    TRAFFIC,
    heartbeat,
    nak,
    status_message,
)
from tests.unit.harness.verdict.synthetic_times import write_times
from windtunnel.harness.artifact.documents import read_document, write_document
from windtunnel.harness.artifact.run.verdict import observations_of, read_verdict
from windtunnel.harness.artifact.run_dir import RunDir
from windtunnel.harness.verdict.judge import judge

COUNT = 210
WAY_MS = 10
REJECTED = TERM_LENGTH // 2 // FRAME_BYTES
"""The first frame that ends more than half a term beyond the start of the stream."""
UNNEEDED = (
    "one: 1 unneeded retransmit, since another transmission of the same frame arrived: 1 frame was "
    "only late, and arrived 20 ms (median; at most 20 ms) after the gap appeared, later than the "
    "first NAK"
)

REVEALED = (
    "one: no frame followed the 160 B whose recovery took longest: a heartbeat revealed the gap "
    "110 ms after they were sent, and only then their repair began"
)


def sent(made, at, frame, way_ms=WAY_MS):
    captured(made, "a", made.frame_bytes(frame), "DATA", at, at + way_ms)


def requested(made, at, frame, count):
    request = nak(frame * FRAME_BYTES, count * FRAME_BYTES)
    captured(made, "b", request, "NAK", at, at + WAY_MS)


def figures_of(made):
    """Return the row of the run, and the sentences about it."""
    count = made.plan.count
    made.messages = [((each + 1) * FRAME_BYTES, bytes(100)) for each in range(count)]
    folder = RunDir(made.write())
    write_times(made, at_ms(range(1, count + 1)), at_ms(range(1000, 1000 + count)))
    verdict = judge(folder.path)
    assert [each.text for each in verdict.checks if "raised" in each.text] == []
    return verdict.results[0], observations_of(read_verdict(folder.verdict)).all_sentences


def test_frames_that_the_receiver_rejected_are_gaps_on_a_link_without_losses(tmp_path):
    made = without_frames(tmp_path / "run", COUNT * 100)
    for frame in range(REJECTED):
        sent(made, 1 + frame, frame)
    for frame in range(2):
        sent(made, 300 + frame, REJECTED + frame)
    captured(made, "b", status_message(REJECTED * FRAME_BYTES), "SM", 320, 320)
    for frame in range(REJECTED + 2, COUNT):
        sent(made, 330, frame)
    requested(made, 345, REJECTED, 2)
    for frame in range(2):
        sent(made, 360 + frame, REJECTED + frame)
    row, sentences = figures_of(made)
    assert (row.lost_frames, row.rejected_frames, row.unneeded_frames) == (0, 2, 0)
    assert (row.naks, row.gaps, row.requested_gaps) == (1, 1, 1)
    assert row.repair_p50_ns == (371 - 340) * MS
    assert dict(row.cells())["NAKs"] == "1 for 1 gap (1.0 each)"
    assert (
        "one: 2 frames arrived, but the receiver rejected them because they ended beyond its "
        "window, and requested them with NAKs"
    ) in sentences


@pytest.mark.parametrize(("nak_ms", "unneeded"), [(41, 0), (20, 1)])
def test_a_late_frame_that_was_requested_makes_an_unneeded_retransmit(tmp_path, nak_ms, unneeded):
    """Frame 3 arrives 20 ms after frame 4 showed its gap, before its retransmit is sent."""
    made = without_frames(tmp_path / "run", 1000)
    for frame in range(10):
        sent(made, 1 + frame, frame, way_ms=31 if frame == 3 else WAY_MS)
    if unneeded:
        requested(made, nak_ms, 3, 1)
        sent(made, 40, 3)
    row, sentences = figures_of(made)
    assert (row.lost_frames, row.gaps, row.unneeded_frames) == (0, 0, unneeded)
    assert [each for each in sentences if "unneeded" in each] == [UNNEEDED] * unneeded


def test_a_lost_frame_that_is_sent_again_twice_was_not_late(tmp_path):
    made = without_frames(tmp_path / "run", 1000)
    for frame in range(10):
        sent(made, 1 + frame, frame)
    made.packets["b"] = [each for each in made.packets["b"] if each.payload != made.frame_bytes(3)]
    for at in (20, 35):
        requested(made, at, 3, 1)
        sent(made, at + WAY_MS, 3)
    row, sentences = figures_of(made)
    assert (row.lost_frames, row.gaps, row.unneeded_frames) == (1, 1, 1)
    assert [each for each in sentences if "unneeded" in each] == [
        "one: 1 unneeded retransmit, since another transmission of the same frame arrived"
    ]


def test_gaps_without_a_nak_of_their_own_are_distinguished(tmp_path):
    made = without_frames(tmp_path / "run", 1000)
    for frame in range(10):
        sent(made, 1 + frame, frame, way_ms=WAY_MS)
    for gap in (3, 6):
        made.packets["b"] = [
            each for each in made.packets["b"] if each.payload != made.frame_bytes(gap)
        ]
    requested(made, 20, 3, 1)
    row, _ = figures_of(made)
    assert (row.gaps, row.requested_gaps, row.naks) == (2, 1, 1)
    assert dict(row.cells())["NAKs"] == "1 for 1 of 2 gaps (1.0 each)"


@pytest.mark.parametrize(("second_nak_ms", "waited"), [(61, True), (21, False)])
def test_a_gap_that_is_requested_after_the_repair_of_an_earlier_one_waited(
    tmp_path, second_nak_ms, waited
):
    """Frames 3 and 6 are lost. Their gaps appear at 15 and 18 ms; frame 3 is repaired at 60 ms."""
    made = without_frames(tmp_path / "run", 1000)
    for frame in range(10):
        sent(made, 1 + frame, frame)
    for gap in (3, 6):
        made.packets["b"] = [
            each for each in made.packets["b"] if each.payload != made.frame_bytes(gap)
        ]
    requested(made, 16, 3, 1)
    sent(made, 50, 3)
    requested(made, second_nak_ms, 6, 1)
    sent(made, 80, 6)
    _, sentences = figures_of(made)
    text = (
        "one: 1 of 2 gaps waited 42 ms (median; at most 42 ms) until an earlier gap was repaired, "
        "before the first NAK for them: the receiver requested one gap at a time"
    )
    assert (text in sentences) == waited


LIMITS = "one: the receiver window limits goodput: 1,600 B in one round trip of 20 ms are at most"
DELAYS = (
    "one: messages waited for the receiver window of 1,600 B: this rate has 1,641 B in flight in "
)


@pytest.mark.parametrize(
    ("window_frames", "bytes_per_s", "beginning"),
    [
        (10, 10**9, f"{LIMITS} 80.00 kB/s, headers included"),
        (30, 10**9, None),
        # 200 messages of 100 B were delivered within 390 ms.
        (10, 50_000, f"{DELAYS}a round trip of 20 ms"),
        (30, 50_000, None),
    ],
)
def test_a_window_that_is_always_in_flight_is_named(
    tmp_path, window_frames, bytes_per_s, beginning
):
    """Ten frames leave in each round trip of 20 ms."""
    made = without_frames(tmp_path / "run", COUNT * 100)
    pace = made.traffic.pace.model_copy(update={"bytes_per_s": bytes_per_s})
    stream = made.traffic.model_copy(update={"pace": pace})
    made.case = made.case.model_copy(update={"traffic": (stream,)})
    for frame in range(200):
        sent(made, 1 + 20 * (frame // 10), frame)
    for turn in range(20):
        message = bytearray(status_message(turn * 10 * FRAME_BYTES))
        message[24:28] = (window_frames * FRAME_BYTES).to_bytes(4, "little")
        captured(made, "b", bytes(message), "SM", 11 + 20 * turn, 21 + 20 * turn)
    delivered_ms = [11 + 20 * (frame // 10) for frame in range(200)]
    made.messages = [((each + 1) * FRAME_BYTES, bytes(100)) for each in range(200)]
    folder = RunDir(made.write())
    document = folder.host("a").publisher(TRAFFIC).document
    write_document(document, read_document(document) | {"message_count": 200})
    write_times(made, at_ms([1] * 200), at_ms(delivered_ms))
    judge(folder.path)
    sentences = observations_of(read_verdict(folder.verdict)).all_sentences
    found = [each for each in sentences if "receiver window" in each]
    assert len(found) == (beginning is not None)
    assert all(each.startswith(beginning) for each in found)


@pytest.mark.parametrize("follower_ms", [None, 60])
def test_a_heartbeat_that_revealed_the_slowest_gap_is_named(tmp_path, follower_ms):
    """Frame 9 is lost. Either nothing follows it until a heartbeat arrives, or frame 10 does."""
    made = without_frames(tmp_path / "run", 1100)
    for frame in range(10):
        sent(made, 1 + frame, frame)
    made.packets["b"] = [each for each in made.packets["b"] if each.payload != made.frame_bytes(9)]
    if follower_ms:
        sent(made, follower_ms, 10)
    captured(made, "a", heartbeat((10 + bool(follower_ms)) * FRAME_BYTES), "HEARTBEAT", 110, 120)
    requested(made, 121, 9, 1)
    sent(made, 131, 9)
    if not follower_ms:
        sent(made, 200, 10)
    _, sentences = figures_of(made)
    expected = [] if follower_ms else [REVEALED]
    assert [each for each in sentences if "heartbeat" in each] == expected
