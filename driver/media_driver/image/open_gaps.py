"""Detects all gaps in an image and schedules NAKs for each of them.

    rcv-pos                        scanned position      rcv-hwm
      | gap 0 | f | f | gap 1 | f |  new frames, new gaps  |
      +-------+---+---+-------+---+------------------------+   one row for each gap, oldest first

A turn reads the first frame of each gap, and the new part of the window. If all rows are in use,
the scan continues after a gap is filled. The delay until a retry is the measured time from a NAK to
its repair, smoothed, plus four times its deviation (RFC 6298); it doubles after each NAK for the
same gap, and the configured retry delay is its minimum. Aeron has only `loss_detector`.
These functions change only the image's record and its rows. The time is an argument. See
docs/loss-recovery.md.
"""

import numpy as np

from windtunnel.driver.base.atomics import bytes_at, get_i32_acquire
from windtunnel.driver.kernels.jit import kernel
from windtunnel.driver.logbuffer import position
from windtunnel.driver.media_driver.image import nak_delay, written_pages

GAPS_MAX = 1_024
"""Maximum number of gaps of one image for which NAKs are scheduled."""

INITIAL_REPAIR_NS = 333_000_000
"""Repair time assumed until one is measured: the initial round-trip time of QUIC (RFC 9002)."""

DEVIATION_NS_MIN = 1_000_000
"""Minimum of the deviations added to the smoothed repair time: the granularity of RFC 6298."""

BACKOFFS_MAX = 6
"""Maximum number of doublings of the retry delay."""

_NOT_MEASURED = -1

GAP = np.dtype(
    [
        ("begin", "i8"),
        ("end", "i8"),
        ("deadline_ns", "i8"),  # time of the next NAK
        ("nak_count", "i8"),
        ("first_nak_ns", "i8"),  # time of the first NAK, _NOT_MEASURED after a repair
    ]
)
"""One gap of an image, between two positions of one term."""


def make_gaps(images: int) -> np.recarray:
    """Create the gap records of all images, an array GAP[images, GAPS_MAX]. Unused records occupy
    no memory.
    """
    return np.zeros((images, GAPS_MAX), dtype=GAP).view(np.recarray)


@kernel
def scan(image, gaps, log, rebuild_position, hwm_position, now_ns):
    """Remove an image's filled gaps, and add its new ones.

    Shapes:  image is a PUBLICATION_IMAGE record, gaps its rows of GAP, log the whole log
    Returns: (offset reached from the start of the term of `rebuild_position`, whether a gap is new)
    """
    pages = bytes_at(image.pages_address, image.pages_length)
    _remove_filled(image, gaps, log, pages, rebuild_position, now_ns)
    is_new = _find_new(image, gaps, log, pages, rebuild_position, hwm_position, now_ns)
    reached = gaps[0].begin if image.gap_count > 0 else image.scanned_position
    term_begin = rebuild_position - position.term_offset(rebuild_position, image.term_length)
    return reached - term_begin, is_new


@kernel
def take_due(image, gaps, log, first_row, now_ns):
    """Make the oldest gap whose NAK is due the active gap, and schedule its next NAK.

    Rows before `first_row` are ignored. The active gap is gap_term_id, gap_offset, gap_length and
    gap_naks of the record; it has no frame in it.

    Returns: the row after that of the gap, or 0 if no NAK is due
    """
    for row in range(first_row, image.gap_count):
        gap = gaps[row]
        if now_ns - gap.deadline_ns < 0:
            continue
        pages = bytes_at(image.pages_address, image.pages_length)
        end = _split(image, gaps, log, pages, row)
        if end == gap.begin:
            continue
        gap.nak_count += 1
        if gap.nak_count == 1:
            gap.first_nak_ns = now_ns
        gap.deadline_ns = now_ns + _retry_delay_ns(image, gap.nak_count)
        image.gap_term_id = position.term_id(gap.begin, image.bits, image.initial_term_id)
        image.gap_offset = position.term_offset(gap.begin, image.term_length)
        image.gap_length = end - gap.begin
        image.gap_naks = gap.nak_count
        return row + 1
    return 0


@kernel
def _scan_term(image, log, pages, begin, end):
    """Find the first gap between two positions of one term. Returns (its position, its length)."""
    offset = position.term_offset(begin, image.term_length)
    base = position.index(begin, image.bits) * image.term_length
    reached, length = written_pages.scan(log, pages, base, offset, offset + end - begin)
    return begin - offset + reached, length


@kernel
def _has_begun(image, log, pages, begin):
    """Return whether the first frame of a gap has arrived. Does not read a page that was never
    written.
    """
    offset = position.term_offset(begin, image.term_length)
    at = position.index(begin, image.bits) * image.term_length + offset
    if pages.size > 0 and pages[at >> written_pages.PAGE_BITS] == 0:
        return False
    return get_i32_acquire(log, at) > 0


