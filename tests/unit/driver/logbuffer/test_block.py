"""Blocks of frames: what is accepted, and that nothing is readable before all of it is."""

import numpy as np
import pytest

from tests.unit.driver.logbuffer.test_appender import (
    EXCLUSIVE,
    META,
    SHARED,
    SOURCE,
    TERM_LENGTH,
    UNLIMITED,
    fill_to,
    offer,
    publication,
    raw_tail,
)
from windtunnel.driver.logbuffer import block, reader
from windtunnel.driver.logbuffer import publication_result as result
from windtunnel.driver.wire import data, header
from windtunnel.driver.wire import frame_type as types


def test_a_block_continues_the_stream() -> None:
    origin, frames = publication(EXCLUSIVE)
    offer(origin, frames, 3000)
    end = offer(origin, frames, 10)
    state, log = publication(EXCLUSIVE)
    first = 1408
    assert block.offer(state, log, UNLIMITED, frames, 0, first) == first
    assert block.offer(state, log, UNLIMITED, frames, 0, first) == result.ERROR
    assert block.offer(state, log, first, frames, first, end - first) < 0
    assert block.offer(state, log, UNLIMITED, frames, first, end - first) == end
    np.testing.assert_array_equal(log, frames)
    assert offer(state, log, 10) == end + 64


@pytest.mark.parametrize("field", [data.SESSION_ID, data.STREAM_ID, data.TERM_ID, data.TERM_OFFSET])
def test_a_block_that_belongs_elsewhere_is_refused(field: int) -> None:
    origin, frames = publication(EXCLUSIVE)
    end = offer(origin, frames, 10)
    frames[field] ^= 0x20
    state, log = publication(EXCLUSIVE)
    assert block.offer(state, log, UNLIMITED, frames, 0, end) == result.ERROR
    assert not log[:META].any()


def test_a_block_is_whole_frames_of_an_exclusive_publication() -> None:
    origin, frames = publication(EXCLUSIVE)
    end = offer(origin, frames, 40)
    state, log = publication(EXCLUSIVE)
    for length in (-1, 0, 31, end - 32, end + 32):
        assert block.offer(state, log, UNLIMITED, frames, 0, length) == result.ERROR
    assert block.offer(state, log, UNLIMITED, frames, frames.size - 32, 64) == result.ERROR
    shared, other = publication(SHARED)
    assert block.offer(shared, other, UNLIMITED, frames, 0, end) == result.ERROR
    header.write(frames, 0, 72, 0xC0, types.PAD)
    assert block.offer(state, log, UNLIMITED, frames, 0, end) == result.ERROR
    assert not log[:META].any()


def test_a_block_after_a_full_term_rotates_first() -> None:
    origin, frames = publication(EXCLUSIVE)
    fill_to(origin, frames, TERM_LENGTH)
    assert offer(origin, frames, 10) == result.ADMIN_ACTION
    offer(origin, frames, 10)
    state, log = publication(EXCLUSIVE)
    assert block.offer(state, log, UNLIMITED, frames, 0, TERM_LENGTH) == TERM_LENGTH
    got = block.offer(state, log, UNLIMITED, frames, TERM_LENGTH, 64)
    assert got == TERM_LENGTH + 64
    np.testing.assert_array_equal(log[: 2 * TERM_LENGTH], frames[: 2 * TERM_LENGTH])
    assert raw_tail(log, 1) == (8, 64)


def test_a_claim_changes_nothing_until_it_is_published() -> None:
    origin, frames = publication(EXCLUSIVE)
    end = offer(origin, frames, 3000)
    state, log = publication(EXCLUSIVE)
    untouched = log.copy()
    assert block.claim(state, log, UNLIMITED, 0) == (0, 0, TERM_LENGTH)
    np.testing.assert_array_equal(log, untouched)
    log[8:end] = frames[8:end]
    assert reader.block(log, 0, TERM_LENGTH, 0, TERM_LENGTH) == 0
    assert raw_tail(log, 0) == (7, 0)
    assert block.publish(state, log, 0, end, frames[:8]) == end
    assert reader.block(log, 0, TERM_LENGTH, 0, TERM_LENGTH) == end
    assert raw_tail(log, 0) == (7, end)
    np.testing.assert_array_equal(log, frames)
    assert block.claim(state, log, UNLIMITED, 0) == (end, end, TERM_LENGTH - end)


@pytest.mark.parametrize("length", [-32, 0, 40, 96])
def test_a_block_of_an_impossible_length_is_not_published(length: int) -> None:
    state, log = publication(EXCLUSIVE)
    fill_to(state, log, TERM_LENGTH - 64)
    before = log.copy()
    at = TERM_LENGTH - 64
    assert block.publish(state, log, at, length, SOURCE[:8]) == result.ERROR
    np.testing.assert_array_equal(log, before)


def test_a_claim_is_void_after_another_write() -> None:
    state, log = publication(EXCLUSIVE)
    assert block.is_current(state, 0)
    offer(state, log, 10)
    before = log.copy()
    assert not block.is_current(state, 0)
    assert block.publish(state, log, 0, 64, SOURCE[:8]) == result.ERROR
    np.testing.assert_array_equal(log, before)


def test_a_claim_after_a_full_term_is_in_the_next_one() -> None:
    state, log = publication(EXCLUSIVE)
    fill_to(state, log, TERM_LENGTH)
    assert block.claim(state, log, UNLIMITED, 0) == (TERM_LENGTH, TERM_LENGTH, TERM_LENGTH)


def test_a_claim_needs_an_exclusive_publication_and_room_below_the_limit() -> None:
    shared, log = publication(SHARED)
    assert block.claim(shared, log, UNLIMITED, 0)[0] == result.ERROR
    state, log = publication(EXCLUSIVE)
    assert block.claim(state, log, 0, 0)[0] == result.NOT_CONNECTED
    assert block.claim(state, log, 1, 0)[0] == 0
