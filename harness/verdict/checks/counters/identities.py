"""Checks that the counters of a stream name the stream, its clients and its logs.

    key and label      registration id, session id, stream id, channel; of sub-pos also the position
                       at which the subscription joined
    registration id    of a publication's or an image's counters: the name of its log
    owner id           the client, which has a heartbeat counter; -1 for counters of strategies and
                       of the driver, 0 for those of channels and their sockets
    reference id       of sub-pos: registration id of the image; 0 for all other counters
    label of a channel   ends with the address of its socket, which has a counter of its own

Tools find a stream's counters by these, and the driver frees counters by their owner. Source: Aeron
1.53.
"""

from collections.abc import Iterator, Sequence
from itertools import chain

from windtunnel.harness.artifact.host.counter_sample import CounterFacts
from windtunnel.harness.artifact.host.log_index import IMAGES, PUBLICATIONS
from windtunnel.harness.dissect.driver_files import counter_key
from windtunnel.harness.dissect.driver_files.cnc_file import LABEL_LENGTH_MAX
from windtunnel.harness.scenario.resolved.case import TrafficCase
from windtunnel.harness.verdict.checks.counters.archive_channels import (
    published_channel,
    subscribed_channels,
)
from windtunnel.harness.verdict.core.evidence import Evidence
from windtunnel.harness.verdict.core.finding import Finding, Missing, failed, passed, present
from windtunnel.harness.verdict.core.wire import Wire, status_messages
from windtunnel.harness.verdict.views.pauses import counted_since_ns, kills_of
from windtunnel.harness.verdict.views.series import SUBSCRIPTION_COUNT

IDENTIFY = "counters_identify_streams"

NO_OWNER, NO_REFERENCE = -1, 0
OWNER_OF_CHANNELS = 0
_OF_CHANNELS = (counter_key.SEND_CHANNEL_STATUS, counter_key.RECEIVE_CHANNEL_STATUS)
_OF_STRATEGIES = frozenset({counter_key.FLOW_CONTROL_RECEIVERS, counter_key.PER_IMAGE})
"""Counters of flow control and congestion control, which belong to no client."""
_OF_PUBLICATION = (
    counter_key.PUBLISHER_POSITION,
    counter_key.PUBLISHER_LIMIT,
    counter_key.SENDER_POSITION,
    counter_key.SENDER_LIMIT,
)
_OF_IMAGE = (counter_key.RECEIVER_HWM, counter_key.RECEIVER_POSITION)
_FURTHER_OF_PUBLICATION = (
    counter_key.SENDER_BACK_PRESSURE_EVENTS,
    counter_key.SENDER_NAKS_RECEIVED,
    counter_key.FLOW_CONTROL_RECEIVERS,
    *sorted(counter_key.RETRANSMIT_TYPES),
)
_FURTHER_OF_IMAGE = (
    counter_key.RECEIVER_NAKS_SENT,
    counter_key.PER_IMAGE,
    *sorted(counter_key.GAP_TYPES),
)
"""Counters that not every driver, or not every stream, has."""
_ALL = tuple(sorted(counter_key.STREAM_TYPES))


def counters_identify_streams(evidence: Evidence, traffic: TrafficCase) -> Finding:
    """Key, label, registration id, owner id and reference id of each of a stream's counters name
    the stream, its channel, its client and its log.
    """
    wire, near, far = present(
        evidence.wire(traffic),
        evidence.counters_of_streams(traffic.from_host),
        evidence.counters_of_streams(traffic.to_host),
    )
    count = 0
    for host, counters, check in (
        (traffic.from_host, near.counters, _publication),
        (traffic.to_host, far.counters, _image),
    ):
        problems = chain(
            _system(counters), _endpoints(counters), check(evidence, traffic, wire, counters)
        )
        wrong = next(problems, None)
        if wrong is not None:
            where = (evidence.name_of(evidence.folder.host(host).counters),)
            return failed(IDENTIFY, f"on host {host}, {wrong}", traffic.id, evidence=where)
        count += len(_of_types(wire, counters, _ALL))
    return passed(IDENTIFY, f"{count} counters name their stream, client and log", traffic.id)


def _system(counters: Sequence[CounterFacts]) -> Iterator[str]:
    """Yield what is wrong with the counters of the whole driver, whose ids are fixed."""
    for each in counters:
        if each.type_id == counter_key.SYSTEM:
            ids = each.counter_id, counter_key.identity(each), each.registration_id, each.owner_id
            expected = *(each.counter_id,) * 3, NO_OWNER
            if ids != expected:
                text = "counter id, key, registration id and owner"
                yield f"system counter {each.label!r} has {text} {ids}, expected {expected}"