@kernel
def _remove_filled(image, gaps, log, pages, rebuild_position, now_ns):
    """Move the start of each gap to its first missing byte, and remove the gaps that are filled."""
    kept = 0
    for row in range(image.gap_count):
        gap = gaps[row]
        begin, end = gap.begin, gap.end
        at = max(begin, rebuild_position)
        if at < end and _has_begun(image, log, pages, at):
            at, _ = _scan_term(image, log, pages, at, end)
        if at > begin:
            gap.begin = at
            _on_progress(image, gap, now_ns)
        if at < end:
            if kept < row:
                gaps[kept] = gaps[row]
            kept += 1
    image.gap_count = kept


@kernel
def _on_progress(image, gap, now_ns):
    """Measure the time to the first repair of a gap, and restart its retry delay."""
    if gap.nak_count == 0:
        return
    # A repair of a gap with several NAKs may answer any of them, so it is not measured; but the
    # first measurement may be too long, because it replaces an assumption.
    if gap.first_nak_ns != _NOT_MEASURED and (gap.nak_count == 1 or image.repair_ns == 0):
        _measure(image, now_ns - gap.first_nak_ns)
    gap.first_nak_ns = _NOT_MEASURED
    gap.deadline_ns = max(gap.deadline_ns, now_ns + _retry_delay_ns(image, gap.nak_count))


@kernel
def _measure(image, sample_ns):
    if image.repair_ns == 0:
        image.repair_ns = max(1, sample_ns)
        image.repair_deviation_ns = sample_ns // 2
        return
    difference_ns = abs(sample_ns - image.repair_ns)
    image.repair_deviation_ns += (difference_ns - image.repair_deviation_ns) // 4
    image.repair_ns = max(1, image.repair_ns + (sample_ns - image.repair_ns) // 8)


@kernel
def _retry_delay_ns(image, nak_count):
    """Return the delay until the next NAK for a gap, after `nak_count` NAKs for this gap."""
    # nak_delay has a backoff of its own, which depends on this field.
    image.gap_naks = 0
    configured_ns = nak_delay.next_delay_ns(image, True)
    repair_ns = INITIAL_REPAIR_NS
    if image.repair_ns > 0:
        repair_ns = image.repair_ns + max(4 * image.repair_deviation_ns, DEVIATION_NS_MIN)
    backoffs = min(nak_count - 1, BACKOFFS_MAX)
    if image.nak_is_random:
        # The random part keeps the receivers of a group apart, so that one of them asks first.
        return (repair_ns << backoffs) + configured_ns
    return max(repair_ns << backoffs, configured_ns)


@kernel
def _find_new(image, gaps, log, pages, rebuild_position, hwm_position, now_ns):
    """Scan the log from the position that the last scan reached, and add the gaps found. Returns
    whether there is a new gap.
    """
    is_new = False
    at = max(image.scanned_position, rebuild_position)
    while at < hwm_position:
        term_end = at - position.term_offset(at, image.term_length) + image.term_length
        end = min(term_end, hwm_position)
        begin, length = _scan_term(image, log, pages, at, end)
        at = begin
        if length > 0:
            if not _add(image, gaps, begin, length, now_ns):
                break
            is_new = True
            at = begin + length
        elif begin < end:
            break
    image.scanned_position = at
    return is_new


@kernel
def _add(image, gaps, begin, length, now_ns):
    """Append a gap to the list, or extend the last gap if the two are adjacent. Returns False if
    the list is full.
    """
    row = image.gap_count
    if row > 0:
        last = gaps[row - 1]
        is_same_term = last.begin >> image.bits == begin >> image.bits
        if last.end == begin and last.nak_count == 0 and is_same_term:
            last.end = begin + length
            return True
    if row == gaps.size:
        return False
    gap = gaps[row]
    gap.begin = begin
    gap.end = begin + length
    gap.deadline_ns = now_ns + nak_delay.next_delay_ns(image, False)
    gap.nak_count = 0
    gap.first_nak_ns = _NOT_MEASURED
    image.gap_count = row + 1
    return True


@kernel
def _split(image, gaps, log, pages, row):
    """Split a gap in which frames have arrived. The part after these frames becomes a
    separate gap.

    Without a free row, the parts remain one row.

    Returns: the end of the first part, or its begin if a frame has just arrived there
    """
    gap = gaps[row]
    begin, end = gap.begin, gap.end
    first, length = _scan_term(image, log, pages, begin, end)
    if first > begin:
        return begin
    first_end = begin + length
    if first_end >= end:
        return end
    second, _ = _scan_term(image, log, pages, first_end, end)
    if second < end:
        if image.gap_count == gaps.size:
            return first_end
        for other in range(image.gap_count, row, -1):
            gaps[other] = gaps[other - 1]
        gaps[row + 1].begin = second
        image.gap_count += 1
    gap.end = first_end
    return first_end
