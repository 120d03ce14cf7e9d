"""The known protocol stall is recognised by all of its conditions; near misses are violations."""

import struct

import numpy as np
import pytest

from windtunnel.harness.artifact.middlebox.frame_class import PAD
from windtunnel.harness.dissect.driver_files.expected_log import expected_log
from windtunnel.harness.dissect.frames import layout
from windtunnel.harness.scenario.resolved.case import TrafficCase
from windtunnel.harness.simulator.audit.stream_audit import on_sent
from windtunnel.harness.simulator.audit.stream_record import make_audit
from windtunnel.harness.simulator.swarm.trial_end import describe_stuck, is_known_stall

TERM, MTU, LENGTH = 1 << 16, 1_408, 1_376
FRAMES_OF_TERM = TERM // MTU
PAD_AT = FRAMES_OF_TERM * MTU


def stalled(lag=0):
    """Return a stream of a little more than one term, stuck half a term before a PAD that ends the
    term. The receiver has sent no SM for the last `lag` frames that arrived.
    """
    log = expected_log(np.full(60, LENGTH), MTU, TERM, 0)
    assert log.frames[FRAMES_OF_TERM]["frame_type"] == PAD
    audit = make_audit(1, 60, len(log.frames), np.zeros(0, dtype=np.uint8))
    stream = audit.streams[0]
    stream["term_length"], stream["frame_end"] = TERM, len(log.frames)
    first = FRAMES_OF_TERM - 23 + lag
    stream["next_frame"] = first
    for name in ("position", "rcv_pos", "hwm"):
        stream[name] = first * MTU
    stream["status_top"] = (first - lag) * MTU
    stream["window_end"] = stream["status_top"] + TERM // 2
    stream["snd_pos"], stream["end_position"] = TERM, log.end_position
    audit.disturbed[first:FRAMES_OF_TERM] = 1
    assert PAD_AT + 32 <= stream["window_end"] < TERM
    return audit, log


def test_a_pad_beyond_the_window_is_the_known_stall():
    assert is_known_stall(*((each := stalled())[0], 0, each[1]))


@pytest.mark.parametrize(("lag", "is_known"), [(1, True), (5, True), (6, False)])
def test_a_receiver_need_not_acknowledge_less_than_a_quarter_of_its_window(lag, is_known):
    audit, log = stalled(lag)
    assert is_known_stall(audit, 0, log) == is_known


@pytest.mark.parametrize(
    ("name", "change"),
    [
        ("hwm", MTU),  # the receiver has detected a gap, and must send a NAK
        ("rcv_pos", -MTU),  # arrived frames were not inserted
        ("status_top", MTU),  # the acknowledged position is beyond the stream
        ("status_top", -6 * MTU),  # the receiver should have acknowledged more
        ("snd_pos", -(TERM - PAD_AT)),  # heartbeats at the start of the PAD are no over-run
        ("window_end", -MTU),  # the window never permitted the PAD
        ("window_end", MTU),  # the receiver permitted more than it accepts
        ("position", MTU),  # the reader is elsewhere
    ],
)
def test_a_similar_state_is_not_excused(name, change):
    audit, log = stalled()
    audit.streams[0][name] += change
    assert not is_known_stall(audit, 0, log)


def test_a_stall_without_a_lost_frame_is_not_excused():
    audit, log = stalled()
    audit.disturbed[FRAMES_OF_TERM - 1] = 0
    assert not is_known_stall(audit, 0, log)


def test_a_stall_without_a_pad_is_not_excused():
    audit, log = stalled()
    log.frames[FRAMES_OF_TERM]["frame_type"] = 1
    assert not is_known_stall(audit, 0, log)


def test_the_text_of_a_stall_has_the_positions_of_the_stream():
    audit, _ = stalled()
    traffic = TrafficCase.model_construct(id="s0")
    assert f"s0 is stuck at position {(FRAMES_OF_TERM - 23) * MTU} of" in describe_stuck(
        audit.streams[0], traffic
    )
    audit.streams[0]["position"] = audit.streams[0]["end_position"]
    assert describe_stuck(audit.streams[0], traffic) == ""


def test_a_stream_that_needed_another_image_is_a_violation_even_at_its_end():
    audit, _ = stalled()
    stream = audit.streams[0]
    stream["position"] = stream["end_position"]
    stream["is_succeeded"] = 1
    assert "s0's image died" in describe_stuck(stream, TrafficCase.model_construct(id="s0"))


@pytest.mark.parametrize(("beyond", "is_kept"), [(0, False), (32, True)])
def test_a_status_message_beyond_the_read_position_belongs_to_another_image(beyond, is_kept):
    audit, _ = stalled()
    stream = audit.streams[0]
    stream["is_open"] = stream["is_flowing"] = 1
    before = int(stream["status_top"])
    place = int(stream["position"]) + beyond
    message = bytearray(36)
    header = (36, 0, 0, layout.SM.type_code, 0, 0, place // TERM, place % TERM, TERM // 2, 0)
    struct.pack_into("<iBBHiiiiiq", message, 0, *header)
    on_sent(audit, 1, np.frombuffer(message, dtype=np.uint8), 0, len(message))
    assert bool(stream["is_succeeded"]) == is_kept
    assert bool(stream["is_flowing"]) == (not is_kept)
    assert stream["status_top"] == (before if is_kept else place)
