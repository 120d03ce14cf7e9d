"""The map of written pages: gaps as the plain scanner finds them, and holes that stay holes."""

import mmap
import os
import struct

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from windtunnel.driver.logbuffer import gap_filler, gap_scanner
from windtunnel.driver.media_driver.image import (
    gap_evidence,
    gap_rows,
    image_cleaning,
    loss_detector,
    nak_schedule,
    open_gaps,
    publication_image,
    written_pages,
)

TERM, PAGE = 65_536, written_pages.PAGE_LENGTH
BLOCK = 512


def put(log, pages, at, length, frame_length=None):
    written_pages.mark(pages, at, length)
    struct.pack_into("<iBBH", log, at, frame_length or length, 0, 0xC0, 1)


FRAMES = st.lists(st.tuples(st.integers(0, 2047), st.integers(1, 300), st.booleans()), max_size=12)


@given(FRAMES, st.integers(0, 2047), st.integers(0, 2048), st.integers(0, 2))
def test_a_gap_is_the_one_that_the_plain_scanner_finds(frames, first, last, term):
    log, pages = np.zeros(3 * TERM + 4096, np.uint8), written_pages.make_pages(TERM)
    base, end = term * TERM, 0
    for slot, slots, is_padding in sorted(frames):
        length = min(32 * slots, TERM - 32 * slot)
        if 32 * slot >= end:
            put(log, pages, base + 32 * slot, 32 if is_padding else length, length)
            end = 32 * slot + length
    offset, limit = 32 * first, 32 * last
    expected = gap_scanner.scan(log, base, offset, limit)
    assert written_pages.scan(log, pages, base, offset, limit) == expected
    reached, length = expected
    if length > 0:
        plain, sparse = log.copy(), log.copy()
        assert gap_filler.try_fill(plain, base, 3 * TERM, 5, reached, length)
        assert written_pages.try_fill(sparse, pages, base, 3 * TERM, 5, reached, length)
        assert np.array_equal(plain, sparse)
        assert pages[(base + reached) // PAGE] == 1


def test_a_slot_that_was_filled_since_prevents_padding():
    log, pages = np.zeros(3 * TERM + 4096, np.uint8), written_pages.make_pages(TERM)
    put(log, pages, 5 * PAGE + 64, 96)
    assert not written_pages.try_fill(log, pages, 0, 3 * TERM, 5, 0, 6 * PAGE)
    assert written_pages.try_fill(log, pages, 0, 3 * TERM, 5, 0, 5 * PAGE + 64)


class SparseImage:
    """An image whose log is a sparse file in memory of three terms of 16 MiB."""

    TERM = 1 << 24

    def __init__(self):
        self._fd = os.memfd_create("image")
        os.ftruncate(self._fd, 3 * self.TERM + 4096)
        self._map = mmap.mmap(self._fd, 0)
        self.log = np.frombuffer(self._map, np.uint8)
        self.pages = written_pages.make_pages(self.TERM)
        records, _ = publication_image.make_images(1)
        self.record = records[0]
        self.record.term_length, self.record.bits = self.TERM, 24
        self.record.log_address, self.record.log_length = self.log.ctypes.data, self.log.size
        self.record.pages_address = self.pages.ctypes.data
        self.record.pages_length = self.pages.size

    def used_bytes(self):
        return os.fstat(self._fd).st_blocks * BLOCK

    def close(self):
        del self.log
        self._map.close()
        os.close(self._fd)


@pytest.fixture
def image():
    image = SparseImage()
    yield image
    image.close()


def test_a_heartbeat_far_ahead_allocates_no_page(image):
    hwm = image.TERM // 2
    reached, is_new, _ = loss_detector.scan(image.record, image.log, 0, hwm, 0)
    assert (reached, bool(is_new), image.record.gap_length) == (0, True, hwm)
    assert image.used_bytes() == 0


def test_a_frame_far_ahead_allocates_its_own_page_only(image):
    at = image.TERM // 2
    put(image.log, image.pages, at, 64)
    loss_detector.scan(image.record, image.log, 0, at + 64, 0)
    assert image.record.gap_length == at
    assert image.used_bytes() == PAGE


def test_an_open_gap_and_its_naks_allocate_no_page(image):
    hwm, gaps = image.TERM // 2, gap_rows.make_gaps(1)[0]
    image.record.is_nak_all_gaps = 1
    for now in range(3):
        open_gaps.scan(image.record, gaps, image.log, 0, hwm, now)
        nak_schedule.take_due(image.record, gaps, image.log, 0, 1 << 40)
    assert (image.record.gap_count, image.record.gap_length) == (1, hwm)
    assert image.used_bytes() == 0


def test_a_gap_that_is_to_be_filled_allocates_no_page(image):
    hwm, gaps = image.TERM // 2, gap_rows.make_gaps(1)[0]
    image.record.is_fill_delayed = 1
    for now in range(3):
        open_gaps.scan(image.record, gaps, image.log, 0, hwm, now)
    assert gap_evidence.take_due(image.record, gaps, image.log, 0, 1 << 40) == 1
    assert image.record.gap_length == hwm
    assert image.used_bytes() == 0


def test_filling_and_cleaning_a_large_gap_allocates_no_page_but_that_of_the_padding(image):
    length = image.TERM // 2
    assert written_pages.try_fill(image.log, image.pages, 0, 3 * image.TERM, 0, 0, length)
    before = image.used_bytes()
    assert before <= 2 * PAGE
    image_cleaning.prepare(image.record, length, length)
    assert image.used_bytes() == before
    assert image.record.clean_position == length
    assert not image.log[:64].any()


def test_cleaning_reads_and_writes_written_pages_only(image):
    put(image.log, image.pages, PAGE + 64, 64)
    written_pages.clean(image.log, image.pages, 64, 8 * PAGE)
    assert image.used_bytes() == PAGE
    assert not image.log[PAGE : 2 * PAGE].any()


@given(st.lists(st.integers(0, 47), max_size=8), st.integers(0, 700), st.integers(0, 2048))
def test_cleaning_leaves_zeros_as_the_plain_cleaner_does(written, first, count):
    log, pages = np.zeros(3 * TERM + 4096, np.uint8), written_pages.make_pages(TERM)
    for page in written:
        written_pages.mark(pages, page * PAGE, PAGE)
        log[page * PAGE : (page + 1) * PAGE] = 7
    expected, begin, end = log.copy(), 32 * first, 32 * (first + count)
    end = min(end, TERM)
    expected[begin:end] = 0
    if end - begin >= 8:
        written_pages.clean(log, pages, begin, end - begin)
        assert np.array_equal(log, expected)
        written_pages.clean(log, pages[:0], begin, end - begin)
        assert not log[begin:end].any()
