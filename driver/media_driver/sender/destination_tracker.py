"""The destinations of multi-destination channels, which the sender tracks for each send
endpoint.

    MANUAL    clients add and remove destinations, which do not expire; their names are
              re-resolved if no status message is received
    DYNAMIC   the source of each status message is a destination until 5 s pass without another

A destination is identified by its address until its first status message, then by its receiver id
and port, which remain the same when the address changes. A dynamic destination is also identified
by its address and port, whatever the receiver id: Aeron adds one for each id, so that forged ids
multiply what an address is sent. A destination without an address (an unresolved name) occupies a
record, but nothing is sent to it. The first `destinations_count` records of a row are in use.

Any source of status messages may become a dynamic destination, but only one with an accepted status
message for a live publication is *proven*. When there is no free record, for the channel or for one
IP address, a new destination replaces the unproven one that has been silent for longest. Source:
spec 4.9, Aeron 1.53.
"""

import numpy as np

from windtunnel.driver.base.system import NS_PER_SECOND
from windtunnel.driver.channel import socket_address
from windtunnel.driver.channel.socket_address import NAME_LENGTH_MAX
from windtunnel.driver.cnc import counters
from windtunnel.driver.kernels.jit import kernel

MANUAL = 1
DYNAMIC = 2

DESTINATIONS_MAX = 256
"""Maximum number of destinations of a channel. Aeron has no limit. This one limits amplification
by forged status messages. The conductor refuses additional manual destinations."""
HOST_DESTINATIONS_MAX = 64
"""Maximum number of dynamic destinations with one IP address, so no host can use all records."""
TIMEOUT_NS = 5 * NS_PER_SECOND
"""Time without a status message until a destination counts as silent. Source: Aeron 1.53, not
configurable."""

NULL_REGISTRATION_ID = -1
NOT_FOUND = -1

DESTINATION = np.dtype(
    (
        np.record,
        [
            ("registration_id", "i8"),  # of the add command; NULL for a dynamic destination
            ("has_receiver_id", "i8"),
            ("receiver_id", "i8"),
            ("last_activity_ns", "i8"),
            ("accepted_ns", "i8"),  # time of the last accepted status message for a publication
            ("name_length", "i8"),  # 0: no address yet
            ("name", "u1", (NAME_LENGTH_MAX,)),
            ("pad", "u1", (4,)),
        ],
    )
)


def make_destinations(endpoints: int) -> np.recarray:
    """Create an array of zeroed destination records, DESTINATIONS_MAX per endpoint."""
    return np.zeros(endpoints * DESTINATIONS_MAX, dtype=DESTINATION).view(np.recarray)


@kernel
def _publish_count(endpoint, values):
    if endpoint.destinations_id >= 0:
        counters.set_release(values, endpoint.destinations_id, endpoint.destinations_count)


@kernel
def _is_same_port(rec, name):
    return socket_address.port_of(rec.name) == socket_address.port_of(name)


@kernel
def _matches(rec, receiver_id, name, name_length):
    if rec.has_receiver_id and rec.receiver_id == receiver_id and _is_same_port(rec, name):
        return True
    if rec.has_receiver_id and rec.registration_id != NULL_REGISTRATION_ID:
        return False
    return socket_address.same(rec.name, rec.name_length, name, name_length)


@kernel
def find(endpoints, destinations, slot, receiver_id, name, name_length):
    """Return the index of the destination that matches a receiver id or address, or NOT_FOUND."""
    first = slot * DESTINATIONS_MAX
    for index in range(first, first + endpoints[slot].destinations_count):
        if _matches(destinations[index], receiver_id, name, name_length):
            return index
    return NOT_FOUND


@kernel
def add(endpoints, destinations, slot, values, registration_id, name, name_length, now_ns):
    """Append a destination to an endpoint. Returns its index, or NOT_FOUND if all of the endpoint's
    records are in use.
    """
    endpoint = endpoints[slot]
    if endpoint.destinations_count == DESTINATIONS_MAX:
        return NOT_FOUND
    index = slot * DESTINATIONS_MAX + endpoint.destinations_count
    _fill(destinations[index], registration_id, name, name_length, now_ns)
    endpoint.destinations_count += 1
    _publish_count(endpoint, values)
    return index


@kernel
def _fill(rec, registration_id, name, name_length, now_ns):
    rec.registration_id = registration_id
    rec.has_receiver_id = 0
    rec.receiver_id = 0
    rec.last_activity_ns = now_ns
    rec.accepted_ns = now_ns - TIMEOUT_NS - 1
    rec.name_length = socket_address.copy_name(rec.name, name, name_length)


