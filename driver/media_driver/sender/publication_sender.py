"""Sends the SETUP frames, data, heartbeats and retransmits of one network publication.

    snd-pos ............ snd-lmt                      window = snd-lmt - snd-pos
       |  d1 | d2 | d3 |    |                         up to n datagrams per system call, directly
       +-----+----+----+                              from the term buffer, none across its end

`send_route` selects the destinations. Source: spec 4.1, 4.2 and 4.7, Aeron 1.53.
"""

from windtunnel.driver.base import system
from windtunnel.driver.base.atomics import (
    acquire_fence,
    bytes_at,
    get_i32,
    put_i32_release,
)
from windtunnel.driver.cnc import counters
from windtunnel.driver.kernels.jit import kernel
from windtunnel.driver.logbuffer import descriptor, position, scanner
from windtunnel.driver.media import segmentation, transport
from windtunnel.driver.media_driver.agent import system_counters
from windtunnel.driver.media_driver.sender import (
    flow_control,
    range_sender,
    receiver_liveness,
    retransmit_handler,
    send_route,
    send_timestamp,
)
from windtunnel.driver.media_driver.sender import network_publication as publication
from windtunnel.driver.media_driver.sender.sender_state import PACKETS_PER_SEND_MAX
from windtunnel.driver.wire import data, frame_type, setup

INITIAL_WINDOW_LENGTH = 128 * 1024
"""Initial window length in bytes. It limits the length of one retransmit. Source: Aeron 1.53,
not configurable."""


@kernel
def do_work(state, slot, now_ns):
    """Run one publication's part of the duty cycle: send SETUP, data, heartbeats and retransmits.

    Units:   now_ns is monotonic
    Returns: the number of data bytes passed to the socket
    """
    pub = state.publications[slot]
    if pub.has_initial_connection == 0 or pub.is_setup_elicited != 0:
        _send_setup_when_due(state, slot, now_ns)
    resent = 0
    if pub.has_retransmit_ranges:
        resent = range_sender.do_work(state, slot, now_ns)
    sent = _send_data(state, slot, now_ns)
    if sent == 0:
        _send_heartbeat_when_due(state, slot, now_ns)
        _on_idle(state, slot, now_ns)
    if pub.resend_count > 0:
        _on_resend_timeouts(state, slot, now_ns)
    return sent + resent


@kernel
def _send_setup_when_due(state, slot, now_ns):
    pub = state.publications[slot]
    if pub.last_setup_ns != 0 and now_ns - pub.last_setup_ns < publication.SETUP_INTERVAL_NS:
        return
    pub.last_setup_ns = now_ns
    length = write_setup(state, slot)
    if pub.is_setup_elicited:
        limit = counters.get(state.counters, pub.snd_lmt_id)
        flow_control.on_setup(state.flows, slot, limit, now_ns)
    send_route.send_frame(state, slot, length, now_ns)
    if pub.receivers_count > 0:
        pub.is_setup_elicited = 0


@kernel
def write_setup(state, slot):
    """Write the SETUP of a publication to `state.scratch`. Returns the frame length."""
    pub = state.publications[slot]
    snd_pos = counters.get(state.counters, pub.snd_pos_id)
    return setup.write(
        state.scratch,
        0,
        pub.setup_flags,
        position.term_offset(snd_pos, pub.term_length),
        pub.session_id,
        pub.stream_id,
        pub.initial_term_id,
        position.term_id(snd_pos, pub.bits, pub.initial_term_id),
        pub.term_length,
        pub.mtu,
        pub.ttl,
    )


@kernel
def _on_back_pressure(state, slot):
    pub = state.publications[slot]
    if pub.track_sender_limits:
        pub.track_sender_limits = 0
        counters.increment(state.counters, pub.snd_bpe_id)
        counters.increment(state.counters, system_counters.SENDER_FLOW_CONTROL_LIMITS)


@kernel
def _gather(state, slot, snd_pos, window):
    """Fill the outbox with references to the next datagrams to send. Their content stays in the
    term buffer.

    Returns: the number of datagrams; `state.ends[i]` is the position after datagram i
    """
    pub = state.publications[slot]
    log = bytes_at(pub.log_address, pub.log_length)
    base = position.index(snd_pos, pub.bits) * pub.term_length
    offset = position.term_offset(snd_pos, pub.term_length)
    count, most = 0, pub.max_messages_per_send
    # Only the header of a padding frame must fit into the window, but snd-pos advances by its whole
    # length. It may exceed snd-lmt by one padding frame, after which nothing more is sent.
    while count < most and window > 0 and offset < pub.term_length:
        limit = min(window, pub.mtu)
        available, padding = scanner.scan(log, base, pub.term_length, offset, limit)
        if available <= 0:
            if available < 0:
                _on_back_pressure(state, slot)
            break
        if pub.has_send_timestamp:
            _stamp(pub, log, base + offset, available)
        if count == 0:
            most = min(most, PACKETS_PER_SEND_MAX * segmentation.datagrams_per_packet(available))
        transport.set_outgoing(state.outbox, count, pub.log_address + base + offset, available)
        offset += available + padding
        window -= available + padding
        snd_pos += available + padding
        state.ends[count] = snd_pos
        count += 1
    return count


