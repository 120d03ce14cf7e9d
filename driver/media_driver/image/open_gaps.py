"""Detects all gaps in an image and schedules NAKs for each of them.

    rcv-pos                        scanned position      rcv-hwm
      | gap 0 | f | f | gap 1 | f |  new frames, new gaps  |
      +-------+---+---+-------+---+------------------------+   one row for each gap, oldest first

A turn reads the first frame of each gap, and the new part of the window. If all GAPS_MAX rows are
in use, the scan continues after a gap is filled. The delay until a retry is the measured time from
a NAK to its repair, smoothed, plus four times its deviation (RFC 6298); it doubles after each NAK
for the same gap, and the configured retry delay is its minimum. Aeron has only `loss_detector`.
These functions change only the image's record. The time is an argument. See docs/loss-recovery.md.
"""

from windtunnel.driver.base.atomics import bytes_at, get_i32_acquire
from windtunnel.driver.kernels.jit import kernel
from windtunnel.driver.logbuffer import position
from windtunnel.driver.media_driver.image import nak_delay, written_pages
from windtunnel.driver.media_driver.image.publication_image import GAPS_MAX

INITIAL_REPAIR_NS = 333_000_000
"""Repair time assumed until one is measured: the initial round-trip time of QUIC (RFC 9002)."""

DEVIATION_NS_MIN = 1_000_000
"""Minimum of the deviations added to the smoothed repair time: the granularity of RFC 6298."""

BACKOFFS_MAX = 6
"""Maximum number of doublings of the retry delay."""

_IS_MEASURED = -1


@kernel
def scan(image, log, rebuild_position, hwm_position, may_ask, now_ns):
    """Update an image's gaps, and choose the oldest gap whose NAK is due if `may_ask`.

    The chosen gap becomes the active gap of the record: gap_term_id, gap_offset, gap_length.

    Shapes:  image is a PUBLICATION_IMAGE record, log the whole image log
    Returns: (offset reached from the start of the term of `rebuild_position`, whether a gap is new,
             whether the NAK of the active gap is due)
    """
    pages = bytes_at(image.pages_address, image.pages_length)
    _remove_filled(image, log, pages, rebuild_position, now_ns)
    is_new = _find_new(image, log, pages, rebuild_position, hwm_position, now_ns)
    reached = image.gap_begins[0] if image.gap_count > 0 else image.scanned_position
    is_due = may_ask and _ask_for_oldest(image, log, pages, now_ns)
    term_begin = rebuild_position - position.term_offset(rebuild_position, image.term_length)
    return reached - term_begin, is_new, is_due


@kernel
def _scan_term(image, log, pages, begin, end):
    """Find the first gap between two positions of one term. Returns (its position, its length)."""
    offset = position.term_offset(begin, image.term_length)
    base = position.index(begin, image.bits) * image.term_length
    reached, length = written_pages.scan(log, pages, base, offset, offset + end - begin)
    return begin - offset + reached, length


@kernel
def _has_begun(image, log, pages, begin):
    """Return whether the first frame of a gap has arrived, without reading an unwritten page."""
    offset = position.term_offset(begin, image.term_length)
    at = position.index(begin, image.bits) * image.term_length + offset
    if pages.size > 0 and pages[at >> written_pages.PAGE_BITS] == 0:
        return False
    return get_i32_acquire(log, at) > 0


@kernel
def _remove_filled(image, log, pages, rebuild_position, now_ns):
    """Move the start of each gap to its first missing byte, and remove the gaps that are filled."""
    kept = 0
    for row in range(image.gap_count):
        begin, end = image.gap_begins[row], image.gap_ends[row]
        at = max(begin, rebuild_position)
        if at < end and _has_begun(image, log, pages, at):
            at, _ = _scan_term(image, log, pages, at, end)
        if at > begin:
            _on_progress(image, row, now_ns)
        if at < end:
            _move(image, row, kept)
            image.gap_begins[kept] = at
            kept += 1
    image.gap_count = kept


