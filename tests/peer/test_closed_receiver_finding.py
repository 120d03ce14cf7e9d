"""A receiver that closes its socket: see docs/findings/closed-receiver.md."""

import socket
import time

import pytest

from tests.naive import wire
from tests.peer.driver_facts import DriverFacts
from tests.peer.processes import real_driver_process
from tests.peer.streams import STREAM_ID, until
from tests.peer.test_findings import our_driver_process
from windtunnel.driver.client import Aeron, ClientContext

pytest.importorskip("pyaeron", reason="the real Aeron (pyaeron) is not installed")
pytestmark = pytest.mark.peer

SND_POS = 2
SHORT_SENDS = 16
CONNECTION_TIMEOUT_S, LINGER_TIMEOUT_S = 1, 0.2
SETTINGS = {
    "AERON_PUBLICATION_CONNECTION_TIMEOUT": f"{CONNECTION_TIMEOUT_S}s",
    "AERON_PUBLICATION_LINGER_TIMEOUT": f"{round(LINGER_TIMEOUT_S * 1_000)}ms",
    "AERON_TIMER_INTERVAL": "100ms", "AERON_THREADING_MODE": "SHARED",
    "AERON_SHARED_IDLE_STRATEGY": "sleep-ns",
}  # fmt: skip
CHANNEL = "aeron:udp?endpoint=127.0.0.1:{}|term-length=64k|init-term-id=0|term-id=0|term-offset=0"


@pytest.mark.parametrize(
    ("driver", "is_real"),
    [(real_driver_process, True), (our_driver_process, False)],
    ids=["real", "ours"],
)
def test_messages_after_a_receiver_has_closed_its_socket(tmp_path, driver, is_real):
    directory = tmp_path / "aeron"
    context = ClientContext(dir=directory, driver_timeout_ms=120_000)
    with driver(directory, **SETTINGS), Aeron(context=context) as client:
        publication = abandoned(client)
        facts = DriverFacts(directory)
        if is_real:
            until(lambda: facts.total(SHORT_SENDS) > 1_000, "short sends")
            until_later(CONNECTION_TIMEOUT_S * 3)
            assert (publication.is_connected, facts.values(SND_POS)) == (True, [0])
        else:
            until(lambda: not publication.is_connected, "the connection timeout")
            assert facts.values(SND_POS) == [publication.position]
        publication.close()
        if is_real:
            until_later(LINGER_TIMEOUT_S * 10)
            assert logs(directory)
        else:
            until(lambda: not logs(directory), "the log to go")


def abandoned(client):
    """Return a publication with five messages, whose only receiver has closed its socket."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as receiver:
        receiver.bind(("127.0.0.1", 0))
        receiver.settimeout(10)
        port = receiver.getsockname()[1]
        publication = client.add_exclusive_publication(CHANNEL.format(port), STREAM_ID)
        _, publisher = receiver.recvfrom(65_536)
        fields = (wire.SM, publication.session_id, STREAM_ID, 0, 0, 16_384, 1)
        receiver.sendto(wire.pack("status_message", 36, 0, 0, *fields), publisher)
        until(lambda: publication.is_connected, "connecting")
    for _ in range(5):
        assert publication.offer(b"x" * 1_000) > 0
    return publication


def until_later(seconds):
    end_s = time.monotonic() + seconds
    until(lambda: time.monotonic() > end_s, "the time to pass")


def logs(directory):
    return [*directory.glob("publications/*.logbuffer")]
