"""Counter type ids, system counter ids, and the layout of counter keys.

    0                    8          12         16               20
    +--------------------+----------+----------+----------------+---------
    | registration id    | session  | stream   | channel length | channel         of a stream
    +--------------------+----------+----------+----------------+---------
    | channel length | channel                                                    of an endpoint
    +----------------+---------

Channels are truncated to the length of the key. Source: specification section 8.
"""

import re
from collections.abc import Iterable

from windtunnel.harness.artifact.host.counter_sample import CounterFacts

SYSTEM = 0
PUBLISHER_LIMIT = 1
SENDER_POSITION = 2
RECEIVER_HWM = 3
SUBSCRIBER_POSITION = 4
RECEIVER_POSITION = 5
SEND_CHANNEL_STATUS = 6
RECEIVE_CHANNEL_STATUS = 7
LOCAL_ADDRESS = 14
SENDER_LIMIT = 9
PER_IMAGE = 10
CLIENT_HEARTBEAT = 11
PUBLISHER_POSITION = 12
SENDER_BACK_PRESSURE_EVENTS = 13
LOCAL_ADDRESS = 14
FLOW_CONTROL_RECEIVERS = 17
DESTINATIONS = 18
SENDER_NAKS_RECEIVED = 19
RECEIVER_NAKS_SENT = 20
SENDER_ROUND_TRIP_TIME = 5_303
RETRANSMIT_TYPES = frozenset({5_301, 5_302, SENDER_ROUND_TRIP_TIME})
"""Counters of publications with retransmit ranges, which only the driver `ours` has."""
GAPS_OPEN = 5_304
OLDEST_GAP = 5_305
NAK_RETRIES = 5_306
REPAIR_TIME = 5_307
GAPS_FILLED_EARLY = 5_308
GAP_NAMES = {
    GAPS_OPEN: "rcv-gaps-open",
    OLDEST_GAP: "rcv-oldest-gap",
    NAK_RETRIES: "rcv-nak-retries",
    REPAIR_TIME: "rcv-repair-time",
    GAPS_FILLED_EARLY: "rcv-gaps-filled-early",
}
GAP_TYPES = frozenset(GAP_NAMES)
"""Counters of images with a row for each gap, which only the driver `ours` has."""

STREAM_NAMES = {
    PUBLISHER_LIMIT: "pub-lmt",
    SENDER_POSITION: "snd-pos",
    RECEIVER_HWM: "rcv-hwm",
    SUBSCRIBER_POSITION: "sub-pos",
    RECEIVER_POSITION: "rcv-pos",
    SENDER_LIMIT: "snd-lmt",
    PUBLISHER_POSITION: "pub-pos",
    SENDER_NAKS_RECEIVED: "snd-naks-received",
    RECEIVER_NAKS_SENT: "rcv-naks-sent",
}

BYTES_SENT = 0
BYTES_RECEIVED = 1
NAKS_SENT_TOTAL = 5
NAKS_RECEIVED_TOTAL = 6
STATUS_MESSAGES_SENT = 7
STATUS_MESSAGES_RECEIVED = 8
HEARTBEATS_SENT = 9
HEARTBEATS_RECEIVED = 10
RETRANSMITS_SENT = 11
UNDER_RUNS = 12
OVER_RUNS = 13
INVALID_PACKETS = 14
ERRORS = 15
SHORT_SENDS = 16
FLOW_CONTROL_LIMITS = 18
LOSS_GAP_FILLS = 23
SOFTWARE_VERSION = 34
BYTES_MAPPED = 35
RETRANSMITTED_BYTES = 36
SYSTEM_NAMES = {
    BYTES_SENT: "Bytes sent",
    BYTES_RECEIVED: "Bytes received",
    STATUS_MESSAGES_SENT: "Status Messages sent",
    STATUS_MESSAGES_RECEIVED: "Status Messages received",
    HEARTBEATS_SENT: "Heartbeats sent",
    HEARTBEATS_RECEIVED: "Heartbeats received",
    RETRANSMITS_SENT: "Retransmits sent",
    UNDER_RUNS: "Flow control under runs",
    OVER_RUNS: "Flow control over runs",
    SHORT_SENDS: "Short sends",
    LOSS_GAP_FILLS: "Loss gap fills",
    NAKS_SENT_TOTAL: "NAKs sent",
    NAKS_RECEIVED_TOTAL: "NAKs received",
    INVALID_PACKETS: "Invalid packets",
    RETRANSMITTED_BYTES: "Retransmitted bytes",
}


