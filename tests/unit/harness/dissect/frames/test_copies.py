"""Copies for a receiver that was restarted, and is counted as two destinations."""

import numpy as np
import pytest

from windtunnel.harness.artifact.middlebox.frame_class import DATA, HEARTBEAT, NAK, SM
from windtunnel.harness.dissect.frames.copies import (
    COPIED_WITHIN_NS,
    has_returned,
    of_other_port,
    without_copies,
)
from windtunnel.harness.dissect.frames.frames import FRAME


def frames_of(*rows, **common):
    frames = np.zeros(len(rows), FRAME)
    for frame, row in zip(frames, rows, strict=True):
        for name, value in {**common, **row}.items():
            frame[name] = value
    return frames


def sent(*rows):
    """Return DATA frames, given as (time in ns, term offset, changed fields)."""
    return frames_of(
        *({"time_ns": at_ns, "term_offset": offset, **more} for at_ns, offset, more in rows),
        frame_type=DATA,
        frame_length=64,
        datagram_length=64,
    )


@pytest.mark.parametrize("apart_ns", [0, COPIED_WITHIN_NS])
def test_a_frame_that_was_just_sent_is_a_copy(apart_ns):
    frames = sent((5, 0, {}), (5, 64, {}), (5 + apart_ns, 0, {}), (5 + apart_ns, 64, {}))
    assert without_copies(frames).tolist() == frames[:2].tolist()


def test_more_than_two_destinations_have_one_address():
    frames = sent(*((5, offset, {}) for offset in (0, 64, 0, 64, 0, 64)))
    assert without_copies(frames).tolist() == frames[:2].tolist()


def test_a_frame_that_is_sent_later_is_a_retransmit():
    frames = sent((5, 0, {}), (6 + COPIED_WITHIN_NS, 0, {}))
    assert len(without_copies(frames)) == 2


@pytest.mark.parametrize(
    "more",
    [
        {"destination_port": 9},
        {"destination_low": 9},
        {"session_id": 9},
        {"stream_id": 9},
        {"flags": 9},
        {"term_id": 9},
        {"term_offset": 64},
        {"frame_length": 96},
        {"datagram_length": 96},
        {"frame_type": HEARTBEAT},
    ],
)
def test_another_frame_is_no_copy(more):
    assert len(without_copies(sent((5, 0, {}), (5, 0, more)))) == 2


def test_of_no_frames_none_are_copies():
    assert len(without_copies(sent())) == 0


@pytest.mark.parametrize(
    ("rows", "expected"),
    [
        ([], False),
        ([{"receiver_id": 7}, {"receiver_id": 7}], False),
        ([{"receiver_id": 7}, {"receiver_id": 9}], True),
        ([{"receiver_id": 7}, {"receiver_id": 9, "source_port": 1}], False),
        ([{"receiver_id": 7}, {"receiver_id": 9, "source_low": 1}], False),
        ([{"receiver_id": 7}, {"receiver_id": 9, "frame_type": NAK}], False),
        ([{"receiver_id": 7}, {"receiver_id": 7, "source_port": 1}, {"receiver_id": 9}], True),
    ],
)
def test_a_receiver_returns_with_another_id(rows, expected):
    messages = frames_of(*({"frame_type": SM, **row} for row in rows))
    assert has_returned(messages) is expected


def test_what_was_just_sent_to_another_port_is_a_copy():
    late_ns = 5 + 2 * COPIED_WITHIN_NS
    one, other = {"destination_port": 1}, {"destination_port": 2}
    frames = sent(
        *((5, 0, one), (5, 0, other), (5, 64, other), (6, 64, one)),
        *((late_ns, 0, one), (late_ns + 1, 0, other), (late_ns, 128, other)),
        *((late_ns, 64, one), (late_ns + 1, 64, one), (late_ns + 2, 64, other)),
    )
    copied = [False, True, False, True, False, True, False, False, False, True]
    assert of_other_port(frames).tolist() == copied
    assert not of_other_port(frames[frames["destination_port"] == 1]).any()


def test_frames_of_another_address_are_no_copies():
    one = {"destination_port": 1, "destination_low": 1}
    assert not of_other_port(sent((5, 0, one), (5, 0, {"destination_port": 2}))).any()
