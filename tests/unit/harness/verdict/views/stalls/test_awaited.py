"""For whom a sender waited, by frames and status messages made by hand.

ms      0      100         300       400
sent    f0     f1          f2        f3     each frame ends 100 bytes after the one before
"""

import numpy as np
import pytest

from windtunnel.harness.verdict.views.stalls.awaited import WAIT_NS_MIN, waits_ns

MS = 1_000_000
SENT_NS = np.array([0, 100, 300, 400]) * MS
NEEDED = np.array([100, 200, 300, 400])


def limits(*changes):
    """The times in ms and limits of status messages."""
    times_ms, found = zip(*changes, strict=True) if changes else ((), ())
    return np.array(times_ms, dtype=np.int64) * MS, np.array(found, dtype=np.int64)


@pytest.mark.parametrize(
    ("b", "c", "expected"),
    [
        # c leaves no room for f2 until 299 ms, and none for f3, which is sent nevertheless.
        ([(0, 1000)], [(0, 200), (299, 300)], {"c": 300}),
        # Both leave no room for f2. The limit of b is lower, and b is the last to make room.
        ([(0, 150), (299, 1000)], [(0, 200), (150, 1000)], {"b": 300}),
        ([(0, 1000)], [(0, 1000)], {}),
        # A receiver that has sent no status message is not awaited.
        ([(0, 1000)], [], {}),
    ],
)
def test_the_receiver_without_room_for_the_next_frame_is_awaited(b, c, expected):
    found = waits_ns(SENT_NS, NEEDED, {"b": limits(*b), "c": limits(*c)})
    assert {host: waited_ns // MS for host, waited_ns in found.items()} == expected


@pytest.mark.parametrize(("pause_ns", "expected"), [(WAIT_NS_MIN, 1), (WAIT_NS_MIN - 1, 0)])
def test_short_pauses_are_no_waits(pause_ns, expected):
    times_ns = np.array([0, pause_ns])
    assert len(waits_ns(times_ns, np.array([100, 200]), {"b": limits((0, 100))})) == expected
