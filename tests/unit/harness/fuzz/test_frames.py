"""Frames that attacks start from, and the batches of mutations made from them."""

import numpy as np

from tests.naive import wire
from windtunnel.harness.fuzz.frames import TERM_LENGTH, Forger, Target, frames_of

TARGET = Target("127.0.0.1", 20_000, 11, 22, 100)
POSITION = TERM_LENGTH + 4_096


def test_frames_have_the_fields_of_their_stream():
    frames = frames_of(TARGET, POSITION)
    assert [frame[6] for frame in frames] == [
        wire.DATA, wire.DATA, wire.PAD, wire.SETUP, wire.SM, wire.NAK, wire.RTTM, wire.ERR,
        wire.RSP_SETUP, wire.RES,
    ]  # fmt: skip
    assert frames[0][:32] == wire.pack("data", 128, 0, 0xC0, wire.DATA, 4_096, 11, 22, 101, 0)
    assert frames[3] == wire.pack(
        "setup", 40, 0, 0, wire.SETUP, 4_096, 11, 22, 100, 101, TERM_LENGTH, 1_408, 0
    )
    assert frames[4] == wire.pack(
        "status_message", 36, 0, 0x80, wire.SM, 11, 22, 101, 4_096, 32_768, 7
    )
    assert frames[5] == wire.pack("nak", 28, 0, 0, wire.NAK, 11, 22, 101, 0, 1_408)


def batches(guarded, fixed_length=0):
    forger = Forger(5, np.array(guarded, np.int64).reshape(-1, 2), 64)
    frames = frames_of(TARGET, POSITION)
    return [forger.batch(frames, fixed_length) for _ in range(20)]


def is_valid_for_stream(datagram):
    kinds = {wire.DATA: 12, wire.PAD: 12, wire.SETUP: 12, wire.SM: 8}
    if len(datagram) < 32 or datagram[4] or datagram[7] or datagram[6] not in kinds:
        return False
    at = kinds[datagram[6]]
    ids = np.frombuffer(datagram[at : at + 8], "<i4").tolist()
    return ids == [11, 22] and wire.is_acceptable(datagram)


def test_equal_seeds_make_equal_batches():
    assert batches([(1, 1)]) == batches([(1, 1)])
    assert len({datagram for batch in batches([(1, 1)]) for datagram in batch}) > 500


def test_no_frame_that_a_guarded_stream_accepts_is_sent():
    unguarded = [item for batch in batches([(1, 1)]) for item in batch]
    assert sum(is_valid_for_stream(item) for item in unguarded) > 50
    guarded = [item for batch in batches([(11, 22)]) for item in batch]
    assert not any(is_valid_for_stream(item) and item[6] == wire.SETUP for item in guarded)
    assert not any(is_valid_for_stream(item) and item[6] == wire.SM for item in guarded)


def test_a_train_has_datagrams_of_one_length():
    trains = batches([(11, 22)], 256)
    assert {len(item) for train in trains for item in train} == {256}
