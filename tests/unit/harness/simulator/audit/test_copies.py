"""Frames in which two datagrams with the same start differ may be missing from the image."""

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
        ([(0, 3), (1, 3)], []),  # What follows a datagram's start is inserted, whatever was there.
        ([(0, 2), (0, 3), (0, 1)], [1, 2]),
        ([(4, 6), (4, 5), (0, 1)], [5]),
    ],
)
def test_frames_that_only_one_of_two_copies_has_are_marked(datagrams, frames):
    assert marked(stream(), *datagrams) == frames


def test_frames_that_the_reader_has_passed_are_not_compared():
    assert marked(stream(next_frame=2), (0, 3), (0, 4)) == []


@given(st.lists(st.tuples(st.integers(0, COUNT - 1), st.integers(1, COUNT)), max_size=12))
def test_the_kernel_marks_what_a_comparison_of_all_pairs_marks(datagrams):
    datagrams = [(first, min(first + length, COUNT)) for first, length in datagrams]
    pairs = [
        range(min(end, other), max(end, other))
        for first, end in datagrams
        for start, other in datagrams
        if first == start
    ]
    assert marked(stream(), *datagrams) == sorted({each for pair in pairs for each in pair})
