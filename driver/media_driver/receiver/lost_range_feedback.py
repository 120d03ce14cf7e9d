"""Processes the lost ranges that the conductor passes to the receiver.

    ranges --> NAK frames --> outbox --> one system call for each connection     reliable stream
       `-----> padding in the log                                                unreliable stream

Each NAK is a datagram of its own, because Aeron's senders read one frame of a datagram.
"""

from windtunnel.driver.cnc import counters
from windtunnel.driver.kernels.jit import kernel
from windtunnel.driver.logbuffer import position
from windtunnel.driver.media_driver.agent import system_counters
from windtunnel.driver.media_driver.image import image_connections
from windtunnel.driver.media_driver.image import publication_image as image
from windtunnel.driver.media_driver.receiver import gap_filling, receive_transport
from windtunnel.driver.wire import nak


@kernel
def process(state, slot, now_ns):
    """Send NAKs for the lost ranges of an image, or fill them if its stream is unreliable.

    Returns: how many ranges are new
    """
    rec = state.images[slot]
    change = image.loss_change_acquire(state.words, slot)
    if rec.is_revoked:
        new_count = 0
    elif rec.is_fill_delayed:
        new_count = _fill(state, slot, rec.lost_range_count)
    else:
        new_count = _send_naks(state, slot, rec.lost_range_count, now_ns)
    image.set_loss_taken_release(state.words, slot, change)
    return new_count


@kernel
def _fill(state, slot, count):
    rec, ranges, filled = state.images[slot], state.lost_ranges[slot], state.filled_gaps[slot]
    new_count = 0
    for index in range(count):
        lost = ranges[index]
        new_count += lost.is_new
        if gap_filling.fill(state, rec, lost.term_id, lost.offset, lost.length):
            begin = position.of(lost.term_id, lost.offset, rec.bits, rec.initial_term_id)
            rec.fill_count = gap_filling.remember(
                filled, rec.fill_count, begin, begin + lost.length
            )
    return new_count


@kernel
def _send_naks(state, slot, count, now_ns):
    """Send NAKs for the first `count` lost ranges on every live connection whose feedback limit
    permits them, oldest range first.

    Returns: the number of ranges that are new. A repeated NAK does not count as work, so the
             agent idles although a gap remains.
    """
    rec, ranges = state.images[slot], state.lost_ranges[slot]
    new_count = retry_count = 0
    for index in range(count):
        lost = ranges[index]
        at = index * nak.LENGTH
        nak.write(
            state.naks, at, rec.session_id, rec.stream_id, lost.term_id, lost.offset, lost.length
        )
        new_count += lost.is_new
    first, total = slot * image.CONNECTIONS_MAX, 0
    for index in range(first, first + rec.connection_count):
        connection = state.connections[index]
        if not image_connections.is_live(connection, now_ns):
            continue
        permitted = image_connections.spend(state, connection, nak.LENGTH, count, True)
        sent = receive_transport.send_gathered(
            state, connection.transport, permitted, connection.control, connection.control_length
        )
        total += sent
        for number in range(sent):
            retry_count += 1 - ranges[number].is_new
    counters.add(state.counters, system_counters.NAKS_SENT, total)
    counters.add(state.counters, rec.naks_sent_id, total)
    counters.add(state.counters, rec.nak_retries_id, retry_count)
    return new_count
