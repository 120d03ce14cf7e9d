"""Detects gaps in an image and schedules NAKs for one active gap at a time.

    rcv-pos                       rcv-hwm
      | f | f |   gap    | f |  gap |   only the first gap is active. If its offset or length
      +---+---+----------+---+------+   changes, it is a new gap with a new NAK delay. Retries
                                      become rarer while its offset stays; see nak_delay.

These functions change only the image's record. The time is an argument. Source: spec 3.5, Aeron
1.53.
"""

from windtunnel.driver.base.atomics import bytes_at
from windtunnel.driver.kernels.jit import kernel
from windtunnel.driver.logbuffer import position
from windtunnel.driver.media_driver.image import nak_delay, open_gaps, written_pages


@kernel
def scan(image, log, rebuild_position, hwm_position, now_ns):
    """Scan an image's log from `rebuild_position` to the first gap in the same term.

    Shapes:  image is a PUBLICATION_IMAGE record, log the whole image log
    Returns: (term offset reached, whether the gap is new, whether its NAK is due)
    """
    offset = position.term_offset(rebuild_position, image.term_length)
    if rebuild_position >= hwm_position:
        return offset, False, False
    same_term = (rebuild_position >> image.bits) == (hwm_position >> image.bits)
    limit = image.term_length
    if same_term:
        limit = position.term_offset(hwm_position, image.term_length)
    base = position.index(rebuild_position, image.bits) * image.term_length
    pages = bytes_at(image.pages_address, image.pages_length)
    reached, gap_length = written_pages.scan(log, pages, base, offset, limit)
    if gap_length <= 0:
        return reached, False, False
    term_id = position.term_id(rebuild_position, image.bits, image.initial_term_id)
    is_same = (
        image.gap_length == gap_length
        and image.gap_offset == reached
        and image.gap_term_id == term_id
    )
    if image.gap_term_id != term_id or image.gap_offset != reached:
        image.gap_naks = 0
    if not is_same:
        image.gap_term_id = term_id
        image.gap_offset = reached
        image.gap_length = gap_length
        image.gap_deadline_ns = now_ns + nak_delay.next_delay_ns(image, False)
    is_due = now_ns - image.gap_deadline_ns >= 0
    if is_due:
        image.gap_naks += 1
        image.gap_deadline_ns = now_ns + nak_delay.next_delay_ns(image, True)
    return reached, not is_same, is_due


@kernel
def count_new_loss(image):
    """Return the number of bytes of the active gap that the loss report has not counted yet, and
    mark them as counted.
    """
    if open_gaps.is_tracking(image):
        return image.gap_length if image.gap_naks == 1 else 0
    begin, end = image.gap_offset, image.gap_offset + image.gap_length
    if image.counted_loss_term_id == image.gap_term_id:
        begin = max(begin, image.counted_loss_end)
    if end > begin:
        image.counted_loss_term_id = image.gap_term_id
        image.counted_loss_end = end
    return max(0, end - begin)
