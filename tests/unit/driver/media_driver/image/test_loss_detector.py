"""The first gap, its NAK delay and its retries, compared with a naive implementation."""

import itertools
import struct

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.naive import term as naive_term
from tests.naive.flow import Gaps
from windtunnel.driver.media_driver.image import loss_detector, publication_image

TERM, BITS, INITIAL = 65_536, 16, -2
DELAY, RETRY = 3, 10


def make_image(initial_term_id=INITIAL):
    records, _ = publication_image.make_images(1)
    rec = records[0]
    rec.term_length, rec.bits, rec.initial_term_id = TERM, BITS, initial_term_id
    rec.nak_delay_ns, rec.nak_retry_ns = DELAY, RETRY
    rec.counted_loss_end = -1
    return rec


def put(log, at, length):
    struct.pack_into("<iBBH", log, at % (3 * TERM), length, 0, 0xC0, 1)


def test_a_nak_is_due_after_the_delay_and_after_each_retry_delay():
    image, log = make_image(), np.zeros(3 * TERM + 4096, np.uint8)
    put(log, 128, 64)
    seen = [loss_detector.scan(image, log, 0, 192, now)[1:] for now in (0, 2, 3, 4, 12, 13, 23)]
    assert [bool(new) for new, _ in seen] == [True] + 6 * [False]
    assert [bool(due) for _, due in seen] == [False, False, True, False, False, True, True]
    assert (image.gap_term_id, image.gap_offset, image.gap_length) == (INITIAL, 0, 128)


def test_retries_for_a_remaining_gap_become_rare():
    image, log = make_image(), np.zeros(3 * TERM + 4096, np.uint8)
    nak_times = [now for now in range(10_000) if loss_detector.scan(image, log, 0, 192, now)[2]]
    between = [after - before for before, after in itertools.pairwise(nak_times)]
    assert between[:15] == 15 * [RETRY]
    assert between[15:31] == 16 * [2 * RETRY]
    assert between[31:47] == 16 * [4 * RETRY]
    assert set(between[63:]) == {16 * RETRY}
    assert len(nak_times) < 120


def test_a_gap_whose_end_moves_keeps_its_backoff_and_another_gap_restarts_it():
    image, log = make_image(), np.zeros(3 * TERM + 4096, np.uint8)
    nak_times = [now for now in range(2_000) if loss_detector.scan(image, log, 0, 192, now)[2]]
    for hwm in (224, 256):
        loss_detector.scan(image, log, 0, hwm, 2_000)
        assert image.gap_naks == len(nak_times)
    put(log, 0, 32)
    loss_detector.scan(image, log, 0, 256, 2_001)
    assert image.gap_naks == 0


def test_a_gap_that_grew_or_shrank_is_another_gap():
    image, log = make_image(), np.zeros(3 * TERM + 4096, np.uint8)
    assert loss_detector.scan(image, log, 0, 64, 0)[1:] == (True, False)
    assert loss_detector.scan(image, log, 0, 128, 2)[1:] == (True, False)
    assert loss_detector.scan(image, log, 0, 128, 4)[1:] == (False, False)
    put(log, 0, 32)
    assert loss_detector.scan(image, log, 0, 128, 5) == (32, True, False)


@pytest.mark.parametrize("term_count", [0, 1, 2, 3])
def test_a_scan_ends_at_the_end_of_its_term(term_count):
    image, log = make_image(), np.zeros(3 * TERM + 4096, np.uint8)
    begin = term_count * TERM
    put(log, begin, TERM - 64)
    put(log, begin + TERM - 64, 64)
    put(log, begin + TERM, 32)
    assert loss_detector.scan(image, log, begin, begin + TERM + 64, 0) == (TERM, False, False)
    assert loss_detector.scan(image, log, begin + TERM, begin + TERM + 64, 0)[:2] == (32, True)
    assert image.gap_term_id == INITIAL + term_count + 1


def test_the_last_term_id_is_followed_by_the_first():
    image, log = make_image(2**31 - 1), np.zeros(3 * TERM + 4096, np.uint8)
    loss_detector.scan(image, log, TERM, TERM + 32, 0)
    assert image.gap_term_id == -(2**31)


@given(st.lists(st.tuples(st.integers(0, 63), st.integers(1, 4), st.integers(0, 6)), max_size=40))
def test_agrees_with_its_naive_twin(steps):
    image, log = make_image(), np.zeros(3 * TERM + 4096, np.uint8)
    twin, term = Gaps(DELAY, RETRY), bytearray(TERM)
    now, hwm, rebuild = 0, 0, 0
    for slot, slots, pause in steps:
        now += pause
        end = 32 * (slot + slots)
        if all(naive_term.slot(term, at) == 0 for at in range(32 * slot, end, 32)):
            struct.pack_into("<iBBH", term, 32 * slot, 32 * slots, 0, 0xC0, 1)
            # Bytes inside a frame are payload, and never read as a length.
            for at in range(32 * slot + 32, end, 32):
                struct.pack_into("<i", term, at, 32)
            hwm = max(hwm, end)
        log[:TERM] = np.frombuffer(term, np.uint8)
        reached, length = naive_term.gap(term, rebuild, hwm)
        gap = (INITIAL, reached, length) if length else None
        expected = (reached, *twin.scan(gap, now)) if rebuild < hwm else (rebuild, False, False)
        assert tuple(loss_detector.scan(image, log, rebuild, hwm, now)) == expected
        rebuild = max(rebuild, reached)


def test_each_lost_byte_is_counted_once():
    image = make_image()
    counted = []
    for gap in ((7, 0, 128), (7, 0, 128), (7, 64, 128), (7, 0, 64), (8, 0, 32), (8, 64, 32)):
        image.gap_term_id, image.gap_offset, image.gap_length = gap
        counted.append(int(loss_detector.count_new_loss(image)))
    assert counted == [128, 0, 64, 0, 32, 32]
