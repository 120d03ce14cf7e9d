"""One network publication's turn in the sender: SETUP, data, heartbeats and resends.

    snd-pos ............ snd-lmt                      window = what the receivers still allow
       |  d1 | d2 | d3 |    |                         up to n datagrams leave in one system call,
       +-----+----+----+                              straight from the term, none across its end

Everything leaves through the publication's endpoint. Source: spec 4.1, 4.2 and 4.7, Aeron 1.53.
"""

from driver.base import handoff
from driver.base.atomics import bytes_at, get_i32, put_i32_release
from driver.base.jit import kernel
from driver.cnc import counters
from driver.logbuffer import descriptor, position, scanner
from driver.media import transport
from driver.media_driver import flow_control, retransmit_handler, system_counters
from driver.media_driver import network_publication as publication
from driver.media_driver.sender_state import SEND_FAILED
from driver.wire import data, frame_type, setup

INITIAL_WINDOW_LENGTH = 128 * 1024
"""Bounds one resend, with the term length. Source: Aeron 1.53, whatever is configured."""
MESSAGE_LENGTH_MAX = 16 * 1024 * 1024


@kernel
def take_turn(state, slot, now_ns):
    """Send what this publication may send now.

    Units:   now_ns is monotonic
    Returns: bytes handed to the socket as data
    """
    pub = state.publications[slot]
    if pub.has_initial_connection == 0 or pub.is_setup_elicited != 0:
        _send_setup_when_due(state, slot, now_ns)
    sent = _send_data(state, slot, now_ns)
    if sent == 0:
        _send_heartbeat_when_due(state, slot, now_ns)
        _follow_receivers(state, slot, now_ns)
    if pub.resend_count > 0:
        _on_resend_timeouts(state, slot, now_ns)
    return sent


@kernel
def send_control(state, endpoint_slot, length):
    """Send the frame in `state.scratch` to the remote end. Returns whether all of it left."""
    endpoint = state.endpoints[endpoint_slot]
    result = transport.send_frame(
        endpoint.fd, state.scratch, 0, length, endpoint.name, endpoint.name_length, state.links
    )
    if result < 0:
        _report_failure(state, endpoint_slot, result)
    elif result < length:
        counters.add_atomic(state.counters, system_counters.SHORT_SENDS, 1)
    return result == length


@kernel
def _report_failure(state, endpoint_slot, error):
    # Sending may fail at every turn; the queue belongs first to answers that must not be lost.
    if not handoff.is_empty(state.events):
        return
    state.record[0] = SEND_FAILED
    state.record[1] = endpoint_slot
    state.record[2] = error
    handoff.put(state.events, state.record)


