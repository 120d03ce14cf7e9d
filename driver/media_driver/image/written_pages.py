"""A map of the pages of an image's log that have been written since its file was created.

    pages    | 1 | 1 | 0 | 0 | 0 | 1 |      one byte per 4 KiB of the terms
    log      |###|#..|   |   |   | ##|      pages of a sparse file that were never written are holes

Reading a hole of a file in memory allocates its page, so forged frames could make the driver use
the memory of entire terms. Pages that were never written contain zeros and are not read. The
receiver sets a byte before it writes to the page. No byte is ever cleared. A map of length 0
means that every page may have been written.
"""

import numpy as np

from windtunnel.driver.base.atomics import get_i32_acquire, put_i64_release, zero
from windtunnel.driver.kernels.jit import kernel
from windtunnel.driver.logbuffer import cleaner, frame, gap_scanner, position

PAGE_BITS = 12
PAGE_LENGTH = 1 << PAGE_BITS
_FIRST_WORD = 8


def make_pages(term_length: int) -> np.ndarray:
    """Create a page map for an image to which nothing has been written."""
    return np.zeros(position.PARTITION_COUNT * term_length >> PAGE_BITS, dtype=np.uint8)


@kernel
def mark(pages, begin, length):
    """Record that `length` bytes (at least one) will be written at offset `begin` in the log."""
    if pages.size == 0:
        return
    for page in range(begin >> PAGE_BITS, ((begin + length - 1) >> PAGE_BITS) + 1):
        pages[page] = 1


@kernel
def next_written(pages, begin, end):
    """Return the first offset that is at least `begin` and in a written page, or `end` if it comes
    first.
    """
    at = begin
    while at < end and pages[at >> PAGE_BITS] == 0:
        at = ((at >> PAGE_BITS) + 1) << PAGE_BITS
    return min(at, end)


@kernel
def next_unwritten(pages, begin, end):
    """Return the first offset that is at least `begin` and in an unwritten page, or `end` if it
    comes first.
    """
    at = begin
    while at < end and pages[at >> PAGE_BITS] != 0:
        at = ((at >> PAGE_BITS) + 1) << PAGE_BITS
    return min(at, end)


@kernel
def scan(log, pages, base, offset, limit):
    """Find the first gap between two offsets of a term without reading pages that were never
    written.

    Returns: the same values as `gap_scanner.scan`
    """
    if pages.size == 0:
        return gap_scanner.scan(log, base, offset, limit)
    reached, end = offset, offset
    while reached < limit:
        end = next_unwritten(pages, base + reached, base + limit) - base
        if end == reached:
            break
        at, gap_length = gap_scanner.scan(log, base, reached, end)
        if gap_length == 0 and at == reached:
            return reached, 0
        reached = at
        if gap_length > 0:
            if at + gap_length < end:
                return at, gap_length
            break
    if reached >= limit:
        return reached, 0
    return reached, _end_of_gap(log, pages, base, max(reached, end), limit) - reached


@kernel
def _end_of_gap(log, pages, base, at, limit):
    """Find the end of a gap: return the offset of the first frame at or after `at` in a written
    page, or `limit` if no frame is found.
    """
    while at < limit:
        at = next_written(pages, base + at, base + limit) - base
        end = next_unwritten(pages, base + at, base + limit) - base
        while at < end:
            if get_i32_acquire(log, base + at) != 0:
                return at
            at += frame.FRAME_ALIGNMENT
    return limit


@kernel
def try_fill(log, pages, base, meta_at, term_id, offset, length):
    """Fill a gap of `length` bytes at `offset` with padding if the gap is still empty. Returns
    whether the gap was filled.

    Unlike `gap_filler.try_fill`, it only reads written pages.
    """
    if _end_of_gap(log, pages, base, offset, offset + length) < offset + length:
        return False
    mark(pages, base + offset, frame.HEADER_LENGTH)
    frame.overwrite_with_padding(log, base + offset, meta_at, length, term_id, offset)
    return True


@kernel
def clean(log, pages, begin, length):
    """Zero `length` bytes (at least 8) that begin at the start of a frame. Only bytes in written
    pages are zeroed.

    Memory:  the first eight bytes are released last, as in `cleaner.clean`
    """
    if pages.size == 0:
        cleaner.clean(log, begin, 0, length)
        return
    end = begin + length
    at = next_written(pages, begin + _FIRST_WORD, end)
    while at < end:
        run_end = next_unwritten(pages, at, end)
        zero(log, at, run_end - at)
        at = next_written(pages, run_end, end)
    if pages[begin >> PAGE_BITS] != 0:
        put_i64_release(log, begin, 0)
