"""Unblocking a stream whose publisher died, at every step at which it can die."""

import struct

import numpy as np
import pytest

from windtunnel.driver.base.arith import I32_MIN
from windtunnel.driver.logbuffer import appender, descriptor, unblocker
from windtunnel.driver.logbuffer import publication_result as result
from windtunnel.driver.logbuffer.parameters import LogParameters, initialise

TERM_LENGTH = 65536
META = 3 * TERM_LENGTH
INITIAL_TERM_ID = 7
UNLIMITED = 1 << 62
SOURCE = np.ones(8192, dtype=np.uint8)


def shared(**changes: int) -> tuple:
    log = np.zeros(META + 4096, dtype=np.uint8)
    chosen = LogParameters(
        type=descriptor.CONCURRENT_PUBLICATION,
        correlation_id=1,
        session_id=2,
        stream_id=3,
        initial_term_id=INITIAL_TERM_ID,
        term_length=TERM_LENGTH,
        mtu_length=1408,
        **changes,
    )
    initialise(log, META, chosen)
    return appender.attach(log, META), log


def offer(state: np.ndarray, log: np.ndarray, length: int) -> int:
    return int(appender.offer(state, log, UNLIMITED, SOURCE, 0, length, 0))


def frame_at(log: np.ndarray, at: int) -> tuple[int, ...]:
    """(length, flags, type, term offset, session, stream, term id) of a frame."""
    length, _, *rest = struct.unpack_from("<iBBHiiii", log, at)
    return (length, *rest)


def move_tail(log: np.ndarray, index: int, length: int) -> None:
    """Claim like a publisher does before it writes a header."""
    (raw,) = struct.unpack_from("<q", log, META + 8 * index)
    struct.pack_into("<q", log, META + 8 * index, raw + length)


def unblock(log: np.ndarray, blocked_position: int) -> bool:
    """Unblock like the driver, with its own values of term length and initial term id."""
    return bool(unblocker.unblock(log, META, TERM_LENGTH, INITIAL_TERM_ID, blocked_position))


def test_a_claim_with_a_header_becomes_padding() -> None:
    state, log = shared()
    assert offer(state, log, 10) == 64
    assert appender.claim(state, log, UNLIMITED, 100) == 224
    assert offer(state, log, 10) == 288
    assert unblock(log, 64)
    assert frame_at(log, 64) == (132, 0xC0, 0, 64, 2, 3, 7)
    assert not unblock(log, 64)
    assert not appender.commit(log, int(state[0].claim_at))


def test_a_claim_without_a_header_is_padded_up_to_the_next_frame() -> None:
    state, log = shared()
    move_tail(log, 0, 160)
    assert offer(state, log, 10) == 224
    log[24:32] = 9
    assert unblock(log, 0)
    assert frame_at(log, 0) == (160, 0xC0, 0, 0, 2, 3, 7)
    assert not log[24:32].any()


def test_padding_ends_where_another_claim_begins() -> None:
    state, log = shared()
    move_tail(log, 0, 96)
    assert appender.claim(state, log, UNLIMITED, 0) == 128
    assert unblock(log, 0)
    assert frame_at(log, 0)[0] == 96
    assert unblock(log, 96)
    assert frame_at(log, 96)[:3] == (32, 0xC0, 0)


def test_a_claim_without_a_header_at_the_tail_may_still_be_written() -> None:
    _, log = shared()
    move_tail(log, 0, 160)
    assert not unblock(log, 0)
    assert not log[:META].any()


def test_an_unblocked_stream_is_not_changed() -> None:
    state, log = shared()
    end = offer(state, log, 10)
    before = log.copy()
    assert not unblock(log, end)
    assert not unblock(log, 0)
    np.testing.assert_array_equal(log, before)


@pytest.mark.parametrize("beyond", [0, 64])
def test_a_claim_up_to_the_end_is_padded_and_the_log_rotated(beyond: int) -> None:
    state, log = shared(start_term_offset=TERM_LENGTH - 320)
    move_tail(log, 0, 320 + beyond)
    assert unblock(log, TERM_LENGTH - 320)
    assert frame_at(log, TERM_LENGTH - 320) == (320, 0xC0, 0, TERM_LENGTH - 320, 2, 3, 7)
    assert descriptor.producer_position(log, META) == TERM_LENGTH
    assert offer(state, log, 10) == TERM_LENGTH + 64


def test_a_full_term_that_was_not_rotated_is_rotated() -> None:
    state, log = shared(start_term_offset=TERM_LENGTH - 64)
    assert offer(state, log, 32) == TERM_LENGTH
    move_tail(log, 0, 64)
    assert unblock(log, TERM_LENGTH)
    assert descriptor.active_term_count_acquire(log, META) == 1
    assert not unblock(log, TERM_LENGTH)
    assert offer(state, log, 10) == TERM_LENGTH + 64


@pytest.mark.parametrize("claimed", [-(TERM_LENGTH + 32), I32_MIN, -65536])
def test_a_claim_beyond_the_term_is_not_changed(claimed: int) -> None:
    _, log = shared()
    move_tail(log, 0, 160)
    struct.pack_into("<i", log, 32, claimed)
    before = log.copy()
    assert not unblock(log, 32)
    np.testing.assert_array_equal(log, before)


def test_unblocking_a_rotation_in_a_later_lap() -> None:
    state, log = shared(start_term_id=11, start_term_offset=TERM_LENGTH - 96)
    assert offer(state, log, 100) == result.ADMIN_ACTION
    assert appender.claim(state, log, UNLIMITED, 10) == 5 * TERM_LENGTH + 64
    assert unblock(log, 5 * TERM_LENGTH)
    assert frame_at(log, 2 * TERM_LENGTH)[-1] == 12


def test_trusts_neither_an_overwritten_log_nor_an_overwritten_position() -> None:
    state, log = shared()
    assert appender.claim(state, log, UNLIMITED, 100) > 0
    struct.pack_into("<i", log, META + descriptor.TERM_LENGTH, 1 << 30)
    struct.pack_into("<i", log, META + descriptor.INITIAL_TERM_ID, 1 << 30)
    # Each lies in the claimed term, and none where a frame can begin.
    for blocked_position in (-32, 1, 31, 33, TERM_LENGTH - 1, -1):
        before = log.copy()
        assert not unblock(log, blocked_position)
        np.testing.assert_array_equal(log, before)
    # By the length that the log claims, these would be far behind its end.
    for blocked_position in (1 << 29, (2 << 30) + 4096, (1 << 62) + 32):
        unblock(log, blocked_position)
    assert unblock(log, 0)
    assert frame_at(log, 0) == (132, 0xC0, 0, 0, 2, 3, 7)
