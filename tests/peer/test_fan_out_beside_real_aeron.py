"""One stream to two subscribers, with this driver and the real one at either end."""

from contextlib import contextmanager

import pytest

from tests.peer.ports import free_ports
from tests.peer.streams import MESSAGES, OurClient, RealClient, until
from windtunnel.driver.media_driver.context import SHARED, Context
from windtunnel.driver.media_driver.media_driver import MediaDriver

pyaeron = pytest.importorskip("pyaeron", reason="the real Aeron (pyaeron) is not installed")
pytestmark = pytest.mark.peer

START = "init-term-id=-2|term-id=-2|term-offset=0|term-length=64k"


@contextmanager
def our_driver(folder):
    context = Context(
        dir=folder / "ours", threading_mode=SHARED, shared_idle_strategy="sleep-ns",
        shared_idle_init_args="50us",
    )  # fmt: skip
    with MediaDriver(context):
        yield context.dir


@contextmanager
def real_driver(folder):
    with pyaeron.MediaDriver(dir=str(folder / "real"), threading="shared"):
        yield folder / "real"


def deliver_to_all(writer, publication, readers):
    """Send all messages while all readers poll. Returns the messages of each reader."""
    until(lambda: writer.is_connected(publication), "connecting")

    def poll_all():
        for reader in readers:
            reader.poll()

    for message in MESSAGES:

        def is_taken(message=message):
            poll_all()
            return publication.offer(message) > 0

        until(is_taken, "offering")

    def is_done():
        poll_all()
        return all(len(reader.messages) >= len(MESSAGES) for reader in readers)

    until(is_done, "delivery")
    publication.close()
    return [reader.messages for reader in readers]


@pytest.mark.parametrize("strategy", ["min", "tagged,g:7/2"])
@pytest.mark.parametrize("publishing", ["ours", "real"])
def test_a_dynamic_channel_serves_subscribers_of_the_other_driver(tmp_path, publishing, strategy):
    control, *ports = free_ports(3)
    channel = (
        f"aeron:udp?control=127.0.0.1:{control}|control-mode=dynamic|fc={strategy},t:5s|{START}"
    )
    with our_driver(tmp_path) as ours, real_driver(tmp_path) as real:
        ends = OurClient(ours), RealClient(real)
        writer, reader = ends if publishing == "ours" else reversed(ends)
        publication = writer.publish(channel, is_exclusive=True)
        readers = [
            reader.subscribe(
                f"aeron:udp?endpoint=127.0.0.1:{port}|control=127.0.0.1:{control}|gtag=7|group=true"
            )
            for port in ports
        ]
        until(lambda: all_connected(readers), "images")
        assert deliver_to_all(writer, publication, readers) == [MESSAGES] * 2
        for end in ends:
            end.close()


def all_connected(readers):
    for reader in readers:
        reader.poll()
    return all(reader._image is not None for reader in readers)


def test_a_manual_channel_serves_both_drivers_at_once(tmp_path):
    ports = free_ports(2)
    with our_driver(tmp_path) as ours, real_driver(tmp_path) as real:
        ends = OurClient(ours), RealClient(real)
        where = [f"aeron:udp?endpoint=127.0.0.1:{port}" for port in ports]
        readers = [end.subscribe(channel) for end, channel in zip(ends, where, strict=True)]
        writer = ends[0]
        publication = writer.publish(
            f"aeron:udp?control-mode=manual|fc=min|{START}", is_exclusive=False
        )
        for channel in where:
            publication.add_destination(channel)
        until(lambda: all_connected(readers), "images")
        assert deliver_to_all(writer, publication, readers) == [MESSAGES] * 2
        for end in ends:
            end.close()
