"""The first gap over time, and gaps of which it is unknown when they became the first one."""

from types import SimpleNamespace

import numpy as np

from windtunnel.harness.dissect.frames.frames import FRAME
from windtunnel.harness.verdict.views.first_gaps import first_gaps

END_NS = 100


def gaps_of(*datagrams):
    """Return (start, end, since, until) for datagrams (time, positions of frames of 32 bytes)."""
    rows = [
        (time_ns, number, position)
        for number, (time_ns, *positions) in enumerate(datagrams)
        for position in positions
    ]
    frames = np.zeros(len(rows), FRAME)
    frames["time_ns"], frames["datagram"], starts = np.array(rows).T
    wire = SimpleNamespace(
        facts=SimpleNamespace(initial_term_id=0, term_length=65536),
        arrived=SimpleNamespace(frames=frames, starts=starts, ends=starts + 32),
        heartbeat_times_ns=np.zeros(0, np.int64),
        heartbeat_positions=np.zeros(0, np.int64),
        feedback_sent=np.zeros(0, FRAME),
    )
    found = first_gaps(wire, 0, END_NS)
    columns = (found.starts, found.ends, found.since_ns, found.until_ns)
    return list(zip(*(each.tolist() for each in columns), strict=True))


def test_the_first_gap_changes_when_it_is_filled():
    found = gaps_of((10, 0), (10, 64), (10, 128), (20, 32), (30, 96))
    assert found == [(32, 64, 10, 20), (96, 128, 20, 30)]


def test_a_frame_behind_one_that_had_arrived_may_have_been_ignored():
    """The frame at 32 arrives twice behind the first one, so the receiver may have neither copy."""
    found = gaps_of((10, 0), (10, 64), (10, 128), (20, 0, 32), (30, 0, 32), (40, 96))
    assert found == []


def test_a_gap_that_is_the_first_one_by_such_a_frame_is_left_out():
    """The gap at 160 does not touch it."""
    at_once = [(10, 0), (10, 64), (10, 96), (10, 128), (10, 192)]
    assert gaps_of(*at_once, (20, 32), (40, 160)) == [(32, 64, 10, 20), (160, 192, 20, 40)]
    assert gaps_of(*at_once, (20, 0, 32), (30, 0, 32), (40, 160)) == []
