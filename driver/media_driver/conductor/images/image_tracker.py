"""The conductor's duty cycle for an image: rcv-pos, gap detection and status messages.

A status message acknowledges the position of the slowest subscriber, not rcv-pos. A slow subscriber
therefore applies back pressure to the sender. A new position is published only after it has moved
by a quarter of the window. The receiver repeats the last status message periodically. Source: spec
3.4 and 3.5, Aeron 1.53.
"""

from windtunnel.driver.base.atomics import bytes_at
from windtunnel.driver.cnc import counters
from windtunnel.driver.kernels.jit import kernel
from windtunnel.driver.media_driver.conductor.images import gap_counters, subscriber_positions
from windtunnel.driver.media_driver.image import (
    congestion_control,
    gap_evidence,
    loss_detector,
    loss_report,
    lost_ranges,
    nak_schedule,
    open_gaps,
    publication_image,
)


@kernel
def track_rebuild(state, slot, now_ns, now_ms):
    """Advance one image: publish rcv-pos, detect gaps, and schedule status messages.

    Units:   now_ns is monotonic, now_ms is since the epoch
    Returns: the work count
    """
    image = state.images[slot]
    values = state.counters
    if image.is_rebuilding == 0:
        return 0
    if publication_image.shared_acquire(state.image_words, slot, publication_image.IS_REVOKED):
        return 0
    lowest, highest, readers = subscriber_positions.bounds(
        state.subscribers, image.first_subscriber, values
    )
    if readers == 0:
        return 0
    # Read the high-water mark first, because everything up to it is already in the log.
    hwm = counters.get_acquire(values, image.hwm_id)
    rebuild = max(counters.get(values, image.rcv_pos_id), highest)
    log = bytes_at(image.log_address, image.log_length)
    is_tracking = open_gaps.is_tracking(image)
    if image.is_nak_all_gaps:
        packet_ns = publication_image.shared_acquire(
            state.image_words, slot, publication_image.LAST_PACKET_NS
        )
        nak_schedule.on_packet(image, state.gaps[slot], packet_ns)
    if is_tracking:
        offset, is_new_loss = open_gaps.scan(image, state.gaps[slot], log, rebuild, hwm, now_ns)
        is_due = False
    else:
        offset, is_new_loss, is_due = loss_detector.scan(image, log, rebuild, hwm, now_ns)
    rebuilt = rebuild - (rebuild & (image.term_length - 1)) + offset
    if rebuilt < hwm and not is_tracking:
        # There is a gap. The conductor checks at least this often whether it was repaired.
        state.agent[0].nak_due_ns = min(state.agent[0].nak_due_ns, image.gap_deadline_ns)
    work_count = counters.propose_max_release(values, image.rcv_pos_id, rebuilt)
    if is_tracking:
        work_count += _pass_lost_ranges(state, slot, log, now_ns, now_ms)
        gap_counters.publish(values, image, state.gaps[slot], now_ns)
    elif is_due:
        publication_image.publish_loss(
            state.image_words, slot, image.gap_term_id, image.gap_offset, image.gap_length
        )
        _report_loss(state, slot, now_ms)
        # A repeated NAK does not count as work, so the agent idles although a gap remains.
        work_count += int(image.gap_naks == 1)
    window, is_forced = congestion_control.on_track_rebuild(
        state, slot, now_ns, lowest, is_new_loss
    )
    has_moved = lowest > image.next_status_position + window // 4
    if is_forced or has_moved or window != image.next_window:
        image.next_status_position = lowest
        image.next_window = window
        publication_image.publish_status(state.image_words, slot, lowest, window)
        work_count += 1
    return work_count


@kernel
def _pass_lost_ranges(state, slot, log, now_ns, now_ms):
    """Pass the ranges whose NAKs are due, or that are to be filled, to the receiver. Returns the
    work count.
    """
    # Ranges that the receiver has not yet read must not be overwritten.
    if not publication_image.is_loss_taken(state.image_words, slot):
        return 0
    image, gaps, ranges = state.images[slot], state.gaps[slot], state.lost_ranges[slot]
    row = count = work_count = 0
    while count < lost_ranges.RANGES_MAX:
        if image.is_fill_delayed:
            row = gap_evidence.take_due(image, gaps, log, row, now_ns)
        else:
            row = nak_schedule.take_due(image, gaps, log, row, now_ns)
        if row == 0:
            break
        lost_ranges.put_active_gap(ranges, count, image)
        _report_loss(state, slot, now_ms)
        count += 1
        # A repeated NAK does not count as work, so the agent idles although a gap remains.
        work_count += int(image.gap_naks == 1)
    if count > 0:
        publication_image.publish_lost_ranges(state.image_words, slot, count)
    return work_count


@kernel
def _report_loss(state, slot, now_ms):
    """Add the active gap to the image's entry in the loss report, and append the entry if there is
    none.
    """
    image = state.images[slot]
    lost_bytes = loss_detector.count_new_loss(image)
    if lost_bytes == 0:
        return
    if image.loss_entry_at == loss_report.NO_ENTRY:
        entry = bytes_at(image.loss_entry_address, image.loss_entry_length)
        agent = state.agent[0]
        image.loss_entry_at, agent.loss_report_end = loss_report.append(
            state.loss_report, agent.loss_report_end, entry, lost_bytes, now_ms
        )
    elif image.loss_entry_at >= 0:
        loss_report.add(state.loss_report, image.loss_entry_at, lost_bytes, now_ms)