@kernel
def _send_data(state, slot, now_ns):
    pub = state.publications[slot]
    values = state.counters
    snd_pos = counters.get(values, pub.snd_pos_id)
    window = counters.get(values, pub.snd_lmt_id) - snd_pos
    if window <= 0:
        _on_back_pressure(state, slot)
        return 0
    count = _gather(state, slot, snd_pos, window)
    if count == 0:
        return 0
    sent = send_route.send_gathered(state, slot, count, now_ns)
    if 0 <= sent < count:
        counters.add_atomic(values, system_counters.SHORT_SENDS, 1)
    if sent <= 0:
        return 0
    sent_bytes = 0
    for index in range(sent):
        sent_bytes += transport.outgoing_length(state.outbox, index)
    counters.set_release(values, pub.snd_pos_id, state.ends[sent - 1])
    counters.add(values, system_counters.BYTES_SENT, sent_bytes)
    pub.last_send_ns = now_ns
    pub.track_sender_limits = 1
    return sent_bytes


@kernel
def _stamp(pub, log, at, length):
    # Read the clock: `now_ns` is from the start of the duty cycle and would be too old.
    send_timestamp.stamp(log, at, length, pub.send_timestamp_offset, system.epoch_ns())


@kernel
def _send_heartbeat_when_due(state, slot, now_ns):
    pub = state.publications[slot]
    if pub.has_initial_connection == 0:
        return
    if now_ns - pub.last_send_ns < publication.HEARTBEAT_INTERVAL_NS:
        return
    flags = frame_type.UNFRAGMENTED
    if pub.is_end_of_stream and pub.signal_eos:
        flags |= frame_type.EOS
    # Read the flag in the log: the conductor's timer may process it up to a second later.
    log = bytes_at(pub.log_address, pub.log_length)
    is_revoked = descriptor.is_publication_revoked(log, pub.meta_at)
    acquire_fence()
    if is_revoked:
        flags |= frame_type.EOS | frame_type.REVOKED
    snd_pos = counters.get(state.counters, pub.snd_pos_id)
    length = data.write_heartbeat(
        state.scratch,
        0,
        pub.session_id,
        pub.stream_id,
        position.term_id(snd_pos, pub.bits, pub.initial_term_id),
        position.term_offset(snd_pos, pub.term_length),
        flags,
    )
    pub.last_send_ns = now_ns
    if send_route.send_frame(state, slot, length, now_ns):
        counters.add(state.counters, system_counters.BYTES_SENT, length)
    counters.increment(state.counters, system_counters.HEARTBEATS_SENT)


@kernel
def refresh_connected(state, slot):
    """Publish the connection status to the conductor, and to clients through the log metadata."""
    pub = state.publications[slot]
    has_receivers = int(pub.receivers_count > 0)
    if pub.has_receivers != has_receivers:
        publication.set_has_receivers_release(state.words, slot, has_receivers)
    is_enough = int(has_receivers and flow_control.has_required_receivers(state.flows, slot))
    if pub.has_required_receivers != is_enough:
        publication.set_has_required_receivers_release(state.words, slot, is_enough)
    is_connected = is_enough or (
        pub.spies_simulate_connection != 0 and publication.has_spies_acquire(state.words, slot) != 0
    )
    if pub.is_revoked:
        # The conductor has cleared it, but the sender may have set it again since.
        is_connected = False
    log = bytes_at(pub.log_address, pub.log_length)
    at = pub.meta_at + descriptor.IS_CONNECTED
    if get_i32(log, at) != int(is_connected):
        put_i32_release(log, at, int(is_connected))