@kernel
def _add_dynamic(endpoints, destinations, slot, values, name, name_length, now_ns):
    """Add a dynamic destination. If the endpoint or the IP address already has the maximum number
    of destinations, replace one that has not acknowledged a live publication recently.
    """
    first = slot * DESTINATIONS_MAX
    total = endpoints[slot].destinations_count
    host_count = 0
    oldest = host_oldest = NOT_FOUND
    for index in range(first, first + total):
        rec = destinations[index]
        is_same_host = socket_address.same_host(rec.name, rec.name_length, name, name_length)
        host_count += int(is_same_host)
        if now_ns - rec.accepted_ns <= TIMEOUT_NS:
            continue
        age_ns = now_ns - rec.last_activity_ns
        if oldest == NOT_FOUND or age_ns > now_ns - destinations[oldest].last_activity_ns:
            oldest = index
        if is_same_host and (
            host_oldest == NOT_FOUND or age_ns > now_ns - destinations[host_oldest].last_activity_ns
        ):
            host_oldest = index
    if host_count < HOST_DESTINATIONS_MAX and total < DESTINATIONS_MAX:
        return add(
            endpoints, destinations, slot, values, NULL_REGISTRATION_ID, name, name_length, now_ns
        )
    replaced = oldest if host_count < HOST_DESTINATIONS_MAX else host_oldest
    if replaced != NOT_FOUND:
        _fill(destinations[replaced], NULL_REGISTRATION_ID, name, name_length, now_ns)
    return replaced


@kernel
def _remove_at(endpoints, destinations, slot, index):
    endpoint = endpoints[slot]
    endpoint.destinations_count -= 1
    destinations[index] = destinations[slot * DESTINATIONS_MAX + endpoint.destinations_count]


@kernel
def remove(endpoints, destinations, slot, values, name, name_length):
    """Remove the most recently added destination with the socket address `name`. An empty `name`
    stands for a destination without an address.
    """
    first = slot * DESTINATIONS_MAX
    for index in range(first + endpoints[slot].destinations_count - 1, first - 1, -1):
        rec = destinations[index]
        is_blank = name_length == 0 and rec.name_length == 0
        if is_blank or socket_address.same(rec.name, rec.name_length, name, name_length):
            _remove_at(endpoints, destinations, slot, index)
            _publish_count(endpoints[slot], values)
            return


@kernel
def remove_by_id(endpoints, destinations, slot, values, registration_id):
    """Remove the destination with the given registration id."""
    first = slot * DESTINATIONS_MAX
    for index in range(first + endpoints[slot].destinations_count - 1, first - 1, -1):
        if destinations[index].registration_id == registration_id:
            _remove_at(endpoints, destinations, slot, index)
            _publish_count(endpoints[slot], values)
            return


@kernel
def change_address(endpoints, destinations, slot, registration_id, name, name_length):
    """Set the address of a destination after its name was re-resolved."""
    first = slot * DESTINATIONS_MAX
    for index in range(first, first + endpoints[slot].destinations_count):
        rec = destinations[index]
        if rec.registration_id == registration_id:
            rec.name_length = socket_address.copy_name(rec.name, name, name_length)


@kernel
def on_status(
    endpoints, destinations, slot, values, receiver_id, name, name_length, is_accepted, now_ns
):
    """Process a valid status message: update the destination that sent it, or add a new destination
    in DYNAMIC mode.

    `is_accepted` is whether the message acknowledges a position of a live publication.

    Returns: whether a new destination replaced another one, and may soon be replaced itself
    """
    index = find(endpoints, destinations, slot, receiver_id, name, name_length)
    is_replacement = False
    if index == NOT_FOUND:
        is_addressable = socket_address.is_name(name, name_length)
        if endpoints[slot].destinations_mode != DYNAMIC or not is_addressable:
            return False
        total = endpoints[slot].destinations_count
        index = _add_dynamic(endpoints, destinations, slot, values, name, name_length, now_ns)
        if index == NOT_FOUND:
            return False
        is_replacement = endpoints[slot].destinations_count == total
    rec = destinations[index]
    rec.has_receiver_id = 1
    rec.receiver_id = receiver_id
    rec.last_activity_ns = now_ns
    if is_accepted:
        rec.accepted_ns = now_ns
    return is_replacement


@kernel
def is_silent(rec, now_ns):
    """Return whether the last status message from a destination is older than the timeout."""
    return now_ns - rec.last_activity_ns > TIMEOUT_NS


@kernel
def expire(endpoints, destinations, slot, values, now_ns):
    """Remove dynamic destinations that have sent no status message within the timeout."""
    index = slot * DESTINATIONS_MAX
    while index < slot * DESTINATIONS_MAX + endpoints[slot].destinations_count:
        if is_silent(destinations[index], now_ns):
            _remove_at(endpoints, destinations, slot, index)
            _publish_count(endpoints[slot], values)
        else:
            index += 1


@kernel
def next_silent(endpoints, destinations, slot, after, now_ns):
    """Return the index of the first silent manual destination after index `after`, or NOT_FOUND.

    To begin, set `after` to the index before the first record of the row. Resets the activity time
    of the destination, which limits reports to one every 5 s.
    """
    first = slot * DESTINATIONS_MAX
    for index in range(max(after + 1, first), first + endpoints[slot].destinations_count):
        if is_silent(destinations[index], now_ns):
            destinations[index].last_activity_ns = now_ns
            return index
    return NOT_FOUND