def _endpoints(counters: Sequence[CounterFacts]) -> Iterator[str]:
    """Yield what is wrong with the ids of channels, their sockets and destinations, and with the
    labels of channels that have one socket. The label of a channel without a socket of its own, but
    with destinations, ends with a space.
    """
    channels = {
        (each.counter_id, each.registration_id) for each in counters if each.type_id in _OF_CHANNELS
    }
    addresses: dict[int, list[str]] = {}
    for each in counters:
        if each.type_id in (*_OF_CHANNELS, counter_key.LOCAL_ADDRESS):
            if each.owner_id != OWNER_OF_CHANNELS:
                yield f"{_text(each)} has owner {each.owner_id}, expected {OWNER_OF_CHANNELS}"
            yield from _wrong_reference(each, {NO_REFERENCE})
        if each.type_id == counter_key.LOCAL_ADDRESS:
            channel = counter_key.first_i32(each), each.registration_id
            if channel not in channels:
                yield f"{_text(each)} has no channel {channel[0]} with its registration id"
            addresses.setdefault(counter_key.first_i32(each), []).append(each.label.split(" ")[-1])
    for each in counters:
        own = addresses.get(each.counter_id, [])
        is_cut_off = len(each.label) >= LABEL_LENGTH_MAX
        if (
            each.type_id not in _OF_CHANNELS
            or len(own) != 1
            or each.label.endswith((" ", f" {own[0]}"))
        ):
            continue
        if not is_cut_off:
            yield f"{_text(each)} has the label {each.label!r}, expected it to end with {own[0]!r}"


def _publication(
    evidence: Evidence, traffic: TrafficCase, wire: Wire, counters: Sequence[CounterFacts]
) -> Iterator[str]:
    """Yield what is wrong with the counters of a publication."""
    yield from _absent(wire, counters, _OF_PUBLICATION)
    own = _of_types(wire, counters, (*_OF_PUBLICATION, *_FURTHER_OF_PUBLICATION))
    kind = f"pub-pos ({traffic.publication})"
    channels = (published_channel(traffic, wire),)
    for each in own:
        name = kind if each.type_id == counter_key.PUBLISHER_POSITION else ""
        yield from _wrong(each, wire, channels, name, is_replay=bool(traffic.replays))
        yield from _wrong_owner(each, counters)
        yield from _wrong_reference(each, {NO_REFERENCE})
    yield from _log_without_counters(evidence, traffic.from_host, PUBLICATIONS, wire, own)


def _image(
    evidence: Evidence, traffic: TrafficCase, wire: Wire, counters: Sequence[CounterFacts]
) -> Iterator[str]:
    """Yield what is wrong with the counters of an image and of its subscriptions. A receiver that
    sent no status message of the session had no image, because it joined the group too late, or
    its driver was restarted after the end.
    """
    messages = status_messages(wire.feedback_sent)
    if not (messages["time_ns"] >= counted_since_ns(evidence, traffic.to_host)).any():
        return
    yield from _absent(wire, counters, (*_OF_IMAGE, counter_key.SUBSCRIBER_POSITION))
    own = _of_types(wire, counters, (*_OF_IMAGE, *_FURTHER_OF_IMAGE))
    readers = _of_types(wire, counters, (counter_key.SUBSCRIBER_POSITION,))
    channels = subscribed_channels(traffic, wire.facts.session_id)
    for each in own:
        yield from _wrong(each, wire, channels)
        yield from _wrong_owner(each, counters)
        yield from _wrong_reference(each, {NO_REFERENCE})
    images = {each.registration_id for each in own}
    for each in readers:
        yield from _wrong(each, wire, channels)
        yield from _wrong_owner(each, counters)
        yield from _wrong_reference(each, images)
        if each.registration_id in images:
            yield f"{_text(each)} has the registration id of an image, expected a subscription's"
    owners = {each.owner_id for each in readers}
    for each in own:
        if each.type_id not in _OF_STRATEGIES and each.owner_id not in owners:
            yield f"{_text(each)} has owner {each.owner_id}, expected a subscriber: {owners}"
    yield from _wrong_start(evidence, traffic, wire, readers, images)
    yield from _log_without_counters(evidence, traffic.to_host, IMAGES, wire, own)


def _absent(wire: Wire, counters: Sequence[CounterFacts], type_ids: Sequence[int]) -> Iterator[str]:
    for type_id in type_ids:
        if not _of_types(wire, counters, (type_id,)):
            facts = wire.facts
            name = counter_key.STREAM_NAMES[type_id]
            yield f"no {name} has session {facts.session_id}, stream {facts.stream_id} in its key"