@kernel
def _on_idle(state, slot, now_ns):
    """Update the sender limit and remove receivers that timed out. Called when no data was sent."""
    pub = state.publications[slot]
    values = state.counters
    limit = counters.get(values, pub.snd_lmt_id)
    new_limit = limit
    has_spies = pub.spies_simulate_connection and publication.has_spies_acquire(state.words, slot)
    if has_spies and pub.receivers_count == 0:
        spied = publication.max_spy_position_acquire(state.words, slot)
        new_limit = max(counters.get(values, pub.snd_pos_id), spied)
        counters.set_release(values, pub.snd_pos_id, new_limit)
    new_limit = flow_control.on_idle(
        state.flows, state.flow_receivers, slot, values, new_limit, now_ns
    )
    if new_limit != limit:
        counters.set_release(values, pub.snd_lmt_id, new_limit)
    pub.receivers_count = receiver_liveness.expire(
        state.receivers, slot, pub.receivers_count, pub.connection_timeout_ns, now_ns
    )
    if pub.receivers_count == 0:
        pub.is_response_reported = 0
    if pub.has_retransmit_ranges and pub.is_end_of_stream:
        _publish_is_behind(state, slot)
    refresh_connected(state, slot)


@kernel
def _publish_is_behind(state, slot):
    """Publish for the conductor whether a live receiver still needs data of an ended stream."""
    pub = state.publications[slot]
    consumed = receiver_liveness.lowest_position(state.receivers, slot, pub.receivers_count)
    is_behind = consumed < counters.get(state.counters, pub.snd_pos_id) and not pub.is_revoked
    if pub.is_behind != int(is_behind):
        publication.set_is_behind_release(state.words, slot, int(is_behind))


@kernel
def resend(state, slot, term_id, term_offset, length, now_ns):
    """Retransmit the complete frames in a range of a term, if the log still contains the range.

    Aeron checks only the start of the range. This function also limits the end to snd-pos, because
    a forged NAK could otherwise cause it to send frames that exceed the receiver windows.
    """
    pub = state.publications[slot]
    snd_pos = counters.get(state.counters, pub.snd_pos_id)
    begin = position.of(term_id, term_offset, pub.bits, pub.initial_term_id)
    if not range_sender.lowest_position(pub, snd_pos) <= begin < snd_pos:
        return
    log = bytes_at(pub.log_address, pub.log_length)
    base = position.index(begin, pub.bits) * pub.term_length
    offset, remaining, resent = term_offset, min(length, snd_pos - begin), 0
    while remaining > 0 and offset < pub.term_length:
        limit = min(pub.mtu, remaining)
        available, padding = scanner.scan(log, base, pub.term_length, offset, limit)
        if available <= 0:
            break
        if pub.has_send_timestamp:
            _stamp(pub, log, base + offset, available)
        transport.set_outgoing(state.outbox, 0, pub.log_address + base + offset, available)
        sent = send_route.send_gathered(state, slot, 1, now_ns)
        if sent == 0:
            counters.add_atomic(state.counters, system_counters.SHORT_SENDS, 1)
        if sent != 1:
            break
        offset += available + padding
        remaining -= available + padding
        resent += available + padding
    if resent > 0:
        counters.increment(state.counters, system_counters.RETRANSMITS_SENT)
        counters.add(state.counters, system_counters.RETRANSMITTED_BYTES, resent)


@kernel
def on_nak(state, slot, term_id, term_offset, length, now_ns):
    """Schedule the retransmit that a NAK requests, unless a recent retransmit covers its range."""
    pub = state.publications[slot]
    window = min(INITIAL_WINDOW_LENGTH, pub.term_length // 2) * pub.retransmit_window_multiple
    length = min(length, pub.term_length - term_offset, window)
    if length <= 0:
        return
    if pub.has_retransmit_ranges:
        begin = position.of(term_id, term_offset, pub.bits, pub.initial_term_id)
        range_sender.on_nak(state, slot, begin, length, now_ns)
        return
    index = retransmit_handler.assign(
        state.resends, slot, pub.max_resend, pub.is_group, term_id, term_offset
    )
    if index == retransmit_handler.POOL_OVERFLOW:
        counters.increment(state.counters, system_counters.RETRANSMIT_OVERFLOW)
    if index < 0:
        return
    if state.resends[index].state == retransmit_handler.FREE:
        pub.resend_count += 1
    due = retransmit_handler.start(
        state.resends,
        index,
        term_id,
        term_offset,
        length,
        pub.retransmit_delay_ns,
        pub.retransmit_linger_ns,
        now_ns,
    )
    if due:
        resend(state, slot, term_id, term_offset, length, now_ns)


@kernel
def _on_resend_timeouts(state, slot, now_ns):
    pub = state.publications[slot]
    first = slot * retransmit_handler.RESENDS_MAX
    count = pub.max_resend if pub.is_group else 1
    for index in range(first, first + count):
        rec = state.resends[index]
        if rec.state == retransmit_handler.FREE:
            continue
        if retransmit_handler.on_timeout(state.resends, index, pub.retransmit_linger_ns, now_ns):
            resend(state, slot, rec.term_id, rec.term_offset, rec.length, now_ns)
        if rec.state == retransmit_handler.FREE:
            pub.resend_count -= 1
