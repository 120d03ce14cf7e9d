"""Exercise of what is left of streams after they were closed: no counter, and no log buffer."""

from __future__ import annotations

from collections.abc import Iterable

from windtunnel.driver.base.system import NS_PER_MS
from windtunnel.driver.client.publication.publication import Publication
from windtunnel.driver.cnc.counters_reader import Counter
from windtunnel.harness.dissect.driver_files import counter_key
from windtunnel.harness.scenario.exercises import PORTS
from windtunnel.harness.simulator.exercises.messages import Reader, exchange
from windtunnel.harness.simulator.exercises.party import Party, Site, connected, image_of
from windtunnel.harness.simulator.exercises.waiting import Routine, Wait, require

STREAM = 3941
PORT, DESTINATION_PORT = PORTS["freed-streams"]
LENGTH = 900
ALIAS = "freed-streams"
LINGER_S = 60
"""Longer than the exercise waits: the only receiver of a unicast stream reports that it has read to
the end, so that its publication need not linger.
"""
SIGNALLED_NS = 150 * NS_PER_MS
"""Time in which the end of a stream that was sent whole is signalled: longer than the interval of
heartbeats, and shorter than that of the timer of a driver.
"""
NAMES = (f":{PORT}", f":{DESTINATION_PORT}", ALIAS)
"""What the labels of the counters of the exercise's channels contain."""
OF_PUBLICATION = (
    counter_key.PUBLISHER_POSITION,
    counter_key.PUBLISHER_LIMIT,
    counter_key.SENDER_POSITION,
    counter_key.SENDER_LIMIT,
    counter_key.SENDER_BACK_PRESSURE_EVENTS,
    counter_key.SENDER_NAKS_RECEIVED,
)
OF_IMAGE = (
    counter_key.RECEIVER_HWM,
    counter_key.RECEIVER_POSITION,
    counter_key.RECEIVER_NAKS_SENT,
    counter_key.SUBSCRIBER_POSITION,
)
OF_IPC = (counter_key.PUBLISHER_POSITION, counter_key.PUBLISHER_LIMIT)


def freed_streams(site: Site) -> Routine[None]:
    """Close a unicast, a multi-destination and an IPC stream, with a spy, after use."""
    near, far = site.near, site.far
    readers, publications = yield from _open(near, far)
    for publication, reading in zip(publications, readers, strict=True):
        yield connected(publication)
        yield from exchange(publication, reading, 60, LENGTH)
    used = [(near, _of_exercise(near)), (far, _of_exercise(far))]
    local = [counter_key.FLOW_CONTROL_RECEIVERS, *[counter_key.SUBSCRIBER_POSITION] * 2]
    _require_types(used[0][1], *OF_PUBLICATION, *OF_PUBLICATION, *OF_IPC, *local)
    _require_types(used[1][1], *OF_IMAGE, *OF_IMAGE)
    yield _one_receiver(near)
    logs = [
        (near, {str(each.registration_id) for each in publications}),
        (far, {str(reading[0].subscription.images[0].correlation_id) for reading in readers[:2]}),
    ]
    for party, names in logs:
        found = party.log_names()
        require(names <= found, f"the log buffers {sorted(names)}, found {sorted(found)}")
    for publication in publications:
        publication.close()
    yield near.pause(SIGNALLED_NS)
    for reading in readers[:2]:
        subscription = reading[0].subscription
        require(
            all(each.is_end_of_stream for each in subscription.images),
            f"the end of a stream that was read at {subscription.channel} with a heartbeat",
        )
    for reading in readers:
        for reader in reading:
            yield _without_images(reader)
            reader.subscription.close()
    for party, counters in used:
        yield _freed(party, counters)
    for party, names in logs:
        yield _removed(party, names)


def _open(near: Party, far: Party) -> Routine[tuple[list[list[Reader]], list[Publication]]]:
    """Add the streams. Returns the readers of each stream, and the publications."""
    unicast = f"aeron:udp?endpoint={far.address}:{PORT}"
    destination = f"aeron:udp?endpoint={far.address}:{DESTINATION_PORT}"
    lasting = "term-length=64k|linger=0"
    spied = f"{unicast}|term-length=64k|linger={LINGER_S}s"
    channels = [
        (spied, [(far, unicast), (near, f"aeron-spy:{unicast}")]),
        (f"aeron:udp?control-mode=manual|fc=min|alias={ALIAS}|{lasting}", [(far, destination)]),
        ("aeron:ipc?term-length=64k", [(near, "aeron:ipc")]),
    ]
    readers, publications = [], []
    for channel, places in channels:
        reading = []
        for party, where in places:
            reading.append(Reader((yield from party.subscription(where, STREAM))))
        publication = yield from near.publication(channel, STREAM, is_exclusive=True)
        if "manual" in channel:
            yield from near.answered(publication.async_add_destination(destination))
        for reader in reading:
            yield from image_of(reader.subscription)
        readers.append(reading)
        publications.append(publication)
    return readers, publications


def _of_exercise(party: Party) -> list[Counter]:
    """Return the counters of the exercise's streams, channels and sockets on a host."""
    found = []
    for each in party.client.counters:
        stream_id = int.from_bytes(each.key[12:16], "little", signed=True)
        is_named = any(name in each.label for name in NAMES)
        is_of_stream = each.type_id in counter_key.STREAM_TYPES and stream_id == STREAM
        if is_of_stream or (each.type_id in counter_key.ENDPOINT_TYPES and is_named):
            found.append(each)
    statuses = {each.counter_id for each in found}
    for each in party.client.counters:
        status_id = int.from_bytes(each.key[:4], "little")
        if each.type_id == counter_key.LOCAL_ADDRESS and status_id in statuses:
            found.append(each)
    return found


def _one_receiver(party: Party) -> Wait:
    """Return the condition that the group of the multi-destination stream has its one receiver."""

    def values() -> list[int]:
        return [each.value for each in party.of_type(counter_key.FLOW_CONTROL_RECEIVERS)]

    return Wait(lambda: values() == [1], "fc-receivers to be 1", values)


def _require_types(counters: Iterable[Counter], *expected: int) -> None:
    found = sorted(each.type_id for each in counters if each.type_id in counter_key.STREAM_TYPES)
    wanted = sorted(expected)
    require(found == wanted, f"counters of types {wanted}, found {found}")


def _without_images(reader: Reader) -> Wait:
    subscription = reader.subscription
    return Wait(lambda: not subscription.images, f"the images of {subscription.channel} to end")


def _freed(party: Party, counters: list[Counter]) -> Wait:
    def is_left(before: Counter) -> bool:
        after = party.counter(before.counter_id)
        return after is not None and (after.registration_id, after.label) == (
            before.registration_id,
            before.label,
        )

    return Wait(
        lambda: not any(is_left(each) for each in counters),
        f"the {len(counters)} counters of closed streams on {party.address} to be freed",
        lambda: [each.label for each in counters if is_left(each)],
    )


def _removed(party: Party, names: set[str]) -> Wait:
    return Wait(
        lambda: not names & party.log_names(),
        f"the log buffers of closed streams on {party.address} to be removed",
        lambda: sorted(names & party.log_names()),
    )
