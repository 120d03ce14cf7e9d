"""The computed log equals that of real Aeron, and that of the reference implementation."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.golden.reader import load_array, seen_by
from tests.naive.expected_log import write_log
from windtunnel.harness.artifact.middlebox.frame_class import NAMES
from windtunnel.harness.dissect.capture.pcap import read_capture_bytes
from windtunnel.harness.dissect.driver_files.expected_log import expected_log
from windtunnel.harness.dissect.frames.flow import learn_streams, of_stream, positional, positions

SETS = [
    ("clean", 400, 5000),
    ("loss-reliable", 600, 4000),
    ("loss-unreliable", 600, 1300),
    ("loss-concurrent-mtu8k", 600, 9000),
    ("one-message", 1, 992),
]


def lengths_of(count, most):
    """Return the message lengths of the golden sets."""
    return np.array([1 + index * 7919 % most for index in range(count)], dtype=np.int64)


@pytest.mark.parametrize(("golden", "count", "most"), SETS)
def test_real_aeron_wrote_the_expected_log(golden, count, most):
    frames = read_capture_bytes(load_array(golden, "capture.pcap")).frames
    (facts,) = learn_streams(frames).values()
    log = expected_log(lengths_of(count, most), facts.mtu, facts.term_length)
    sent = positional(of_stream(frames, facts.session_id, facts.stream_id))
    starts = positions(sent, facts.initial_term_id, facts.term_length)
    starts, first = np.unique(starts, return_index=True)
    for ours, theirs in (
        (log.frames["position"], starts),
        (log.frames["frame_length"], sent["frame_length"][first]),
        (log.frames["flags"], sent["flags"][first]),
        (log.frames["frame_type"], sent["frame_type"][first]),
    ):
        assert np.array_equal(ours, theirs)
    assert log.end_position == seen_by(golden, "pub.txt")["position"]
    assert log.message_ends[-1] == log.end_position


@given(
    st.lists(st.integers(0, 300), max_size=40),
    st.sampled_from([64, 96, 128, 1408]),
    st.integers(0, 40).map(lambda blocks: blocks * 32),
)
def test_the_log_is_that_of_the_reference(lengths, mtu, start):
    term_length = 1024
    log = expected_log(np.array(lengths, dtype=np.int64), mtu, term_length, start)
    frames, ends = write_log(lengths, mtu, term_length, start)
    ours = [
        (
            int(row["position"]),
            NAMES[int(row["frame_type"])],
            int(row["frame_length"]),
            int(row["flags"]),
            int(row["message"]),
            int(row["payload_start"]),
        )
        for row in log.frames
    ]
    assert ours == frames
    assert log.message_ends.tolist() == ends


def test_a_message_that_just_fits_leaves_no_pad_and_one_byte_more_does():
    exact = expected_log(np.array([1024 - 64 - 32, 1]), 2048, 1024, 64)
    assert [int(kind) for kind in exact.frames["frame_type"]] == [1, 1]
    over = expected_log(np.array([1024 - 64 - 31]), 2048, 1024, 64)
    assert [int(kind) for kind in over.frames["frame_type"]] == [0, 1]
    assert int(over.frames["frame_length"][0]) == 1024 - 64


@pytest.mark.parametrize(("mtu", "term_length"), [(32, 1024), (100, 1024), (1408, 1000)])
def test_invalid_arguments_are_refused(mtu, term_length):
    with pytest.raises(ValueError, match="expected an mtu above 32"):
        expected_log(np.array([1]), mtu, term_length)


def test_a_message_longer_than_a_term_is_refused():
    with pytest.raises(ValueError, match="does not fit"):
        expected_log(np.array([1024]), 128, 1024)