STREAM_TYPES = frozenset(
    {
        *STREAM_NAMES,
        PER_IMAGE,
        SENDER_BACK_PRESSURE_EVENTS,
        FLOW_CONTROL_RECEIVERS,
        *RETRANSMIT_TYPES,
        *GAP_TYPES,
    }
)
"""Counter types whose key contains a stream."""
ENDPOINT_TYPES = frozenset({SEND_CHANNEL_STATUS, RECEIVE_CHANNEL_STATUS, DESTINATIONS})
"""Counter types whose key contains a channel endpoint."""

_ENDPOINT = re.compile(r"[?|]endpoint=([^|]*:(\d{1,5}))(?=\||$)")
STREAM_CHANNEL_AT = 16
ENDPOINT_CHANNEL_AT = 0


def identity(counter: CounterFacts) -> int:
    """Return the id of a system counter, or the registration id from any other counter's key."""
    key = bytes.fromhex(counter.key_hex)
    length = 4 if counter.type_id == SYSTEM else 8
    return int.from_bytes(key[:length], "little", signed=True)


def channel(counter: CounterFacts) -> str:
    """Return the channel from the key of a stream counter or endpoint counter."""
    at = _channel_at(counter) + 4
    key = bytes.fromhex(counter.key_hex)
    return key[at : at + max(0, channel_length(counter))].decode("utf-8", "replace")


def channel_length(counter: CounterFacts) -> int:
    """Return the length of the channel that the key of such a counter specifies."""
    at = _channel_at(counter)
    return int.from_bytes(bytes.fromhex(counter.key_hex)[at : at + 4], "little", signed=True)


def _channel_at(counter: CounterFacts) -> int:
    return ENDPOINT_CHANNEL_AT if counter.type_id in ENDPOINT_TYPES else STREAM_CHANNEL_AT


def first_i32(counter: CounterFacts) -> int:
    """Return the first number in a counter's key: of a local address, the id of the counter with
    its channel's status.
    """
    return int.from_bytes(bytes.fromhex(counter.key_hex)[:4], "little", signed=True)


def session_and_stream(counter: CounterFacts) -> tuple[int, int]:
    """Return the session id and stream id from the key of a stream counter."""
    key = bytes.fromhex(counter.key_hex)
    session, stream = (int.from_bytes(key[at : at + 4], "little", signed=True) for at in (8, 12))
    return session, stream


def of_stream(
    counters: Iterable[CounterFacts], type_id: int, session_id: int, stream_id: int
) -> list[CounterFacts]:
    """Return the counters of one type that belong to a session's stream."""
    key = (session_id, stream_id)
    typed = (counter for counter in counters if counter.type_id == type_id)
    return [counter for counter in typed if session_and_stream(counter) == key]


def to_port(counters: Iterable[CounterFacts], port: int | None) -> list[CounterFacts]:
    """Return those of a session's publication counters that are of a publication to a port, or all
    if it is None: another one may send the same session to another port, such as a replay. If no
    channel names the port, it is that of a publication with several destinations.
    """
    found = list(counters)
    if port is None:
        return found
    ports = [_endpoint_port(each) for each in found]
    wanted = port if port in ports else None
    return [each for each, own in zip(found, ports, strict=True) if own == wanted]


def endpoint(counter: CounterFacts) -> str:
    """Return the endpoint in a stream counter's channel, or "" if another counter or a channel has
    none, such as one with several destinations, or is truncated.
    """
    if counter.type_id not in STREAM_TYPES:
        return ""
    found = _ENDPOINT.search(channel(counter))
    return "" if found is None else found[1]


def _endpoint_port(counter: CounterFacts) -> int | None:
    found = _ENDPOINT.search(channel(counter))
    return None if found is None else int(found[2])


def system_counter(counters: Iterable[CounterFacts], counter_id: int) -> CounterFacts | None:
    """Return a system counter of the driver by its id, or None if it does not exist."""
    for counter in counters:
        if counter.type_id == SYSTEM and counter.counter_id == counter_id:
            return counter
    return None
