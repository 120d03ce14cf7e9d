"""Reads a channel's status and the addresses of its sockets from the driver's counters.

    status counter (types 6 and 7)   -1 errored   0 initialising   1 active   2 closing
    local address (type 14)          key: 0 status counter id (i32)   4 length (i32)   8 address

Source: driver-protocol 8.3; Aeron 1.53, C client.
"""

import struct
from typing import Protocol

from windtunnel.driver.channel import uri, uri_param
from windtunnel.driver.cnc.counters_reader import CountersReader

ERRORED = -1
NO_ID_ALLOCATED = -1
INITIALISING = 0
ACTIVE = 1
CLOSING = 2

LOCAL_ADDRESS_TYPE_ID = 14
_ADDRESS = struct.Struct("<2i")


class HasChannel(Protocol):
    """The attributes of a publication or subscription that the functions of this module use."""

    channel: str
    channel_status_id: int
    is_closed: bool


def status(reader: CountersReader, item: HasChannel) -> int:
    """Return the status of a channel. IPC and spy channels have no sockets and are always ACTIVE.

    Returns one of the states above, or NO_ID_ALLOCATED if the item is closed.
    """
    if item.is_closed:
        return NO_ID_ALLOCATED
    if not 0 <= item.channel_status_id < reader.capacity:
        return ACTIVE
    return reader.value(item.channel_status_id)


def local_addresses(reader: CountersReader, item: HasChannel) -> list[str]:
    """Return the addresses to which a channel's sockets are bound, as `address:port`.

    The list is empty unless the channel is ACTIVE.
    """
    counter_id = item.channel_status_id
    if item.is_closed or not 0 <= counter_id < reader.capacity:
        return []
    if reader.value(counter_id) != ACTIVE:
        return []
    found = []
    for counter in reader:
        if counter.type_id != LOCAL_ADDRESS_TYPE_ID or counter.value != ACTIVE:
            continue
        owner_id, length = _ADDRESS.unpack_from(counter.key)
        end = _ADDRESS.size + length
        if owner_id == counter_id and 0 < length and end <= len(counter.key):
            found.append(counter.key[_ADDRESS.size : end].decode("ascii", "replace"))
    return found


def resolved_channel(reader: CountersReader, item: HasChannel) -> str | None:
    """Return the channel of a publication or subscription, with endpoint port 0 replaced by the
    port that the system chose.

    Returns None while the port is unknown, or the unchanged channel if its endpoint port is not 0.
    """
    parsed = uri.parse(item.channel)
    endpoint = parsed.get(uri_param.ENDPOINT)
    is_manual = parsed.get(uri_param.CONTROL_MODE) == "manual"
    if not parsed.is_udp or endpoint is None or is_manual or not endpoint.endswith(":0"):
        return item.channel
    addresses = local_addresses(reader, item)
    return str(parsed.with_param(uri_param.ENDPOINT, addresses[0])) if addresses else None
