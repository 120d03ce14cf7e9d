"""The operations of this client, with the real driver."""

import os
import zlib

import numpy as np
import pytest

from tests.peer.ports import free_ports
from tests.peer.streams import MESSAGES, STREAM_ID, channel, until
from tests.unit.driver.client.compiled_handlers import count_bytes
from windtunnel.driver.client import (
    Action,
    Aeron,
    ClientContext,
    FragmentBatch,
    RegistrationError,
    channel_status,
)
from windtunnel.driver.command.command_type import ErrorCode

pyaeron = pytest.importorskip("pyaeron", reason="the real Aeron (pyaeron) is not installed")
pytestmark = pytest.mark.peer

ANY_PORT = "aeron:udp?endpoint=127.0.0.1:0"


class Client(Aeron):
    """A client that records the arguments of its handlers."""

    def __init__(self, directory):
        self.errors, self.rejections, self.counters_gone = [], [], []
        context = ClientContext(
            dir=directory, client_name="ours", error_handler=self.errors.append,
            publication_error_handler=self.rejections.append,
            on_unavailable_counter=lambda reader, *ids: self.counters_gone.append(ids),
        )  # fmt: skip
        super().__init__(context=context)


@pytest.fixture
def client(tmp_path):
    directory = tmp_path / "real"
    with pyaeron.MediaDriver(dir=str(directory), threading="shared"), Client(directory) as made:
        yield made


def open_stream(client, where=None, *, is_exclusive=True):
    where = where or channel()
    subscription = client.add_subscription(where, STREAM_ID)
    add = client.add_exclusive_publication if is_exclusive else client.add_publication
    publication = add(where, STREAM_ID)
    until(lambda: publication.is_connected and subscription.images, "connecting")
    return publication, subscription


def written(publication, message, **how):
    until(lambda: publication.offer(message, **how) > 0, "offering")


def received(subscription, count):
    seen = []

    def is_all_here():
        subscription.poll(lambda payload, header: seen.append(bytes(payload)))
        return len(seen) >= count

    until(is_all_here, "delivery")
    return seen


def test_counters_are_added_shared_and_removed(client):
    counter = client.add_counter(1101, b"key", "mine")
    assert (counter.label, counter.increment(), counter.get()) == ("mine", 0, 1)
    static = client.add_static_counter(1102, 77, b"", "stays")
    again = client.add_static_counter(1102, 77, b"", "other")
    assert (again.counter_id, again.label) == (static.counter_id, "stays")
    with pytest.raises(RegistrationError) as refusal:
        client.add_static_counter(1101, counter.registration_id)
    assert refusal.value.code == ErrorCode.GENERIC_ERROR
    counter.close()
    gone = (counter.registration_id, counter.counter_id)
    until(lambda: gone in client.counters_gone, "the counter to go")
    assert client.errors == []


def test_destinations_of_a_publication_are_added_and_removed(client):
    subscription = client.add_subscription(ANY_PORT, STREAM_ID)
    until(lambda: subscription.try_resolve_channel_endpoint_port(), "the port")
    where = subscription.try_resolve_channel_endpoint_port()
    assert where == f"aeron:udp?endpoint={subscription.resolved_endpoint}"
    assert subscription.channel_status == channel_status.ACTIVE
    publication = client.add_exclusive_publication("aeron:udp?control-mode=manual", STREAM_ID)
    first = publication.add_destination(where)
    until(lambda: publication.is_connected and subscription.images, "connecting")
    assert publication.local_socket_addresses
    written(publication, b"through")
    assert received(subscription, 1) == [b"through"]
    publication.remove_destination_by_id(first)
    second = publication.async_add_destination(where)
    until(lambda: not client.is_command_active(second), "the destination")
    publication.remove_destination(where)
    removal = publication.async_remove_destination_by_id(second)
    until(lambda: not client.has_active_commands, "the removal")
    assert not client.is_command_active(removal)
    plain = client.add_exclusive_publication(channel(), STREAM_ID)
    with pytest.raises(RegistrationError):
        plain.add_destination(where)
    plain.async_add_destination(where)
    until(lambda: client.errors, "the refusal")
    assert [type(error) for error in client.errors] == [RegistrationError]


def test_destinations_of_a_subscription_are_added_and_removed(client):
    subscription = client.add_subscription("aeron:udp?control-mode=manual", STREAM_ID)
    subscription.add_destination(ANY_PORT)
    until(lambda: subscription.resolved_endpoint, "the port")
    where = f"aeron:udp?endpoint={subscription.resolved_endpoint}"
    publication = client.add_exclusive_publication(where, STREAM_ID)
    until(lambda: subscription.images, "an image")
    until(lambda: subscription.images[0].active_transport_count == 1, "its transport")
    subscription.remove_destination(ANY_PORT)
    until(lambda: not subscription.local_socket_addresses, "the socket to go")
    assert publication.channel_status == channel_status.ACTIVE


@pytest.mark.parametrize("where", [None, "aeron:ipc?term-length=64k"], ids=["udp", "ipc"])
def test_the_publisher_is_notified_of_a_rejection_and_its_reason(client, where):
    publication, subscription = open_stream(client, where)
    image = subscription.images[0]
    image.reject("not wanted, truly")
    until(lambda: client.rejections, "the publisher to be notified")
    rejection = client.rejections[0]
    assert (rejection.message, rejection.error_code) == (
        "not wanted, truly",
        ErrorCode.IMAGE_REJECTED,
    )
    assert rejection.registration_id == publication.registration_id
    with pytest.raises(RegistrationError):
        subscription.reject_image(12345, 0, "nobody")
    with pytest.raises(ValueError, match="expected at most 1023"):
        subscription.reject_image(image.correlation_id, 0, "r" * 1024)


