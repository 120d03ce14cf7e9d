"""Inserts consecutive datagrams of a GRO packet into an image together.

    packet   | DATA 0 | DATA 1 | DATA 2 | DATA 3 | other |
    term     |<------- one copy, one release --->|

A sender that uses GSO sends parts of a term, which GRO combines again: each datagram continues the
previous one. Each frame is validated and each slot is checked, as for single datagrams. The state
of the image and its connection is updated once. Any other datagram is left to `dispatcher`, as are
those of images that write timestamps or fill gaps with a delay.
"""

from windtunnel.driver.base.atomics import bytes_at, get_i32_acquire
from windtunnel.driver.kernels.jit import kernel
from windtunnel.driver.logbuffer import position
from windtunnel.driver.media import receive_endpoint, stream_map, transport
from windtunnel.driver.media_driver.image import image_cleaning, image_connections
from windtunnel.driver.media_driver.image import publication_image as image
from windtunnel.driver.media_driver.receiver import image_receiver
from windtunnel.driver.wire import data, frame_type, header


@kernel
def insert(state, transport_slot, at, end, segment_length, inbox_index, now_ns):
    """Insert the first datagrams of a GRO packet, as many as continue each other in one term.

    Shapes:  the packet is `state.inbox.slots[at:end]`; its datagrams have `segment_length` bytes,
             the last may be shorter
    Returns: the offset in the inbox of the first datagram that was not inserted
    """
    packet = state.inbox.slots
    if transport.is_truncated(state.inbox, inbox_index):
        return at
    endpoint = state.endpoints[transport_slot].serves
    stream_id, session_id = data.stream_id(packet, at), data.session_id(packet, at)
    slot = stream_map.find(state.sessions, endpoint, stream_id, session_id)
    if slot < 0:
        return at
    rec = state.images[slot]
    if rec.is_rejected or rec.is_stamping or rec.is_fill_delayed:
        return at
    term_id, term_offset = data.term_id(packet, at), data.term_offset(packet, at)
    # Negative if the term is before the first one.
    begin = position.of(term_id, term_offset, rec.bits, rec.initial_term_id)
    if begin < rec.last_status_position:
        return at
    log = bytes_at(rec.log_address, rec.log_length)
    base = position.index(begin, rec.bits) * rec.term_length
    limit = at + rec.over_run_threshold - begin
    # Beyond everything received so far, slots may have old frames, which are overwritten.
    is_new = image_cleaning.is_beyond(rec, begin)
    reached = _end_of_run(
        log, base, packet, at, end, limit, segment_length, rec.term_length, is_new
    )
    length = reached - at
    if length == 0:
        return at
    receive_endpoint.set_last_activity_release(state.endpoint_words, transport_slot, now_ns)
    image_connections.track(state, slot, transport_slot, length, inbox_index, now_ns)
    image.set_shared_release(state.words, slot, image.LAST_PACKET_NS, now_ns)
    image_receiver.write_frames(state, rec, begin, begin + length, at, length)
    return reached


@kernel
def _is_data(packet, at, length):
    """Return whether a datagram begins with a valid header of a DATA or PAD frame."""
    return (
        header.check(packet, at, length) >= 0 and header.frame_type(packet, at) <= frame_type.DATA
    )


@kernel
def _end_of_run(log, base, packet, at, end, limit, segment_length, term_length, is_new):
    """Return the offset after the last datagram of the run that begins at `at`, which is at most
    `limit`.

    A heartbeat or a PAD, whose length in the term differs from the datagram's, is not part of it.
    """
    reached = at
    while reached < end:
        length = min(segment_length, end - reached)
        offset = data.term_offset(packet, at) + reached - at
        if reached + length > limit:
            break
        if not _is_data(packet, reached, length) or not _continues(packet, at, reached, offset):
            break
        if data.validate(packet, reached, length, term_length) != length:
            break
        # `validate` has checked that the datagram is within the term.
        if not is_new and get_i32_acquire(log, base + offset) != 0:
            break
        reached += length
    return reached


@kernel
def _continues(packet, at, reached, offset):
    """Return whether a datagram belongs to the stream, session and term of the first, at the term
    offset that follows.
    """
    return (
        data.term_offset(packet, reached) == offset
        and data.stream_id(packet, reached) == data.stream_id(packet, at)
        and data.session_id(packet, reached) == data.session_id(packet, at)
        and data.term_id(packet, reached) == data.term_id(packet, at)
    )
