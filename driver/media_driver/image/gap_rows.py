"""The rows of an image's open gaps, and the search for gaps in its log.

    begin           end
      | f |           |  f  |        a gap is between two positions of one term
      +---+-----------+-----+

Rows are in the order of their positions. `open_gaps` adds and removes them, `nak_schedule` decides
when NAKs are sent for them, and `gap_evidence` when they are filled with padding.
"""

import numpy as np

from windtunnel.driver.base.atomics import get_i32_acquire
from windtunnel.driver.kernels.jit import kernel
from windtunnel.driver.logbuffer import position
from windtunnel.driver.media_driver.image import written_pages

GAPS_MAX = 1_024
"""Maximum number of open gaps of one image."""

NOT_MEASURED = -1

GAP = np.dtype(
    (
        np.record,
        [
            ("begin", "i8"),
            ("end", "i8"),
            ("found_ns", "i8"),
            ("deadline_ns", "i8"),  # time of the next NAK, or at which the gap is filled
            ("nak_count", "i8"),  # NAKs, or attempts to fill the gap
            ("naks_in_row", "i8"),  # NAKs since the last silence of the stream
            ("first_nak_ns", "i8"),  # time of the first NAK, NOT_MEASURED after a repair
            ("filled_at", "i8"),  # number of datagrams of the image at which the gap is filled
        ],
    )
)
"""One gap of an image, between two positions of one term."""


def make_gaps(images: int) -> np.recarray:
    """Create the gap rows of all images: an array GAP[images, GAPS_MAX]. Unused rows occupy no
    memory.
    """
    return np.zeros((images, GAPS_MAX), dtype=GAP).view(np.recarray)


@kernel
def scan_term(image, log, pages, begin, end):
    """Find the first gap between two positions of one term. Returns (its position, its length)."""
    offset = position.term_offset(begin, image.term_length)
    base = position.index(begin, image.bits) * image.term_length
    reached, length = written_pages.scan(log, pages, base, offset, offset + end - begin)
    return begin - offset + reached, length


@kernel
def has_begun(image, log, pages, begin):
    """Return whether the first frame of a gap has arrived, without reading an unwritten page."""
    offset = position.term_offset(begin, image.term_length)
    at = position.index(begin, image.bits) * image.term_length + offset
    if pages.size > 0 and pages[at >> written_pages.PAGE_BITS] == 0:
        return False
    return get_i32_acquire(log, at) > 0


@kernel
def activate(image, gap, end):
    """Make the part of a gap before `end` the active gap of an image.

    The active gap is gap_term_id, gap_offset, gap_length and gap_naks of the record.
    """
    image.gap_term_id = position.term_id(gap.begin, image.bits, image.initial_term_id)
    image.gap_offset = position.term_offset(gap.begin, image.term_length)
    image.gap_length = end - gap.begin
    image.gap_naks = gap.nak_count


@kernel
def split(image, gaps, log, pages, row):
    """Divide a gap in which frames have arrived. The part after these frames becomes the next row.

    Without a free row, the parts remain one row.

    Returns: the end of the first part, or its begin if a frame has just arrived there
    """
    gap = gaps[row]
    begin, end = gap.begin, gap.end
    first, length = scan_term(image, log, pages, begin, end)
    if first > begin:
        return begin
    first_end = begin + length
    if first_end >= end:
        return end
    second, _ = scan_term(image, log, pages, first_end, end)
    if second < end:
        if image.gap_count == gaps.size:
            return first_end
        for other in range(image.gap_count, row, -1):
            gaps[other] = gaps[other - 1]
        gaps[row + 1].begin = second
        image.gap_count += 1
    gap.end = first_end
    return first_end
