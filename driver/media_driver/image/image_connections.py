"""The connections of an image, one for each socket on which its stream is received.

The first frame on a socket creates a connection, as does adding a destination to the subscription.
Feedback is sent to a connection for five seconds after its last activity. A connection counts as an
active transport if it received a frame within the image liveness timeout. Source: spec 3.7, Aeron
1.53 (the C driver where the two differ).

The source address of a frame may be forged. Feedback to a source is therefore limited to three
times the bytes of its frames; a configured control address has no limit:

    SETUP +120   data, heartbeat, RTTM +3 * length   SM, NAK, RTTM -length   at most 4 KiB are kept,
                                                                             or 32 KiB for all gaps

NAKs leave a third of what there was after the last frame, but at most 1 KiB, for status messages: a
sender that pauses and hears none of them would lose its receiver.
"""

from windtunnel.driver.base.atomics import bytes_at, copy, put_i32_release
from windtunnel.driver.base.system import NS_PER_SECOND
from windtunnel.driver.channel.socket_address import NAME_LENGTH_MAX
from windtunnel.driver.kernels.jit import kernel
from windtunnel.driver.logbuffer import descriptor
from windtunnel.driver.media import transport
from windtunnel.driver.media_driver.image import gap_rows
from windtunnel.driver.media_driver.image import publication_image as image
from windtunnel.driver.wire import nak, setup

CONNECTION_TIMEOUT_NS = 5 * NS_PER_SECOND
"""Time after a connection's last packet during which feedback is still sent to the connection.
Source: Aeron 1.53 C."""

BYTES_OUT_PER_BYTE_IN = 3
UNSPENT_BYTES_FIRST = BYTES_OUT_PER_BYTE_IN * setup.LENGTH
UNSPENT_BYTES_MAX = 4_096
"""More than the feedback of one connection timeout, and than the NAKs for one gap."""
STATUS_BYTES_MAX = 1_024
"""More than the status messages of one connection timeout, at the default interval."""
UNSPENT_BYTES_MAX_ALL_GAPS = UNSPENT_BYTES_MAX + gap_rows.GAPS_MAX * nak.LENGTH
"""The maximum of an image that sends NAKs for all gaps: a NAK more for each gap that it tracks."""


@kernel
def track(state, slot, transport_slot, length, inbox_index, now_ns):
    """Record that a connection received a frame, with the frame's source, length and time."""
    number = state.endpoints[transport_slot].connection
    connection = state.connections[slot * image.CONNECTIONS_MAX + number]
    if connection.is_known == 0:
        _add(state, slot, transport_slot, now_ns)
    if connection.control_length == 0:
        copy(connection.control, 0, state.inbox.names[inbox_index], 0, NAME_LENGTH_MAX)
        connection.control_length = transport.source_length(state.inbox, inbox_index)
    connection.last_activity_ns = now_ns
    connection.last_frame_ns = now_ns
    earn(state.images[slot], connection, length)


