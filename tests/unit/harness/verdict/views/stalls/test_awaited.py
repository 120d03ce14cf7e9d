"""The receivers that a sender waited for, from frames and status messages made by hand.

ms      0      100         300       400
sent    f0     f1          f2        f3     each frame ends 100 bytes after the one before
"""

import numpy as np
import pytest

from tests.unit.harness.verdict.synthetic_reading import (
    FRAME_BYTES,
    LOST,
    at_ms,
    captured,
    without_frames,
)
from tests.unit.harness.verdict.synthetic_run import TRAFFIC, status_message
from tests.unit.harness.verdict.synthetic_times import write_times
from windtunnel.harness.artifact.documents import read_document, write_document
from windtunnel.harness.artifact.run.verdict import observations_of, read_verdict
from windtunnel.harness.artifact.run_dir import RunDir
from windtunnel.harness.verdict.judge import judge
from windtunnel.harness.verdict.views.stalls.awaited import WAIT_NS_MIN, waits_ns

MS = 1_000_000
SENT_NS = np.array([0, 100, 300, 400]) * MS
NEEDED = np.array([100, 200, 300, 400])


def limits(*changes):
    """Return the times in ms and limits of status messages."""
    times_ms, found = zip(*changes, strict=True) if changes else ((), ())
    return np.array(times_ms, dtype=np.int64) * MS, np.array(found, dtype=np.int64)


@pytest.mark.parametrize(
    ("b", "c", "expected"),
    [
        # c has no space for f2 until 299 ms, and none for f3, which is sent nevertheless.
        ([(0, 1000)], [(0, 200), (299, 300)], {"c": 300}),
        # Neither has space for f2. The limit of b is lower, and b is the last to have space.
        ([(0, 150), (299, 1000)], [(0, 200), (150, 1000)], {"b": 300}),
        ([(0, 1000)], [(0, 1000)], {}),
        # A receiver that has sent no status message is not awaited.
        ([(0, 1000)], [], {}),
    ],
)
def test_the_receiver_without_space_for_the_next_frame_is_awaited(b, c, expected):
    found = waits_ns(SENT_NS, NEEDED, {"b": limits(*b), "c": limits(*c)})
    assert {host: waited_ns // MS for host, waited_ns in found.items()} == expected


@pytest.mark.parametrize(("pause_ns", "expected"), [(WAIT_NS_MIN, 1), (WAIT_NS_MIN - 1, 0)])
def test_short_pauses_are_not_waits(pause_ns, expected):
    times_ns = np.array([0, pause_ns])
    assert len(waits_ns(times_ns, np.array([100, 200]), {"b": limits((0, 100))})) == expected


@pytest.mark.parametrize(("arrived_ms", "waited"), [(LOST, True), (21, False), (220, False)])
def test_a_lost_status_message_prolongs_the_wait_for_its_window(tmp_path, arrived_ms, waited):
    """Ten frames use up the window at 1 ms. The status message that was sent at 11 ms would have
    made room at 21 ms; the next one does at 221 ms. If the former only comes late, it is not lost.
    """
    made = without_frames(tmp_path / "run", 2000)
    turns_ms = (1, 21 if arrived_ms == 21 else 221)
    for turn, sent_ms in enumerate(turns_ms):
        for frame in range(10 * turn, 10 * turn + 10):
            captured(made, "a", made.frame_bytes(frame), "DATA", sent_ms, sent_ms + 10)
    for consumed, sent_ms, came_ms in ((0, 0, 1), (10, 11, arrived_ms), (10, 211, 221)):
        message = bytearray(status_message(consumed * FRAME_BYTES))
        message[24:28] = (10 * FRAME_BYTES).to_bytes(4, "little")
        captured(made, "b", bytes(message), "SM", sent_ms, came_ms)
    made.messages = [((each + 1) * FRAME_BYTES, bytes(100)) for each in range(20)]
    folder = RunDir(made.write())
    document = folder.host("a").publisher(TRAFFIC).document
    write_document(document, read_document(document) | {"message_count": 20})
    delivered_ms = [each + 10 for each in turns_ms for _ in range(10)]
    write_times(made, at_ms([1] * 20), at_ms(delivered_ms))
    judge(folder.path)
    sentences = observations_of(read_verdict(folder.verdict)).all_sentences
    # The first status message, before the stream, took 1 ms.
    text = (
        "one: the sender waited 209 ms longer for the receiver window, because status messages "
        "were lost that would have made room"
    )
    assert [each for each in sentences if "longer for the receiver" in each] == [text] * waited
