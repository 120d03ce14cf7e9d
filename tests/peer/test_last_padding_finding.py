"""Messages over the last padding: see docs/findings/message-over-the-last-padding.md."""

import time

import pytest

from tests.peer.ports import free_port
from tests.peer.streams import STREAM_ID, until
from tests.peer.test_fan_out_beside_real_aeron import real_driver
from windtunnel.driver.client import Aeron
from windtunnel.driver.logbuffer import publication_result as result

pyaeron = pytest.importorskip("pyaeron", reason="the real Aeron (pyaeron) is not installed")
pytestmark = pytest.mark.peer

LAST_TERM = "term-length=64k|init-term-id=0|term-id=2147483647|term-offset=65280"
READING_S = 0.3
"""Time in which a message would be read."""


class Ending:
    """A stream whose last 256 bytes are left."""

    def __init__(self, client, publisher, channel):
        self.subscription = client.add_subscription(channel, STREAM_ID)
        joined = f"{channel}{'|' if '?' in channel else '?'}{LAST_TERM}"
        self.publication = publisher.add_exclusive_publication(joined, STREAM_ID)
        until(lambda: self.subscription.images and self.publication.is_connected, "connecting")
        self.read = []

    def read_all(self):
        deadline_s = time.monotonic() + READING_S
        while time.monotonic() < deadline_s:
            self.subscription.poll(lambda payload, header: self.read.append(bytes(payload)))


@pytest.fixture(params=["aeron:udp", "aeron:ipc"])
def channel(request):
    return {"aeron:ipc": "aeron:ipc"}.get(
        request.param, f"aeron:udp?endpoint=127.0.0.1:{free_port()}"
    )


def test_the_real_client_accepts_a_message_that_is_never_delivered(tmp_path, channel):
    with real_driver(tmp_path) as directory, Aeron(directory) as client:
        publisher = pyaeron.Aeron(dir=str(directory))
        stream = Ending(client, publisher, channel)
        assert stream.publication.offer(bytes(32)) > 0
        stream.read_all()
        with pytest.raises(pyaeron.MaxPositionExceeded):
            stream.publication.offer(bytes(500))
        stream.read_all()
        assert stream.publication.offer(b"second".ljust(32)) > 0
        stream.read_all()
        assert stream.read == [bytes(32)]
        publisher.close()


def test_our_client_refuses_it(tmp_path, channel):
    with real_driver(tmp_path) as directory, Aeron(directory) as client:
        stream = Ending(client, client, channel)
        assert stream.publication.offer(bytes(32)) == stream.publication.position
        stream.read_all()
        for message in (bytes(500), b"second".ljust(32)):
            assert stream.publication.offer(message) == result.MAX_POSITION_EXCEEDED
        stream.read_all()
        assert stream.read == [bytes(32)]
