"""Inserts received packets into an image and processes heartbeats.

    last status position        + term_length / 2
       |------------------------------|  one that ends after it is an over-run: counted, dropped
       |   <- only packets that start at or after it are inserted; earlier ones are under-runs

A rejected image drops all packets. `image_feedback` sends the feedback.
Source: spec 3.3 and 3.8, Aeron 1.53 (the C driver where the two differ).
"""

from windtunnel.driver.base.arith import wrap_i32
from windtunnel.driver.base.atomics import bytes_at, put_i64_release, put_u8_release
from windtunnel.driver.cnc import counters
from windtunnel.driver.kernels.jit import kernel
from windtunnel.driver.logbuffer import descriptor, position, rebuilder
from windtunnel.driver.media_driver.agent import system_counters
from windtunnel.driver.media_driver.image import image_cleaning, image_connections, written_pages
from windtunnel.driver.media_driver.image import publication_image as image
from windtunnel.driver.media_driver.receiver import gap_filling, receive_timestamps
from windtunnel.driver.wire import data, frame_type, header


@kernel
def insert_packet(state, slot, transport_slot, at, length, inbox_index, now_ns):
    """Insert a DATA or PAD datagram into an image, or process a heartbeat.

    Shapes:  the datagram is `state.inbox.slots[at : at + length]`
    """
    rec = state.images[slot]
    packet = state.inbox.slots
    term_id = data.term_id(packet, at)
    term_offset = data.term_offset(packet, at)
    if wrap_i32(term_id - rec.initial_term_id) < 0 or rec.is_rejected:
        return
    payload_length = data.validate(packet, at, length, rec.term_length)
    if payload_length < 0:
        counters.add_atomic(state.counters, system_counters.INVALID_PACKETS, 1)
        return
    if rec.is_stamping and payload_length > 0:
        _stamp(state, rec, at, length)
    begin = position.of(term_id, term_offset, rec.bits, rec.initial_term_id)
    end = begin + payload_length
    if end > rec.over_run_threshold:
        counters.increment(state.counters, system_counters.FLOW_CONTROL_OVER_RUNS)
    elif data.is_heartbeat(packet, at, length):
        if begin < max(0, rec.last_status_position - rec.term_length):
            counters.increment(state.counters, system_counters.FLOW_CONTROL_UNDER_RUNS)
            return
        image_connections.track(state, slot, transport_slot, length, inbox_index, now_ns)
        image.set_shared_release(state.words, slot, image.LAST_PACKET_NS, now_ns)
        _on_heartbeat(state, slot, transport_slot, begin, header.flags(packet, at))
    elif begin >= rec.last_status_position:
        number = state.endpoints[transport_slot].connection
        connection = state.connections[slot * image.CONNECTIONS_MAX + number]
        if connection.control_length > 0:
            # This is `track` for a known connection, inlined because calls are expensive here.
            connection.last_activity_ns = now_ns
            connection.last_frame_ns = now_ns
            image_connections.earn(rec, connection, length)
        else:
            image_connections.track(state, slot, transport_slot, length, inbox_index, now_ns)
        image.set_shared_release(state.words, slot, image.LAST_PACKET_NS, now_ns)
        if rec.is_fill_delayed:
            gap_filling.on_datagram(state, slot, begin, end)
        write_frames(state, rec, begin, end, at, length)
    else:
        counters.increment(state.counters, system_counters.FLOW_CONTROL_UNDER_RUNS)
        if rec.is_fill_delayed:
            gap_filling.on_late_datagram(state, slot, begin)
        if end >= rec.last_status_position - rec.window_max:
            image_connections.track(state, slot, transport_slot, length, inbox_index, now_ns)


@kernel
def write_frames(state, rec, begin, end, at, length):
    """Write accepted frames to the log of an image, and move its high-water mark to their end.

    Shapes:  the frames are `state.inbox.slots[at : at + length]`; they begin at position `begin`
             and end at `end`, with the padding that is not sent
    """
    log = bytes_at(rec.log_address, rec.log_length)
    pages = bytes_at(rec.pages_address, rec.pages_length)
    base = position.index(begin, rec.bits) * rec.term_length
    term_offset = position.term_offset(begin, rec.term_length)
    image_cleaning.prepare(rec, begin, end)
    written_pages.mark(pages, base + term_offset, length)
    rebuilder.insert(log, base, term_offset, state.inbox.slots, at, length)
    # Insert before the counter moves, so that the frame below the high-water mark is visible.
    counters.propose_max_release(state.counters, rec.hwm_id, end)


@kernel
def _stamp(state, rec, at, length):
    packet, time_ns = state.inbox.slots, state.agent[0].receive_time_ns
    receive_timestamps.stamp(packet, at, length, rec.media_stamp_offset, time_ns)
    receive_timestamps.stamp(packet, at, length, rec.channel_stamp_offset, time_ns)


@kernel
def _on_heartbeat(state, slot, transport_slot, begin, flags):
    rec = state.images[slot]
    is_ending = flags & frame_type.EOS != 0 and rec.is_end_of_stream == 0
    if is_ending and image_connections.on_end_of_stream(state, slot, transport_slot, begin):
        _end_stream(state, slot, flags & frame_type.REVOKED != 0)
    if begin > counters.get(state.counters, rec.hwm_id):
        # Evidence for older gaps, as data is; see gap_evidence.
        rec.datagram_count += 1
    image_cleaning.prepare(rec, begin, begin)
    counters.propose_max_release(state.counters, rec.hwm_id, begin)
    counters.increment(state.counters, system_counters.HEARTBEATS_RECEIVED)


@kernel
def _end_stream(state, slot, is_revoked):
    """Record the end of a stream in its log metadata, after the stream has ended on every
    connection.
    """
    rec = state.images[slot]
    eos_position = image_connections.end_position(state, slot)
    log = bytes_at(rec.log_address, rec.log_length)
    if is_revoked:
        put_u8_release(log, rec.meta_at + descriptor.IS_PUBLICATION_REVOKED, 1)
        counters.increment(state.counters, system_counters.PUBLICATION_IMAGES_REVOKED)
        image.set_shared_release(state.words, slot, image.IS_REVOKED, 1)
    put_i64_release(log, rec.meta_at + descriptor.END_OF_STREAM_POSITION, eos_position)
    image.set_shared_release(state.words, slot, image.IS_END_OF_STREAM, 1)