@pytest.mark.full(keep=1)
@pytest.mark.parametrize("where", [None, "aeron:ipc?term-length=64k"], ids=["udp", "ipc"])
def test_a_revoked_stream_ends_at_once(client, where):
    publication, subscription = open_stream(client, where)
    image = subscription.images[0]
    written(publication, b"never read")
    publication.revoke()
    until(lambda: image.is_closed, "the image to go")
    assert image.is_publication_revoked
    assert not image.is_end_of_stream or image.position > 0


def test_session_ids_are_assigned_and_a_rejected_command_is_an_error(client):
    first = client.next_session_id(STREAM_ID)
    assert client.next_session_id(STREAM_ID) != first
    publication = client.add_exclusive_publication(f"{channel()}|session-id={first}", STREAM_ID)
    assert publication.session_id == first
    registration_id = client.async_add_publication("aeron:udp?endpoint=nowhere:at-all", STREAM_ID)
    with pytest.raises(RegistrationError) as refusal:
        until(lambda: client.get_publication(registration_id), "the refusal")
    assert refusal.value.correlation_id == registration_id


def test_a_shared_publication_keeps_both_of_its_ids(client):
    where = channel()
    first = client.add_publication(where, STREAM_ID)
    second = client.add_publication(where, STREAM_ID)
    assert (first.is_original, second.is_original) == (True, False)
    assert second.original_registration_id == first.registration_id != second.registration_id
    assert first.session_id == second.session_id


def test_a_shared_publication_has_the_destinations_of_the_first_one(client):
    control, port = free_ports(2)
    manual = f"aeron:udp?control=127.0.0.1:{control}|control-mode=manual"
    first, second = (client.add_publication(manual, STREAM_ID) for _ in range(2))
    assert not second.is_original
    where = f"aeron:udp?endpoint=127.0.0.1:{port}"
    second.remove_destination_by_id(second.add_destination(where))
    second.add_destination(where)
    first.remove_destination(where)


def test_the_heartbeat_counter_names_the_client(client):
    client.add_counter(1101)

    def label():
        (found,) = [item.label for item in client.counters if item.type_id == 11]
        return found

    until(lambda: "name=ours" in label(), "the signature")
    written_at = client.counters.find(11, client.client_id)
    before = client.counters.value(written_at)
    until(lambda: client.counters.value(written_at) > before, "the next heartbeat")
    assert label().count("name=ours") == 1
    assert label().startswith(f"client-heartbeat: id={client.client_id} name=ours version=1.53.0 ")


@pytest.mark.full(keep=1)
@pytest.mark.parametrize("is_exclusive", [True, False], ids=["exclusive", "concurrent"])
def test_reserved_values_are_transmitted(client, is_exclusive):
    publication, subscription = open_stream(client, is_exclusive=is_exclusive)
    for message in MESSAGES[:8]:
        written(publication, message, reserved_value=lambda frame: zlib.crc32(frame[32:]))
    seen = []

    def handler(payload, header):
        seen.append(bytes(payload))
        assert header.reserved_value == zlib.crc32(payload)

    def is_all_here():
        subscription.poll(handler)
        return sum(map(len, seen)) >= sum(map(len, MESSAGES[:8]))

    until(is_all_here, "delivery")
    assert b"".join(seen) == b"".join(MESSAGES[:8])


def test_every_kind_of_poll_reads_the_same_bytes(client):
    where = channel()
    ways = [client.add_subscription(where, STREAM_ID) for _ in range(5)]
    publication = client.add_exclusive_publication(where, STREAM_ID)
    until(lambda: all(each.images for each in ways), "images")
    seen = [bytearray() for _ in ways]
    batch, sums = FragmentBatch(), np.zeros(5, np.int64)
    expected = b"".join(MESSAGES[:40])

    def controlled(payload, header):
        seen[1].extend(payload)
        return Action.COMMIT

    def raw(file, file_offset, length, session_id, term_id):
        block, at = os.pread(file.fileno(), length, file_offset), 0
        while at < len(block):
            size = int.from_bytes(block[at : at + 4], "little")
            if block[at + 6] == 1:
                seen[4].extend(block[at + 32 : at + size])
            at += (size + 31) // 32 * 32

    def poll_all():
        ways[0].poll(lambda payload, header: seen[0].extend(payload))
        ways[1].controlled_poll(controlled)
        ways[2].poll_batch(batch)
        seen[2].extend(batch.payload[: batch.used_bytes])
        ways[3].poll_kernel(count_bytes, sums)
        ways[4].raw_poll(raw, 65_536)

    for message in MESSAGES[:40]:
        until(lambda message=message: poll_all() or publication.offer(message) > 0, "offering")
    reached = publication.position
    until(
        lambda: poll_all() or all(each.images[0].position == reached for each in ways), "delivery"
    )
    assert [bytes(seen[way]) for way in (0, 1, 2, 4)] == [expected] * 4
    assert sums[1:3].tolist() == [len(expected), sum(expected)]