@kernel
def _send_setup_when_due(state, slot, now_ns):
    pub = state.publications[slot]
    if pub.last_setup_ns != 0 and now_ns - pub.last_setup_ns < publication.SETUP_INTERVAL_NS:
        return
    pub.last_setup_ns = now_ns
    snd_pos = counters.get(state.counters, pub.snd_pos_id)
    length = setup.write(
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
    send_control(state, pub.endpoint, length)
    if publication.has_receivers_acquire(state.words, slot):
        pub.is_setup_elicited = 0


@kernel
def _on_held_back(state, slot):
    pub = state.publications[slot]
    if pub.is_limit_watched:
        pub.is_limit_watched = 0
        counters.increment(state.counters, pub.snd_bpe_id)
        counters.increment(state.counters, system_counters.SENDER_FLOW_CONTROL_LIMITS)


@kernel
def _gather(state, slot, snd_pos, window):
    """Put datagrams straight from the term into the outbox.

    Returns: how many; `state.ends[i]` is the position after datagram i
    """
    pub = state.publications[slot]
    log = bytes_at(pub.log_address, pub.log_length)
    base = position.index(snd_pos, pub.bits) * pub.term_length
    offset = position.term_offset(snd_pos, pub.term_length)
    count = 0
    # Only a pad's header is charged against the window, so snd-pos may pass snd-lmt by a pad.
    while count < pub.max_messages_per_send and window > 0 and offset < pub.term_length:
        limit = min(window, pub.mtu)
        available, padding = scanner.scan(log, base, pub.term_length, offset, limit)
        if available <= 0:
            if available < 0 and count == 0:
                _on_held_back(state, slot)
            break
        transport.set_outgoing(state.outbox, count, pub.log_address + base + offset, available)
        offset += available + padding
        window -= available
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
        _on_held_back(state, slot)
        return 0
    count = _gather(state, slot, snd_pos, window)
    if count == 0:
        return 0
    endpoint = state.endpoints[pub.endpoint]
    sent = transport.send_gathered(
        endpoint.fd, state.outbox, 0, count, endpoint.name, endpoint.name_length, state.links
    )
    if sent < count:
        counters.add_atomic(values, system_counters.SHORT_SENDS, 1)
        if sent < 0:
            _report_failure(state, pub.endpoint, sent)
    if sent <= 0:
        return 0
    sent_bytes = 0
    for index in range(sent):
        sent_bytes += transport.outgoing_length(state.outbox, index)
    counters.set_release(values, pub.snd_pos_id, state.ends[sent - 1])
    counters.add(values, system_counters.BYTES_SENT, sent_bytes)
    pub.last_send_ns = now_ns
    pub.is_limit_watched = 1
    return sent_bytes


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
    if pub.is_end_of_stream and pub.is_revoked:
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
    if send_control(state, pub.endpoint, length):
        counters.add(state.counters, system_counters.BYTES_SENT, length)
    counters.increment(state.counters, system_counters.HEARTBEATS_SENT)


@kernel
def refresh_connected(state, slot):
    """Tell clients through the log's metadata whether anybody listens."""
    pub = state.publications[slot]
    listens = pub.receivers_count > 0 or (pub.spies_simulate_connection and pub.has_spies)
    log = bytes_at(pub.log_address, pub.log_length)
    at = pub.meta_at + descriptor.IS_CONNECTED
    if get_i32(log, at) != int(listens):
        put_i32_release(log, at, int(listens))


@kernel
def _follow_receivers(state, slot, now_ns):
    """An idle turn: receivers may have gone, and spies may carry the stream alone."""
    pub = state.publications[slot]
    values = state.counters
    if pub.spies_simulate_connection and pub.has_spies and pub.receivers_count == 0:
        snd_pos = max(counters.get(values, pub.snd_pos_id), pub.max_spy_position)
        counters.set_release(values, pub.snd_pos_id, snd_pos)
        counters.set_release(values, pub.snd_lmt_id, snd_pos)
    else:
        limit = counters.get(values, pub.snd_lmt_id)
        idle_limit = flow_control.limit_when_idle(pub.flow_control, limit)
        if idle_limit != limit:
            counters.set_release(values, pub.snd_lmt_id, idle_limit)
    count = flow_control.expire(
        state.receivers, slot, pub.receivers_count, pub.connection_timeout_ns, now_ns
    )
    if count != pub.receivers_count:
        pub.receivers_count = count
        publication.set_has_receivers_release(state.words, slot, int(count > 0))
        refresh_connected(state, slot)


@kernel
def resend(state, slot, term_id, term_offset, length):
    """Send a range of a term again, as far as it is still in reach; partial frames are not sent.

    Aeron checks only where the range begins; we also keep its end behind snd-pos, so that a forged
    NAK cannot pull out frames beyond the receivers' window.
    """
    pub = state.publications[slot]
    snd_pos = counters.get(state.counters, pub.snd_pos_id)
    begin = position.of(term_id, term_offset, pub.bits, pub.initial_term_id)
    message_length = min(pub.term_length // 8, MESSAGE_LENGTH_MAX)
    if not snd_pos - pub.term_length // 2 - message_length <= begin < snd_pos:
        return
    log = bytes_at(pub.log_address, pub.log_length)
    base = position.index(begin, pub.bits) * pub.term_length
    endpoint = state.endpoints[pub.endpoint]
    offset, remaining, resent = term_offset, min(length, snd_pos - begin), 0
    while remaining > 0 and offset < pub.term_length:
        limit = min(pub.mtu, remaining)
        available, padding = scanner.scan(log, base, pub.term_length, offset, limit)
        if available <= 0:
            break
        transport.set_outgoing(state.outbox, 0, pub.log_address + base + offset, available)
        sent = transport.send_gathered(
            endpoint.fd, state.outbox, 0, 1, endpoint.name, endpoint.name_length, state.links
        )
        if sent != 1:
            counters.add_atomic(state.counters, system_counters.SHORT_SENDS, 1)
            break
        offset += available + padding
        remaining -= available + padding
        resent += available + padding
    if resent > 0:
        counters.increment(state.counters, system_counters.RETRANSMITS_SENT)
        counters.add(state.counters, system_counters.RETRANSMITTED_BYTES, resent)


@kernel
def on_nak(state, slot, term_id, term_offset, length, now_ns):
    """Answer a request for a range of a term, unless it was answered a moment ago."""
    pub = state.publications[slot]
    window = min(INITIAL_WINDOW_LENGTH, pub.term_length // 2) * pub.retransmit_window_multiple
    length = min(length, pub.term_length - term_offset, window)
    if length <= 0:
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
        resend(state, slot, term_id, term_offset, length)


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
            resend(state, slot, rec.term_id, rec.term_offset, rec.length)
        if rec.state == retransmit_handler.FREE:
            pub.resend_count -= 1
