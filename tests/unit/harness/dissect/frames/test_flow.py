"""Positions increase when the term id wraps, and flows have a session id and a stream id."""

import numpy as np
import pytest

from tests.golden.reader import load_array, seen_by
from windtunnel.harness.dissect.capture.pcap import read_capture_bytes
from windtunnel.harness.dissect.frames.flow import (
    aligned_lengths,
    learn_streams,
    of_stream,
    positional,
    positions,
)
from windtunnel.harness.dissect.frames.frames import FRAME


def rows(*values):
    frames = np.zeros(len(values), dtype=FRAME)
    for row, (term_id, term_offset) in zip(frames, values, strict=True):
        row["term_id"], row["term_offset"] = term_id, term_offset
    return frames


def test_a_position_counts_terms_from_the_initial_one():
    found = positions(rows((-3, 0), (-3, 64), (-2, 0), (1, 32)), -3, 65536)
    assert found.tolist() == [0, 64, 65536, 4 * 65536 + 32]


def test_term_ids_wrap_from_the_largest_to_the_smallest():
    found = positions(rows((2147483646, 0), (2147483647, 0), (-2147483648, 32)), 2147483646, 1024)
    assert found.tolist() == [0, 1024, 2080]


@pytest.mark.parametrize(("length", "span"), [(0, 0), (1, 32), (32, 32), (33, 64), (1408, 1408)])
def test_frames_occupy_whole_blocks(length, span):
    assert aligned_lengths(np.array([length])).tolist() == [span]


@pytest.mark.parametrize("golden", ["clean", "loss-reliable", "loss-concurrent-mtu8k"])
def test_the_positions_of_a_golden_stream_have_no_gap(golden):
    frames = read_capture_bytes(load_array(golden, "capture.pcap")).frames
    ((key, facts),) = learn_streams(frames).items()
    assert key == (seen_by(golden, "pub.txt")["session"], 1001)
    sent = positional(of_stream(frames, *key))
    starts = positions(sent, facts.initial_term_id, facts.term_length)
    starts, first = np.unique(starts, return_index=True)
    ends = starts + aligned_lengths(sent["frame_length"][first])
    assert starts[0] == 0
    assert np.array_equal(starts[1:], ends[:-1])
    assert ends[-1] == seen_by(golden, "pub.txt")["position"]
    assert len(of_stream(frames, key[0] + 1, 1001)) == 0
