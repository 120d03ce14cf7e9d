"""The backlog of a stream's publisher, sender, receiver and subscribers, as in Aeron's BacklogStat.

    publisher    window: bytes to back pressure     pub-lmt - pub-pos
    sender       backlog: bytes to send; window     pub-pos - snd-pos; snd-lmt - snd-pos
    receiver     backlog: bytes after a gap         rcv-hwm - rcv-pos
    subscriber   backlog: bytes to consume          rcv-hwm - sub-pos; without a receiver
                                                    (IPC, spies) pub-pos - sub-pos

The counters are not read atomically, so the backlog of an active stream may be slightly off, or
even negative.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field

from windtunnel.harness.artifact.host.counter_sample import CounterFacts
from windtunnel.harness.dissect.driver_files import counter_key
from windtunnel.harness.dissect.driver_files.counter_key import (
    PUBLISHER_LIMIT,
    PUBLISHER_POSITION,
    RECEIVER_HWM,
    RECEIVER_POSITION,
    SENDER_LIMIT,
    SENDER_POSITION,
    SUBSCRIBER_POSITION,
)

PUBLISHER, SENDER, RECEIVER, SUBSCRIBER = "publisher", "sender", "receiver", "subscriber"
_OWN_POSITION = {
    PUBLISHER_POSITION: PUBLISHER,
    SENDER_POSITION: SENDER,
    RECEIVER_POSITION: RECEIVER,
    SUBSCRIBER_POSITION: SUBSCRIBER,
}
_OWN_LIMIT = {PUBLISHER_LIMIT: PUBLISHER, SENDER_LIMIT: SENDER, RECEIVER_HWM: RECEIVER}
_ORDER = (PUBLISHER, SENDER, RECEIVER, SUBSCRIBER)


@dataclass
class End:
    """The position, backlog and window of one publisher, sender, receiver or subscriber."""

    kind: str
    registration_id: int
    position: int | None = None
    backlog_bytes: int | None = None
    """Bytes still to process, or None if the counter to compare with does not exist."""
    window_bytes: int | None = None
    """Bytes until back pressure or flow control blocks this end, or None if unknown."""


@dataclass(frozen=True)
class StreamBacklog:
    """The backlogs of a stream's publisher, sender, receiver and subscribers at one driver."""

    session_id: int
    stream_id: int
    channel: str
    ends: list[End]


Key = tuple[int, int, str]
"""Key of a stream: session id, stream id and channel."""


@dataclass
class _Reading:
    """Values of the stream counters, by kind and registration id. Registration ids are unique per
    driver.
    """

    positions: dict[tuple[str, int], int] = field(default_factory=dict)
    limits: dict[tuple[str, int], int] = field(default_factory=dict)
    members: dict[Key, set[tuple[str, int]]] = field(default_factory=dict)
    readers: dict[Key, list[CounterFacts]] = field(default_factory=dict)


def backlogs(counters: Iterable[CounterFacts]) -> list[StreamBacklog]:
    """Return the backlogs of all streams, sorted by session, stream and channel."""
    reading = _Reading()
    for counter in counters:
        if counter.type_id in _OWN_POSITION or counter.type_id in _OWN_LIMIT:
            _take(reading, counter)
    keys = sorted({*reading.members, *reading.readers})
    return [StreamBacklog(*key, _ends(reading, key)) for key in keys]


def _take(reading: _Reading, counter: CounterFacts) -> None:
    key = (*counter_key.session_and_stream(counter), counter_key.channel(counter))
    if counter.type_id == SUBSCRIBER_POSITION:
        reading.readers.setdefault(key, []).append(counter)
        return
    is_position = counter.type_id in _OWN_POSITION
    kind = (_OWN_POSITION if is_position else _OWN_LIMIT)[counter.type_id]
    member = (kind, counter_key.identity(counter))
    (reading.positions if is_position else reading.limits)[member] = counter.final_value
    reading.members.setdefault(key, set()).add(member)


def _ends(reading: _Reading, key: Key) -> list[End]:
    members = reading.members.get(key, set())
    ordered = sorted(members, key=lambda each: (_ORDER.index(each[0]), each[1]))
    ends = [_end(reading, kind, registration_id) for kind, registration_id in ordered]
    for counter in sorted(reading.readers.get(key, ()), key=counter_key.identity):
        # The counter of a spy or an IPC subscriber refers to the publication instead of an image.
        image = counter.reference_id
        seen = reading.limits.get((RECEIVER, image), reading.positions.get((PUBLISHER, image)))
        backlog = None if seen is None else seen - counter.final_value
        registration_id = counter_key.identity(counter)
        ends.append(End(SUBSCRIBER, registration_id, counter.final_value, backlog))
    return ends


def _end(reading: _Reading, kind: str, registration_id: int) -> End:
    position = reading.positions.get((kind, registration_id))
    limit = reading.limits.get((kind, registration_id))
    room = None if position is None or limit is None else limit - position
    if kind == RECEIVER:
        return End(kind, registration_id, position, backlog_bytes=room)
    published = reading.positions.get((PUBLISHER, registration_id))
    end = End(kind, registration_id, position, window_bytes=room)
    if kind == SENDER and position is not None and published is not None:
        end.backlog_bytes = published - position
    return end
