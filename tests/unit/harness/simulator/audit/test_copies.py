"""Frames that only one of two overlapping datagrams has may be missing from the image."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from windtunnel.harness.simulator.audit.stream_audit import _compare_copies
from windtunnel.harness.simulator.audit.stream_record import make_audit

FRAME, COUNT = 64, 6


def stream(next_frame=0):
    audit = make_audit(1, 0, COUNT, np.zeros(0, dtype=np.uint8))
    audit.frames["position"] = np.arange(COUNT) * FRAME
    audit.streams["frame_end"], audit.streams["next_frame"] = COUNT, next_frame
    return audit


def marked(audit, *datagrams):
    for first, end in datagrams:
        _compare_copies(audit, 0, first * FRAME, end * FRAME)
    return [int(each) for each in np.flatnonzero(audit.disturbed)]


@pytest.mark.parametrize(
    ("datagrams", "frames"),
    [
        ([(0, 3)], []),
        ([(0, 3), (0, 3)], []),
        ([(0, 3), (0, 1)], [1, 2]),
        ([(0, 1), (0, 3)], [1, 2]),
        ([(0, 3), (1, 3)], []),  # The rest of a datagram is inserted, whatever was there.
        ([(0, 2), (0, 3), (0, 1)], [1, 2]),
        ([(4, 6), (4, 5), (0, 1)], [5]),
        ([(0, 3), (2, 5)], [3, 4]),
        ([(2, 5), (0, 3)], [3, 4]),
        ([(0, 2), (2, 4)], []),
    ],
)
def test_frames_that_only_one_of_two_copies_has_are_marked(datagrams, frames):
    assert marked(stream(), *datagrams) == frames


def test_frames_before_the_readers_position_are_not_compared():
    assert marked(stream(next_frame=3), (0, 3), (0, 2)) == []
    assert marked(stream(next_frame=2), (0, 3), (0, 4)) == [3]


@given(st.lists(st.tuples(st.integers(0, COUNT - 1), st.integers(1, COUNT)), max_size=12))
def test_the_kernel_marks_what_a_comparison_with_the_first_datagram_of_each_frame_marks(datagrams):
    datagrams = [(first, min(first + length, COUNT)) for first, length in datagrams]
    landed, expected = {}, set()
    for datagram in datagrams:
        for frame in range(*datagram):
            earlier, later = sorted([landed.setdefault(frame, datagram), datagram])
            only_later = set(range(*later)) - set(range(*earlier))
            expected |= only_later
    assert marked(stream(), *datagrams) == sorted(expected)
