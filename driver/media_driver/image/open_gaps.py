"""Detects all gaps in an image, each of which has a row of its own.

    rcv-pos                        scanned position      rcv-hwm
      | gap 0 | f | f | gap 1 | f |  new frames, new gaps  |
      +-------+---+---+-------+---+------------------------+   one row for each gap, oldest first

A turn reads the first frame of each gap, and the new part of the window. If all rows are in use,
the scan continues after a gap is filled. These functions change only the image's record and its
rows. The time is an argument. See docs/loss-recovery.md.
"""

from windtunnel.driver.base.atomics import bytes_at
from windtunnel.driver.kernels.jit import kernel
from windtunnel.driver.logbuffer import position
from windtunnel.driver.media_driver.image import gap_evidence, gap_rows, nak_delay, nak_schedule


@kernel
def is_tracking(image):
    """Return whether an image has a row for each of its gaps; otherwise `loss_detector` finds the
    first gap.
    """
    return image.is_nak_all_gaps != 0 or image.is_fill_delayed != 0


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
def _remove_filled(image, gaps, log, pages, rebuild_position, now_ns):
    """Move the start of each gap to its first missing byte, and remove the gaps that are filled."""
    kept = 0
    is_first = image.repair_ns == 0
    for row in range(image.gap_count):
        gap = gaps[row]
        begin, end = gap.begin, gap.end
        at = max(begin, rebuild_position)
        if at < end and gap_rows.has_begun(image, log, pages, at):
            at, _ = gap_rows.scan_term(image, log, pages, at, end)
        if at > begin:
            gap.begin = at
            if image.is_nak_all_gaps:
                nak_schedule.on_progress(image, gap, now_ns)
        if at < end:
            if kept < row:
                gaps[kept] = gaps[row]
            kept += 1
    image.gap_count = kept
    if is_first and image.repair_ns > 0:
        nak_schedule.on_first_measurement(image, gaps, now_ns)


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
        begin, length = gap_rows.scan_term(image, log, pages, at, end)
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
    """Append a gap, or extend the last one if it is adjacent. Returns whether there was space.

    A gap that is to be filled is not extended, because there is less evidence for the new part.
    """
    row = image.gap_count
    if row > 0 and image.is_nak_all_gaps:
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
    gap.found_ns = now_ns
    gap.nak_count = 0
    gap.naks_in_row = 0
    gap.first_nak_ns = gap_rows.NOT_MEASURED
    if image.is_fill_delayed:
        gap_evidence.begin(image, gap, now_ns)
    else:
        gap.deadline_ns = now_ns + nak_delay.next_delay_ns(image, False)
    image.gap_count = row + 1
    return True
