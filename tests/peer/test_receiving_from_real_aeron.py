"""Subscriptions of this driver to multi-destination publications of the real one."""

import pytest

from tests.peer.ports import free_port
from tests.peer.streams import MESSAGES, OurClient, RealClient, until
from tests.peer.test_real_aeron_beside_ours import ends, our_driver, real_driver
from windtunnel.harness.dissect.driver_files.cnc_file import map_cnc

pyaeron = pytest.importorskip("pyaeron", reason="the real Aeron (pyaeron) is not installed")
pytestmark = pytest.mark.peer

RECEIVER_POSITION, PER_IMAGE = 5, 10


def send(publication, *readers):
    """Offer all messages while all readers poll, because the slowest one limits the sender."""

    def has_all():
        for reader in readers:
            reader.poll()
        return all(len(reader.messages) >= len(MESSAGES) for reader in readers)

    for message in MESSAGES:
        until(lambda message=message: has_all() or publication.offer(message) > 0, "offering")
    until(has_all, "delivery")


def values_of(directory, type_id):
    cnc = map_cnc(directory / "cnc.dat")
    count = cnc.counter_count()
    return cnc.values["value"][:count][cnc.metadata["type_id"][:count] == type_id].tolist()


def until_position(directory, positions):
    """Wait for positions, which the conductor updates in a later duty cycle."""
    until(lambda: values_of(directory, RECEIVER_POSITION) == positions, "rcv-pos")


@pytest.mark.parametrize("more", ["", "|cc=cubic"])
def test_status_messages_add_a_destination_to_a_dynamic_publication_of_real_aeron(tmp_path, more):
    control = f"control=127.0.0.1:{free_port()}"
    with (
        real_driver(tmp_path) as far,
        our_driver(tmp_path) as near,
        ends(RealClient(far), OurClient(near), OurClient(near)) as (writer, one, two),
    ):
        channel = f"aeron:udp?{control}|control-mode=dynamic|fc=min|term-length=64k"
        publication = writer.publish(channel, is_exclusive=True)
        readers = [
            end.subscribe(f"aeron:udp?endpoint=127.0.0.1:{free_port()}|{control}{more}")
            for end in (one, two)
        ]
        until(lambda: publication.is_connected, "connecting")
        # The first receiver connects a dynamic publication; wait until the second has an image too.
        until(lambda: all(reader.poll() or reader._image for reader in readers), "two images")
        send(publication, *readers)
        assert [reader.messages for reader in readers] == [MESSAGES, MESSAGES]
        until_position(near, [publication.position] * 2)
        assert len(values_of(near, PER_IMAGE)) == (4 if more else 0)


def test_a_stream_of_two_destinations_continues_when_one_is_removed(tmp_path):
    places = [f"aeron:udp?endpoint=127.0.0.1:{free_port()}" for _ in range(2)]
    manual = "aeron:udp?control-mode=manual"
    with (
        real_driver(tmp_path) as far,
        our_driver(tmp_path) as near,
        ends(OurClient(far), OurClient(near)) as (writer, reading),
    ):
        publication = writer.publish(f"{manual}|fc=min|term-length=64k", is_exclusive=True)
        reader = reading.subscribe(manual)
        for place in places:
            reader._subscription.add_destination(place)
            publication.add_destination(place)
        until(lambda: publication.is_connected and not reader.poll() and reader._image, "an image")
        send(publication, reader)
        assert reader.messages == MESSAGES
        reader._subscription.remove_destination(places[0])
        reader.messages.clear()
        send(publication, reader)
        assert reader.messages == MESSAGES
        until_position(near, [publication.position])


def test_a_publisher_of_real_aeron_is_disconnected_when_its_image_is_rejected(tmp_path):
    with (
        real_driver(tmp_path) as far,
        our_driver(tmp_path) as near,
        ends(RealClient(far), OurClient(near)) as (writer, reading),
    ):
        channel = f"aeron:udp?endpoint=127.0.0.1:{free_port()}|term-length=64k"
        reader = reading.subscribe(channel)
        publication = writer.publish(channel, is_exclusive=True)
        until(lambda: not reader.poll() and reader._image and publication.is_connected, "an image")
        reader._image.reject("not today")
        until(lambda: not publication.is_connected, "the end of the connection")