@kernel
def earn(rec, connection, length):
    """Increase the number of feedback bytes allowed on a connection of an image, after a frame of
    `length` bytes from its source.
    """
    unspent_bytes = connection.unspent_bytes + BYTES_OUT_PER_BYTE_IN * length
    limit = UNSPENT_BYTES_MAX_ALL_GAPS if rec.is_nak_all_gaps else UNSPENT_BYTES_MAX
    connection.unspent_bytes = min(unspent_bytes, limit)
    connection.status_bytes = min(connection.unspent_bytes // 3, STATUS_BYTES_MAX)


@kernel
def earn_on(state, slot, transport_slot, length):
    """Increase the number of feedback bytes allowed on the connection between an image and a
    transport, after a frame of `length` bytes.
    """
    number = state.endpoints[transport_slot].connection
    connection = state.connections[slot * image.CONNECTIONS_MAX + number]
    earn(state.images[slot], connection, length)


@kernel
def spend(state, connection, length, count, is_nak):
    """Return how many of `count` frames of `length` bytes may be sent on a connection, and count
    their bytes as sent. NAKs leave the bytes that are kept for status messages.
    """
    if state.endpoints[connection.transport].has_control:
        return count
    kept_bytes = connection.status_bytes if is_nak else 0
    permitted = min(count, max(connection.unspent_bytes - kept_bytes, 0) // length)
    connection.unspent_bytes -= permitted * length
    if not is_nak:
        connection.status_bytes = max(connection.status_bytes - permitted * length, 0)
    return permitted


@kernel
def _add(state, slot, transport_slot, now_ns):
    endpoint = state.endpoints[transport_slot]
    rec = state.images[slot]
    connection = state.connections[slot * image.CONNECTIONS_MAX + endpoint.connection]
    connection.is_known = 1
    connection.transport = transport_slot
    connection.control_length = 0
    if endpoint.has_control:
        copy(connection.control, 0, endpoint.control, 0, NAME_LENGTH_MAX)
        connection.control_length = endpoint.control_length
    connection.last_activity_ns = now_ns
    connection.last_frame_ns = image.NEVER_NS
    connection.unspent_bytes = connection.status_bytes = 0
    connection.is_eos = 0
    connection.eos_position = 0
    rec.connection_count = max(rec.connection_count, endpoint.connection + 1)


@kernel
def on_transport_added(state, transport_slot, now_ns):
    """Add a connection for a new destination to every image on the destination's endpoint."""
    serves = state.endpoints[transport_slot].serves
    if serves == transport_slot:
        return
    for index in range(state.agent[0].image_count):
        slot = state.active[index]
        if state.images[slot].endpoint == serves:
            _add(state, slot, transport_slot, now_ns)


@kernel
def on_transport_removed(state, transport_slot, now_ns):
    """Remove the connection of a removed destination from every image on the destination's
    endpoint.
    """
    endpoint = state.endpoints[transport_slot]
    for index in range(state.agent[0].image_count):
        slot = state.active[index]
        if state.images[slot].endpoint == endpoint.serves:
            row = slot * image.CONNECTIONS_MAX + endpoint.connection
            state.connections[row].is_known = 0
            state.connections[row].control_length = 0
            publish_active_transports(state, slot, now_ns)


@kernel
def reset(state, slot):
    """Clear the connections of a removed image."""
    first = slot * image.CONNECTIONS_MAX
    for row in range(first, first + image.CONNECTIONS_MAX):
        state.connections[row].is_known = 0
        state.connections[row].is_eos = 0
        state.connections[row].control_length = 0


@kernel
def is_live(connection, now_ns):
    """Return whether a connection was active recently and feedback can be sent to it."""
    if connection.is_known == 0 or connection.control_length == 0:
        return False
    return now_ns - connection.last_activity_ns < CONNECTION_TIMEOUT_NS


@kernel
def on_end_of_stream(state, slot, transport_slot, position):
    """Record that the stream has ended on a connection. Returns whether it has ended on all
    connections.
    """
    rec = state.images[slot]
    first = slot * image.CONNECTIONS_MAX
    row = first + state.endpoints[transport_slot].connection
    state.connections[row].is_eos = 1
    state.connections[row].eos_position = position
    for index in range(first, first + rec.connection_count):
        if state.connections[index].is_known and state.connections[index].is_eos == 0:
            return False
    return True


@kernel
def end_position(state, slot):
    """Return the end position of a stream: the highest end position received on any connection."""
    first = slot * image.CONNECTIONS_MAX
    furthest = 0
    for index in range(first, first + state.images[slot].connection_count):
        if state.connections[index].is_known:
            furthest = max(furthest, state.connections[index].eos_position)
    return furthest


@kernel
def publish_active_transports(state, slot, now_ns):
    """Write an image's number of active transports to its log metadata."""
    rec = state.images[slot]
    first = slot * image.CONNECTIONS_MAX
    alive = 0
    for index in range(first, first + rec.connection_count):
        connection = state.connections[index]
        quiet_ns = now_ns - connection.last_frame_ns
        if connection.is_known and quiet_ns < state.agent[0].liveness_timeout_ns:
            alive += 1
    log = bytes_at(rec.log_address, rec.log_length)
    put_i32_release(log, rec.meta_at + descriptor.ACTIVE_TRANSPORT_COUNT, alive)
