"""Sends the retransmits of a publication that has the `retransmit_ranges` setting: it queues all
ranges that NAKs request, and sends them over several duty cycles.

    NAK --> ranges --> outbox --> one system call for datagrams of several ranges
            |   |  <---- up to RETRANSMITS_PER_TURN datagrams in each duty cycle

New data is sent in each duty cycle as well, so neither delays the other for long. Without this mode
`publication_sender` sends a retransmit as Aeron does.
"""

from windtunnel.driver.base import system
from windtunnel.driver.base.atomics import bytes_at, get_i32
from windtunnel.driver.cnc import counters
from windtunnel.driver.kernels.jit import kernel
from windtunnel.driver.logbuffer import position, scanner
from windtunnel.driver.media import transport
from windtunnel.driver.media_driver.agent import system_counters
from windtunnel.driver.media_driver.sender import network_publication as publication
from windtunnel.driver.media_driver.sender import (
    retransmit_ranges,
    round_trip,
    send_route,
    send_timestamp,
)
from windtunnel.driver.wire import data

RETRANSMITS_PER_TURN = 64
"""Maximum number of datagrams that a publication retransmits in one duty cycle: as many as it can
send in one system call."""


@kernel
def on_nak(state, slot, begin, length, now_ns):
    """Queue the range that a NAK requests for retransmission, except for the parts that are already
    queued or were retransmitted recently.

    Aeron checks only the start of the range. This function also limits the end to snd-pos, because
    a forged NAK could otherwise cause it to send frames that exceed the receiver windows.
    """
    pub, values = state.publications[slot], state.counters
    snd_pos = counters.get(values, pub.snd_pos_id)
    lowest = lowest_position(pub, snd_pos)
    if not lowest <= begin < snd_pos:
        return
    pub.is_rtt_wanted = 1
    count = retransmit_ranges.remove_finished(state.ranges, slot, pub.range_count, lowest, now_ns)
    end = min(begin + length, snd_pos)
    count, contained, is_full = retransmit_ranges.add(
        state.ranges, slot, count, begin, end, now_ns + pub.retransmit_delay_ns
    )
    pub.range_count = count
    counters.add(values, pub.bytes_not_resent_id, contained)
    if is_full:
        counters.increment(values, system_counters.RETRANSMIT_OVERFLOW)


@kernel
def lowest_position(pub, snd_pos):
    """Return the lowest position from which data may be retransmitted. The log buffer is guaranteed
    to contain all data from there to the sender position.

    As in Aeron 1.53, but not lower than the beginning of the stream, before which Aeron reads
    outside of its term buffers.
    """
    lowest = snd_pos - pub.term_length // 2 - position.max_message_length(pub.term_length)
    return max(lowest, pub.initial_position)


@kernel
def do_work(state, slot, now_ns):
    """Send the retransmits that are due, and request a round-trip time measurement if one is due.

    Returns: the number of bytes passed to the socket
    """
    pub, values = state.publications[slot], state.counters
    round_trip.request_when_due(state, slot, now_ns)
    if pub.range_count == 0:
        return 0
    lowest = lowest_position(pub, counters.get(values, pub.snd_pos_id))
    pub.range_count = retransmit_ranges.remove_finished(
        state.ranges, slot, pub.range_count, lowest, now_ns
    )
    counters.set_release(values, pub.ranges_id, pub.range_count)
    index = slot * retransmit_ranges.RANGES_MAX
    total, left = 0, RETRANSMITS_PER_TURN
    while left > 0:
        count = _gather(state, slot, index, min(left, pub.max_messages_per_send), now_ns)
        if count == 0:
            break
        sent = send_route.send_gathered(state, slot, count, now_ns)
        if 0 <= sent < count:
            counters.add_atomic(values, system_counters.SHORT_SENDS, 1)
        if sent == 0 and pub.route == publication.TO_DESTINATIONS:
            # One destination failed. The others must not be sent the datagrams again and again.
            sent = count
        if sent <= 0:
            break
        index, sent_bytes = _on_sent(state, slot, index, sent, now_ns)
        total += sent_bytes
        left -= sent
        if sent < count:
            break
    counters.add(values, system_counters.RETRANSMITTED_BYTES, total)
    return total


@kernel
def _gather(state, slot, index, count_max, now_ns):
    """Fill the outbox with the next datagrams of the ranges that are due, starting with the range
    at `index`.

    Returns: the number of datagrams; `state.ends[i]` is the position after datagram i
    """
    pub = state.publications[slot]
    log = bytes_at(pub.log_address, pub.log_length)
    last = slot * retransmit_ranges.RANGES_MAX + pub.range_count
    count = 0
    while index < last and count < count_max:
        rec = state.ranges[index]
        index += 1
        if not retransmit_ranges.is_due(rec, now_ns):
            continue
        at = rec.sent
        while at < rec.end and count < count_max:
            available, padding = _scan(pub, log, at, rec.end)
            if available <= 0:
                # The rest is not a whole frame, as at the end of a forged range.
                _end_range(state, pub, rec, at, now_ns)
                break
            offset = _index_in_log(pub, at)
            if pub.has_send_timestamp:
                now = system.epoch_ns()
                send_timestamp.stamp(log, offset, available, pub.send_timestamp_offset, now)
            transport.set_outgoing(state.outbox, count, pub.log_address + offset, available)
            at = min(at + available + padding, rec.end)
            state.ends[count] = at
            count += 1
    return count


@kernel
def _end_range(state, pub, rec, at, now_ns):
    """End a range at `at`, because nothing after it can be sent.

    If its last part left in an earlier send, the range is complete now: it must linger, because
    further NAKs for it would otherwise be answered at once.
    """
    rec.end = at
    if rec.begin < at == rec.sent:
        _on_range_sent(state, pub, rec, at, now_ns)


@kernel
def _index_in_log(pub, at):
    base = position.index(at, pub.bits) * pub.term_length
    return base + position.term_offset(at, pub.term_length)


@kernel
def _scan(pub, log, at, end):
    """Determine the length of the next datagram of a range. Returns (bytes to send, padding after
    them).

    There is nothing to send at a position that is within a frame, whose payload could look like
    another frame.
    """
    offset = position.term_offset(at, pub.term_length)
    index = _index_in_log(pub, at)
    is_frame = (
        get_i32(log, index + data.TERM_OFFSET) == offset
        and get_i32(log, index + data.SESSION_ID) == pub.session_id
    )
    if not is_frame:
        return 0, 0
    return scanner.scan(log, index - offset, pub.term_length, offset, min(pub.mtu, end - at))


@kernel
def _on_sent(state, slot, index, count, now_ns):
    """Update the ranges to record that the first `count` datagrams of the outbox were sent.

    Returns: (index of the last range that was sent, bytes of the stream that were sent)
    """
    pub = state.publications[slot]
    sent_bytes = 0
    for number in range(count):
        end = state.ends[number]
        while not state.ranges[index].sent < end <= state.ranges[index].end:
            index += 1
        rec = state.ranges[index]
        sent_bytes += end - rec.sent
        _on_range_sent(state, pub, rec, end, now_ns)
    return index, sent_bytes


@kernel
def _on_range_sent(state, pub, rec, position_sent, now_ns):
    """Record that a range was sent up to a position, and count it if it is complete."""
    if retransmit_ranges.on_sent(rec, position_sent, round_trip.linger_ns(pub), now_ns):
        counters.increment(state.counters, system_counters.RETRANSMITS_SENT)