@kernel
def _on_progress(image, row, now_ns):
    """Measure the time to the first repair of a gap, and restart its retry delay."""
    asks = image.gap_asks[row]
    if asks == 0:
        return
    asked_ns = image.gap_asked_ns[row]
    # A repair of a gap with several NAKs may answer any of them, so it is not measured; but the
    # first measurement may be too long, because it replaces an assumption.
    if asked_ns != _IS_MEASURED and (asks == 1 or image.repair_ns == 0):
        _measure(image, now_ns - asked_ns)
    image.gap_asked_ns[row] = _IS_MEASURED
    image.gap_deadlines_ns[row] = max(
        image.gap_deadlines_ns[row], now_ns + _retry_delay_ns(image, asks)
    )


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
def _retry_delay_ns(image, asks):
    """Return the delay until the next NAK for a gap for which `asks` NAKs (1 or more) were sent."""
    image.gap_naks = 0
    configured_ns = nak_delay.next_delay_ns(image, True)
    repair_ns = INITIAL_REPAIR_NS
    if image.repair_ns > 0:
        repair_ns = image.repair_ns + max(4 * image.repair_deviation_ns, DEVIATION_NS_MIN)
    backoffs = min(asks - 1, BACKOFFS_MAX)
    if image.nak_is_random:
        # The random part keeps the receivers of a group apart, so that one of them asks first.
        return (repair_ns << backoffs) + configured_ns
    return max(repair_ns << backoffs, configured_ns)


@kernel
def _find_new(image, log, pages, rebuild_position, hwm_position, now_ns):
    """Add the gaps after the scanned position. Returns whether there is a new gap."""
    is_new = False
    at = max(image.scanned_position, rebuild_position)
    while at < hwm_position:
        term_end = at - position.term_offset(at, image.term_length) + image.term_length
        end = min(term_end, hwm_position)
        begin, length = _scan_term(image, log, pages, at, end)
        at = begin
        if length > 0:
            if not _add(image, begin, length, now_ns):
                break
            is_new = True
            at = begin + length
        elif begin < end:
            break
    image.scanned_position = at
    return is_new


@kernel
def _add(image, begin, length, now_ns):
    """Append a gap, or extend the last one if it is adjacent. Returns whether there was space."""
    last = image.gap_count - 1
    if (
        last >= 0
        and image.gap_ends[last] == begin
        and image.gap_asks[last] == 0
        and image.gap_begins[last] >> image.bits == begin >> image.bits
    ):
        image.gap_ends[last] = begin + length
        return True
    row = image.gap_count
    if row == GAPS_MAX:
        return False
    image.gap_begins[row] = begin
    image.gap_ends[row] = begin + length
    image.gap_deadlines_ns[row] = now_ns + nak_delay.next_delay_ns(image, False)
    image.gap_asks[row] = 0
    image.gap_asked_ns[row] = _IS_MEASURED
    image.gap_count = row + 1
    return True


@kernel
def _ask_for_oldest(image, log, pages, now_ns):
    """Make the oldest gap whose NAK is due the active gap. Returns whether there is one."""
    for row in range(image.gap_count):
        if now_ns - image.gap_deadlines_ns[row] < 0:
            continue
        _split(image, log, pages, row)
        asks = image.gap_asks[row] + 1
        image.gap_asks[row] = asks
        if asks == 1:
            image.gap_asked_ns[row] = now_ns
        image.gap_deadlines_ns[row] = now_ns + _retry_delay_ns(image, asks)
        begin = image.gap_begins[row]
        image.gap_term_id = position.term_id(begin, image.bits, image.initial_term_id)
        image.gap_offset = position.term_offset(begin, image.term_length)
        image.gap_length = image.gap_ends[row] - begin
        image.gap_naks = asks
        return True
    return False


@kernel
def _split(image, log, pages, row):
    """Divide a gap in which frames have arrived. The part after them becomes the next row.

    Without a free row, the gap remains whole.
    """
    begin, end = image.gap_begins[row], image.gap_ends[row]
    _, length = _scan_term(image, log, pages, begin, end)
    first_end = begin + length
    if length == 0 or first_end >= end:
        return
    second, _ = _scan_term(image, log, pages, first_end, end)
    if second < end:
        if image.gap_count == GAPS_MAX:
            return
        for other in range(image.gap_count, row, -1):
            _move(image, other - 1, other)
        image.gap_begins[row + 1] = second
        image.gap_count += 1
    image.gap_ends[row] = first_end


@kernel
def _move(image, source, target):
    image.gap_begins[target] = image.gap_begins[source]
    image.gap_ends[target] = image.gap_ends[source]
    image.gap_deadlines_ns[target] = image.gap_deadlines_ns[source]
    image.gap_asks[target] = image.gap_asks[source]
    image.gap_asked_ns[target] = image.gap_asked_ns[source]