def _wrong(
    counter: CounterFacts,
    wire: Wire,
    channels: Sequence[str],
    name: str = "",
    *,
    is_replay: bool = False,
) -> Iterator[str]:
    """Yield what is wrong with a counter's key and label, given the possible channels. A strategy
    may write the channel with its parameters in another order. A channel may be cut off, and that
    of a replay has more parameters than are known.
    """
    keyed = counter_key.identity(counter)
    if keyed != counter.registration_id:
        yield f"{_text(counter)} has registration id {keyed} in its key"
    shown = counter_key.channel(counter)
    length = counter_key.channel_length(counter)
    if length != len(shown.encode()):
        yield f"{_text(counter)} has {length} bytes of channel in its key, found {len(shown)}"
    is_known = any(
        each.startswith(shown) or (is_replay and shown.startswith(f"{each}|")) for each in channels
    )
    if not is_known and counter.type_id not in _OF_STRATEGIES:
        expected = " or ".join(map(repr, channels))
        yield f"{_text(counter)} has the channel {shown!r} in its key, expected {expected}"
    facts = wire.facts
    stream = f"{counter.registration_id} {facts.session_id} {facts.stream_id} {shown}"
    label, _, rest = counter.label.partition(": ")
    expected = name or counter_key.STREAM_NAMES.get(counter.type_id, "")
    if expected and label not in (expected, f"{expected} (exclusive)", f"{expected} (concurrent)"):
        yield f"{_text(counter)} has the name {label!r} in its label, expected {expected!r}"
    if not rest.startswith(stream):
        yield f"{_text(counter)} has the label {counter.label!r}, expected {stream!r} in it"


def _wrong_owner(counter: CounterFacts, counters: Sequence[CounterFacts]) -> Iterator[str]:
    if counter.type_id in _OF_STRATEGIES:
        if counter.owner_id != NO_OWNER:
            yield f"{_text(counter)} has owner {counter.owner_id}, expected {NO_OWNER}"
        return
    clients = {
        each.registration_id
        for each in counters
        if each.type_id == counter_key.CLIENT_HEARTBEAT
        and each.registration_id == counter_key.identity(each) == each.owner_id
    }
    if counter.owner_id not in clients:
        known = ", ".join(map(str, sorted(clients))) or "none"
        yield f"{_text(counter)} has owner {counter.owner_id}, expected a client of {known}"


def _wrong_reference(counter: CounterFacts, allowed: set[int]) -> Iterator[str]:
    if counter.reference_id not in allowed:
        expected = " or ".join(map(str, sorted(allowed)))
        yield f"{_text(counter)} has reference id {counter.reference_id}, expected {expected}"


def _wrong_start(
    evidence: Evidence,
    traffic: TrafficCase,
    wire: Wire,
    readers: Sequence[CounterFacts],
    images: set[int],
) -> Iterator[str]:
    """Yield labels of sub-pos with another position than that at which the subscriber joined. It
    is known if the subscriber had one image.
    """
    subscriber = evidence.subscriber(traffic)
    if isinstance(subscriber, Missing) or len(images) != 1 or subscriber.parts:
        return
    if subscriber.session_id != wire.facts.session_id:
        return
    start = f"@{subscriber.join_position}"
    # A restarted archive joins later than the subscriber.
    first = sorted(readers, key=lambda each: each.registration_id)[:SUBSCRIPTION_COUNT]
    for each in first if kills_of(evidence, traffic.to_host, "archive") else readers:
        if len(each.label) < LABEL_LENGTH_MAX and each.label.split(" ")[-1] != start:
            yield f"{_text(each)} has the label {each.label!r}, expected it to end with {start!r}"


def _log_without_counters(
    evidence: Evidence, host: str, folder: str, wire: Wire, own: Sequence[CounterFacts]
) -> Iterator[str]:
    """Yield the newest log of a stream if its name differs from the registration id in it, or from
    the registration ids of all counters.
    """
    saved = evidence.log_of(host, folder, wire.facts.session_id, wire.facts.stream_id)
    if isinstance(saved, Missing):
        return
    name = saved.path.stem
    written = saved.log.metadata["correlation_id"]
    if name != f"{folder}-{written}":
        yield f"the log {name} has registration id {written} in its metadata"
    if all(each.registration_id != written for each in own):
        found = ", ".join(sorted({str(each.registration_id) for each in own}))
        yield f"the log {name} has counters with registration id {found}"


def _of_types(
    wire: Wire, counters: Sequence[CounterFacts], type_ids: Sequence[int]
) -> list[CounterFacts]:
    facts = wire.facts
    return [
        each
        for type_id in type_ids
        for each in counter_key.of_stream(counters, type_id, facts.session_id, facts.stream_id)
    ]


def _text(counter: CounterFacts) -> str:
    name = counter.label.partition(":")[0]
    return f"counter {counter.counter_id} {name!r} with registration id {counter.registration_id}"
