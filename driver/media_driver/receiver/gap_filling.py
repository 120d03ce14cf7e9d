"""Fills gaps of unreliable streams with padding, and counts those that were filled too early.

    filled gaps    | [begin, end) | [begin, end) | ...  |     the last FILLED_MAX of an image
    datagram                ^ begins in a filled gap: it was late, not lost

Late datagrams are looked for only in images that wait for evidence before they fill a gap. Each
filled gap is counted once, however many datagrams of it arrive.
"""

import numpy as np

from windtunnel.driver.base.arith import wrap_i32
from windtunnel.driver.base.atomics import bytes_at
from windtunnel.driver.cnc import counters
from windtunnel.driver.kernels.jit import kernel
from windtunnel.driver.logbuffer import gap_filler, position
from windtunnel.driver.media_driver.agent import system_counters
from windtunnel.driver.media_driver.image import written_pages

SPARSE_GAP_LENGTH = 65_536
"""Length in bytes above which a gap is filled without reading pages of it that were never
written."""

FILLED_MAX = 64
"""Number of filled gaps of an image that are remembered."""

FILLED_GAP = np.dtype(
    (
        np.record,
        [
            ("begin", "i8"),
            ("end", "i8"),  # equal to `begin` after it was counted
        ],
    )
)


def make_filled_gaps(images: int) -> np.recarray:
    """Create the filled gaps of all images: an array FILLED_GAP[images, FILLED_MAX]."""
    return np.zeros((images, FILLED_MAX), dtype=FILLED_GAP).view(np.recarray)


@kernel
def fill(state, rec, term_id, offset, length):
    """Fill a gap of an image with padding if it is still empty. Returns whether it was filled."""
    log = bytes_at(rec.log_address, rec.log_length)
    pages = bytes_at(rec.pages_address, rec.pages_length)
    count = wrap_i32(term_id - rec.initial_term_id)
    base = position.index_of_count(count) * rec.term_length
    if length > SPARSE_GAP_LENGTH and pages.size > 0:
        is_filled = written_pages.try_fill(log, pages, base, rec.meta_at, term_id, offset, length)
        counters.add(state.counters, system_counters.LOSS_GAP_FILLS, int(is_filled))
        return is_filled
    written_pages.mark(pages, base + offset, length)
    if gap_filler.try_fill(log, base, rec.meta_at, term_id, offset, length):
        counters.increment(state.counters, system_counters.LOSS_GAP_FILLS)
        return True
    return False


@kernel
def remember(filled, count, begin, end):
    """Add a gap to the last filled ones, of which there were `count`. Returns their number."""
    row = filled[count % FILLED_MAX]
    row.begin = begin
    row.end = end
    return count + 1


@kernel
def take_early(filled, count, begin):
    """Return whether position `begin` is in one of the last filled gaps, which is then forgotten.

    `count` is the number of gaps that were ever filled.
    """
    for index in range(min(count, FILLED_MAX)):
        row = filled[index]
        if row.begin <= begin < row.end:
            row.end = row.begin
            return True
    return False


@kernel
def on_datagram(state, slot, begin, end):
    """Count a datagram as evidence for older gaps, or as one of a gap that was filled too early.

    Called before the datagram advances rcv-hwm.
    """
    rec = state.images[slot]
    if end > counters.get(state.counters, rec.hwm_id):
        rec.datagram_count += 1
    else:
        on_late_datagram(state, slot, begin)


@kernel
def on_late_datagram(state, slot, begin):
    """Count a filled gap in which a datagram that arrived after it begins."""
    rec = state.images[slot]
    if take_early(state.filled_gaps[slot], rec.fill_count, begin):
        counters.increment(state.counters, rec.filled_early_id)
