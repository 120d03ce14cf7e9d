"""Allocates the counters of streams, channels and clients with Aeron's type ids, keys and labels.

    stream key:   registration id (i64) | session (i32) | stream (i32) | channel length (i32) |
                  channel
    channel key:  channel length (i32) | channel
    address key:  id of the channel's status counter (i32) | length (i32) | address text

Tools find streams by these keys and labels, which are therefore exactly those of Aeron. Source:
spec 8.2 and 8.3, Aeron 1.53.
"""

import struct
from collections.abc import Sequence
from contextlib import ExitStack

from windtunnel.driver.cnc.counters_manager import CountersManager

PUBLISHER_LIMIT = 1
SENDER_POSITION = 2
RECEIVER_HWM = 3
SUBSCRIBER_POSITION = 4
RECEIVER_POSITION = 5
SEND_CHANNEL_STATUS = 6
RECEIVE_CHANNEL_STATUS = 7
SENDER_LIMIT = 9
PER_IMAGE = 10
CLIENT_HEARTBEAT = 11
PUBLISHER_POSITION = 12
SENDER_BACK_PRESSURE = 13
LOCAL_SOCKET_ADDRESS = 14
FLOW_CONTROL_RECEIVERS = 17
DESTINATIONS = 18
SENDER_NAKS_RECEIVED = 19
RECEIVER_NAKS_SENT = 20
SENDER_RETRANSMIT_RANGES = 5_301
SENDER_BYTES_NOT_RESENT = 5_302
SENDER_ROUND_TRIP_TIME = 5_303
RECEIVER_GAPS_OPEN = 5_304
RECEIVER_OLDEST_GAP = 5_305
RECEIVER_NAK_RETRIES = 5_306
RECEIVER_REPAIR_TIME = 5_307
RECEIVER_GAPS_FILLED_EARLY = 5_308
"""Type ids that Aeron does not have. Aeron's own are below 1,000."""
SYSTEM = 0

STREAM_CHANNEL_LENGTH_MAX = 92
CHANNEL_LENGTH_MAX = 108

CHANNEL_INITIALIZING = 0
CHANNEL_ACTIVE = 1
CHANNEL_CLOSING = 2
CHANNEL_ERRORED = -1

NO_OWNER = -1

_NAMES = {
    PUBLISHER_LIMIT: "pub-lmt",
    SENDER_POSITION: "snd-pos",
    RECEIVER_HWM: "rcv-hwm",
    SUBSCRIBER_POSITION: "sub-pos",
    RECEIVER_POSITION: "rcv-pos",
    SENDER_LIMIT: "snd-lmt",
    SENDER_BACK_PRESSURE: "snd-bpe",
    FLOW_CONTROL_RECEIVERS: "fc-receivers",
    SENDER_NAKS_RECEIVED: "snd-naks-received",
    SENDER_RETRANSMIT_RANGES: "snd-retransmit-ranges",
    SENDER_BYTES_NOT_RESENT: "snd-bytes-not-resent",
    SENDER_ROUND_TRIP_TIME: "snd-rtt",
    RECEIVER_NAKS_SENT: "rcv-naks-sent",
    RECEIVER_GAPS_OPEN: "rcv-gaps-open",
    RECEIVER_OLDEST_GAP: "rcv-oldest-gap",
    RECEIVER_NAK_RETRIES: "rcv-nak-retries",
    RECEIVER_REPAIR_TIME: "rcv-repair-time",
    RECEIVER_GAPS_FILLED_EARLY: "rcv-gaps-filled-early",
}

_CHANNEL_NAMES = {
    SEND_CHANNEL_STATUS: "snd-channel",
    RECEIVE_CHANNEL_STATUS: "rcv-channel",
    DESTINATIONS: "mdc-num-dest",
}

