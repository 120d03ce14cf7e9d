"""Counters grouped by stream, as in Aeron's StreamStat.

    session 77, stream 1001, aeron:udp?endpoint=...     pub-pos, pub-lmt, snd-pos, snd-lmt, ...
    session 77, stream 1001, aeron:udp?endpoint=...     rcv-hwm, rcv-pos, sub-pos, ...

Streams are identified by session id, stream id and the channel in the counter's key, which is
truncated to 92 bytes. The full channel is taken from the label.
"""

from collections.abc import Iterable
from dataclasses import dataclass

from windtunnel.harness.artifact.host.counter_sample import CounterFacts
from windtunnel.harness.dissect.driver_files import counter_key

SHOWN = frozenset(
    {
        *counter_key.STREAM_NAMES,
        counter_key.SENDER_BACK_PRESSURE_EVENTS,
        *counter_key.RETRANSMIT_TYPES,
        *counter_key.GAP_TYPES,
    }
)


@dataclass(frozen=True)
class StreamCounter:
    """One counter of a stream."""

    name: str
    registration_id: int
    value: int


@dataclass(frozen=True)
class Stream:
    """A stream at one driver, with its counters."""

    session_id: int
    stream_id: int
    channel: str
    counters: list[StreamCounter]


def streams(counters: Iterable[CounterFacts]) -> list[Stream]:
    """Return all streams with their counters, sorted by session, stream and channel."""
    found: dict[tuple[int, int, str], list[CounterFacts]] = {}
    for counter in counters:
        if counter.type_id in SHOWN:
            key = (*counter_key.session_and_stream(counter), counter_key.channel(counter))
            found.setdefault(key, []).append(counter)
    return [
        Stream(
            session_id=session_id,
            stream_id=stream_id,
            channel=max((_whole_channel(each, channel) for each in found[key]), key=len),
            counters=[_value(each) for each in found[key]],
        )
        for key in sorted(found)
        for session_id, stream_id, channel in [key]
    ]


def _value(counter: CounterFacts) -> StreamCounter:
    name = counter.label.partition(":")[0]
    return StreamCounter(name, counter_key.identity(counter), counter.final_value)


def _whole_channel(counter: CounterFacts, channel_in_key: str) -> str:
    """Return the channel from a counter's label, without the join position that ends a subscriber's
    label.
    """
    at = counter.label.find("aeron:")
    if at < 0:
        return channel_in_key
    channel = counter.label[at:]
    if counter.type_id == counter_key.SUBSCRIBER_POSITION and " @" in channel:
        return channel.rpartition(" @")[0]
    return channel
