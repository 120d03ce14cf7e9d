"""The ways out of a publication: to the one address of its channel, to all destinations of it, or
to whoever asked for a response.

                      +--> the peer                      plain, multicast
    outbox, scratch --+--> each destination in turn      multi-destination; another is first
                      +--> the requester                 response channels, once there is one

A destination that refuses a datagram does not keep it from the others; but the datagrams then count
as not sent, and all get them again. One that is only full for a moment misses them, and will NAK.
Source: spec 4.9 and 4.10, Aeron 1.53.
"""

from windtunnel.driver.cnc import counters
from windtunnel.driver.kernels.jit import kernel
from windtunnel.driver.media import transport
from windtunnel.driver.media_driver.agent import system_counters
from windtunnel.driver.media_driver.sender import destination_tracker, sender_events
from windtunnel.driver.media_driver.sender import network_publication as publication
from windtunnel.driver.media_driver.sender.sender_state import SEND_FAILED


@kernel
def send_gathered(state, slot, count, now_ns):
    """Send the first `count` entries of the outbox.

    Returns: how many of them count as sent, in order, or the negative errno of a channel with one
             address
    """
    pub = state.publications[slot]
    endpoint = state.endpoints[pub.endpoint]
    if pub.route == publication.TO_CHANNEL:
        sent = transport.send_gathered(
            endpoint.fd, state.outbox, 0, count, endpoint.name, endpoint.name_length, state.links
        )
    elif pub.route == publication.TO_DESTINATIONS:
        return _gathered_to_all(state, pub.endpoint, count, now_ns)
    elif pub.requester_length > 0:
        sent = transport.send_gathered(
            endpoint.fd, state.outbox, 0, count, pub.requester, pub.requester_length, state.links
        )
    else:
        return 0
    if sent < 0:
        sender_events.complain(state, SEND_FAILED, pub.endpoint, sent)
    return sent


@kernel
def send_frame(state, slot, length, now_ns):
    """Send the frame in `state.scratch`. Returns whether all of it left."""
    pub = state.publications[slot]
    endpoint = state.endpoints[pub.endpoint]
    result = 0
    if pub.route == publication.TO_CHANNEL:
        result = transport.send_frame(
            endpoint.fd, state.scratch, 0, length, endpoint.name, endpoint.name_length, state.links
        )
    elif pub.route == publication.TO_DESTINATIONS:
        result = _frame_to_all(state, pub.endpoint, length, now_ns)
    elif pub.requester_length > 0:
        result = transport.send_frame(
            endpoint.fd, state.scratch, 0, length, pub.requester, pub.requester_length, state.links
        )
    if result < 0:
        sender_events.complain(state, SEND_FAILED, pub.endpoint, result)
    elif result < length:
        counters.add_atomic(state.counters, system_counters.SHORT_SENDS, 1)
    return result == length


@kernel
def _first_destination(endpoint):
    """Which destination is served first this time."""
    first = endpoint.destinations_first
    if first >= endpoint.destinations_count:
        first = 0
    endpoint.destinations_first = first + 1
    return first


@kernel
def _gathered_to_all(state, endpoint_slot, count, now_ns):
    endpoint = state.endpoints[endpoint_slot]
    is_dynamic = endpoint.destinations_mode == destination_tracker.DYNAMIC
    total, first = endpoint.destinations_count, _first_destination(endpoint)
    row = endpoint_slot * destination_tracker.DESTINATIONS_MAX
    result, has_silent = count, False
    for step in range(total):
        index = first + step
        rec = state.destinations[row + (index if index < total else index - total)]
        if is_dynamic and destination_tracker.is_silent(rec, now_ns):
            has_silent = True
        elif rec.name_length > 0:
            sent = transport.send_gathered(
                endpoint.fd, state.outbox, 0, count, rec.name, rec.name_length, state.links
            )
            if sent < 0:
                sender_events.complain(state, SEND_FAILED, endpoint_slot, sent)
                result = 0
    if has_silent:
        _expire(state, endpoint_slot, now_ns)
    return result


@kernel
def _frame_to_all(state, endpoint_slot, length, now_ns):
    endpoint = state.endpoints[endpoint_slot]
    is_dynamic = endpoint.destinations_mode == destination_tracker.DYNAMIC
    total, first = endpoint.destinations_count, _first_destination(endpoint)
    row = endpoint_slot * destination_tracker.DESTINATIONS_MAX
    result, has_silent = length, False
    for step in range(total):
        index = first + step
        rec = state.destinations[row + (index if index < total else index - total)]
        if is_dynamic and destination_tracker.is_silent(rec, now_ns):
            has_silent = True
        elif rec.name_length > 0:
            sent = transport.send_frame(
                endpoint.fd, state.scratch, 0, length, rec.name, rec.name_length, state.links
            )
            if sent < 0:
                sender_events.complain(state, SEND_FAILED, endpoint_slot, sent)
            result = max(sent, 0)
    if has_silent:
        _expire(state, endpoint_slot, now_ns)
    return result


@kernel
def _expire(state, endpoint_slot, now_ns):
    destination_tracker.expire(
        state.endpoints, state.destinations, endpoint_slot, state.counters, now_ns
    )