NETWORK_COUNTERS = (
    PUBLISHER_POSITION,
    PUBLISHER_LIMIT,
    SENDER_POSITION,
    SENDER_LIMIT,
    SENDER_BACK_PRESSURE,
    SENDER_NAKS_RECEIVED,
)
"""Type ids of a network publication's counters, in the order of its counter ids."""
RETRANSMIT_COUNTERS = (
    SENDER_RETRANSMIT_RANGES,
    SENDER_BYTES_NOT_RESENT,
    SENDER_ROUND_TRIP_TIME,
)
"""Type ids of the further counters of a publication with retransmit ranges: ranges in use, bytes
that NAKs requested while their retransmit was under way, and nanoseconds."""
IPC_COUNTERS = NETWORK_COUNTERS[:2]
"""Type ids of an IPC publication's counters, in the order of its counter ids."""
_FROM_ZERO = (SENDER_BACK_PRESSURE, SENDER_NAKS_RECEIVED, *RETRANSMIT_COUNTERS)


class StreamCounters:
    """Allocates the counters of streams, channels and clients. The caller must free them."""

    def __init__(self, manager: CountersManager) -> None:
        self._manager = manager

    def require_free(self, count: int) -> None:
        """Raise StorageError if there is no space for `count` more counters."""
        self._manager.require_free(count)

    def stream(
        self,
        type_id: int,
        registration_id: int,
        owner_id: int,
        session_id: int,
        stream_id: int,
        channel: str,
        *,
        name: str | None = None,
        suffix: str = "",
        reference_id: int = 0,
        value: int = 0,
    ) -> int:
        """Allocate a counter for a stream. Returns the counter's id."""
        channel_bytes = channel.encode()[:STREAM_CHANNEL_LENGTH_MAX]
        header = (registration_id, session_id, stream_id, len(channel_bytes))
        key = struct.pack("<qiii", *header) + channel_bytes
        label = f"{name or _NAMES[type_id]}: {registration_id} {session_id} {stream_id} {channel}"
        return self._manager.allocate(
            type_id, key, label + suffix, registration_id, owner_id, reference_id, value
        )

    def publication(
        self,
        undo: ExitStack,
        type_ids: Sequence[int],
        identity: tuple[int, int, int, int, str],
        at: int,
        *,
        is_exclusive: bool,
    ) -> list[int]:
        """Allocate the counters of a publication that starts at position `at`. Returns their ids.

        `identity` contains arguments for `stream`. `undo` frees the counters on a failure.
        """
        kind = "exclusive" if is_exclusive else "concurrent"
        ids = []
        for type_id in type_ids:
            name = f"pub-pos ({kind})" if type_id == PUBLISHER_POSITION else None
            value = 0 if type_id in _FROM_ZERO else at
            ids.append(self.stream(type_id, *identity, name=name, value=value))
            undo.callback(self.free, ids[-1])
        return ids

    def channel_status(self, type_id: int, channel: str, registration_id: int) -> int:
        """Allocate a counter for the status of a channel or for the number of its destinations."""
        name = _CHANNEL_NAMES[type_id]
        channel_bytes = channel.encode()[:CHANNEL_LENGTH_MAX]
        key = struct.pack("<i", len(channel_bytes)) + channel_bytes
        return self._manager.allocate(
            type_id, key, f"{name}: {channel}", registration_id, 0, 0, CHANNEL_INITIALIZING
        )

    def local_address(
        self, name: str, status_counter_id: int, address: str, registration_id: int
    ) -> int:
        """Allocate the counter that shows a socket's local address."""
        text = address.encode()
        key = struct.pack("<ii", status_counter_id, len(text)) + text
        label = f"{name}-local-sockaddr: {status_counter_id} {address}"
        return self._manager.allocate(
            LOCAL_SOCKET_ADDRESS, key, label, registration_id, 0, 0, CHANNEL_ACTIVE
        )

    def client_heartbeat(self, client_id: int, now_ms: int) -> int:
        """Allocate the heartbeat counter of a client."""
        key = struct.pack("<q", client_id)
        label = f"client-heartbeat: id={client_id}"
        return self._manager.allocate(CLIENT_HEARTBEAT, key, label, client_id, client_id, 0, now_ms)

    def append_label(self, counter_id: int, text: str) -> None:
        """Append text to a counter's label."""
        self._manager.append_label(counter_id, text)

    def free(self, counter_id: int) -> None:
        """Free a counter of this driver."""
        self._manager.free(counter_id)
