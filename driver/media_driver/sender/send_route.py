"""Sends a publication's frames to one address, to all destinations, or to the requester of a
response stream.

                      +--> the channel's address         plain, multicast
    outbox, scratch --+--> each destination              multi-destination, in round-robin order
                      +--> the requester                 response channels, once it is known

If sending to one destination fails, the other destinations still receive the datagrams. However,
the datagrams count as not sent and are sent again to all. After a transient error, the destination
misses the datagrams and will send a NAK. Datagrams are sent as GSO packets if possible. If the
route refuses GSO packets, the endpoint sends single datagrams for `GSO_RETRY_INTERVAL_NS`, then
tries GSO again. Source: spec 4.9 and 4.10, Aeron 1.53.
"""

from windtunnel.driver.base.system import NS_PER_SECOND
from windtunnel.driver.cnc import counters
from windtunnel.driver.kernels.jit import kernel
from windtunnel.driver.media import segmentation, transport
from windtunnel.driver.media_driver.agent import system_counters
from windtunnel.driver.media_driver.sender import destination_tracker, sender_events
from windtunnel.driver.media_driver.sender import network_publication as publication
from windtunnel.driver.media_driver.sender.sender_state import GSO_REFUSED, SEND_FAILED

GSO_RETRY_INTERVAL_NS = 10 * NS_PER_SECOND
"""Time until GSO is tried again. Routes change rarely, and each refusal costs a system call."""


@kernel
def send_gathered(state, slot, count, now_ns):
    """Send the first `count` datagrams of the outbox to the publication's destinations.

    Returns: the number of datagrams that count as sent, in order, or a negative errno if sending to
             a single address failed
    """
    pub = state.publications[slot]
    endpoint = state.endpoints[pub.endpoint]
    if pub.route == publication.TO_CHANNEL:
        sent = _send(state, pub.endpoint, count, endpoint.name, endpoint.name_length, now_ns)
    elif pub.route == publication.TO_DESTINATIONS:
        return _gathered_to_all(state, pub.endpoint, count, now_ns)
    elif pub.requester_length > 0:
        sent = _send(state, pub.endpoint, count, pub.requester, pub.requester_length, now_ns)
    else:
        return 0
    if sent < 0:
        sender_events.put_event_if_empty(state, SEND_FAILED, pub.endpoint, sent)
    return sent


@kernel
def _send(state, endpoint_slot, count, name, name_length, now_ns):
    """Send datagrams of the outbox to one address. Returns the number sent, or a negative errno."""
    endpoint = state.endpoints[endpoint_slot]
    fd = endpoint.fd
    is_gso_allowed = state.agent[0].gso_enabled != 0 and now_ns - endpoint.gso_retry_ns >= 0
    if is_gso_allowed and count > 1 and fd >= 0:
        sent = transport.send_segmented(fd, state.outbox, 0, count, name, name_length)
        if not segmentation.is_refusal(sent):
            return sent
        _on_gso_refused(state, endpoint_slot, sent, now_ns)
    return transport.send_gathered(fd, state.outbox, 0, count, name, name_length, state.links)


@kernel
def _on_gso_refused(state, endpoint_slot, error, now_ns):
    """Disable GSO on an endpoint for a while after a GSO packet could not be sent. Reports the
    first such failure of each endpoint to the conductor.
    """
    endpoint = state.endpoints[endpoint_slot]
    endpoint.gso_retry_ns = now_ns + GSO_RETRY_INTERVAL_NS
    endpoint.gso_refusals += 1
    if endpoint.is_gso_refusal_reported == 0:
        endpoint.is_gso_refusal_reported = int(
            sender_events.put_event(state, GSO_REFUSED, endpoint_slot, error, 0, 0)
        )


@kernel
def send_frame(state, slot, length, now_ns):
    """Send the frame in `state.scratch`. Returns whether the whole frame was sent."""
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
        sender_events.put_event_if_empty(state, SEND_FAILED, pub.endpoint, result)
    elif result < length:
        counters.add_atomic(state.counters, system_counters.SHORT_SENDS, 1)
    return result == length


@kernel
def _first_destination(endpoint):
    """Return the index of the destination that a round-robin send starts with."""
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
            sent = _send(state, endpoint_slot, count, rec.name, rec.name_length, now_ns)
            if sent < 0:
                sender_events.put_event_if_empty(state, SEND_FAILED, endpoint_slot, sent)
                result = 0
    if has_silent:
        _expire(state, endpoint_slot, now_ns)
    return result


@kernel
def _frame_to_all(state, endpoint_slot, length, now_ns):
    """Send the frame in `state.scratch` to all destinations. Returns `length`, whatever a
    destination refused: it gets the next such frame, and as in the C driver this is no short send.
    """
    endpoint = state.endpoints[endpoint_slot]
    is_dynamic = endpoint.destinations_mode == destination_tracker.DYNAMIC
    total, first = endpoint.destinations_count, _first_destination(endpoint)
    row = endpoint_slot * destination_tracker.DESTINATIONS_MAX
    has_silent = False
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
                sender_events.put_event_if_empty(state, SEND_FAILED, endpoint_slot, sent)
    if has_silent:
        _expire(state, endpoint_slot, now_ns)
    return length


@kernel
def _expire(state, endpoint_slot, now_ns):
    destination_tracker.expire(
        state.endpoints, state.destinations, endpoint_slot, state.counters, now_ns
    )
