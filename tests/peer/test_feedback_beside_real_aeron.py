"""Feedback of this driver and the real one to a publication that is a socket of the test."""

import socket

import pytest

from tests.naive import wire
from tests.peer.ports import free_ports
from tests.peer.streams import until
from tests.peer.test_fan_out_beside_real_aeron import our_driver, real_driver
from windtunnel.driver.client.aeron import Aeron

pytest.importorskip("pyaeron", reason="the real Aeron (pyaeron) is not installed")
pytestmark = pytest.mark.peer

STREAM, SESSION, TERM_ID = 1001, 100, 5
both = pytest.mark.parametrize("driver", [our_driver, real_driver])


def setup():
    return wire.pack(
        "setup", 40, 0, 0, wire.SETUP, 0, SESSION, STREAM, TERM_ID, TERM_ID, 65_536, 1_408, 0
    )


@pytest.fixture
def sender():
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as made:
        made.bind(("127.0.0.1", 0))
        made.settimeout(10)
        yield made


def next_of_kind(sender, kind):
    while True:
        frame = sender.recv(65_536)
        if frame[6] == kind:
            return frame


@both
@pytest.mark.parametrize(("option", "tag"), [("", -1), ("|gtag=7", 7)])
def test_a_rejection_has_the_group_tag_or_none(tmp_path, sender, driver, option, tag):
    (port,) = free_ports(1)
    with driver(tmp_path) as directory, Aeron(directory) as client:
        channel = f"aeron:udp?endpoint=127.0.0.1:{port}{option}"
        subscription = client.add_subscription(channel, STREAM)
        sender.sendto(setup(), ("127.0.0.1", port))
        until(lambda: subscription.is_connected, "an image")
        subscription.images[0].reject("no")
        frame = next_of_kind(sender, wire.ERR)
        assert int.from_bytes(frame[24:32], "little", signed=True) == tag
        assert bool(frame[5] & 0x08) == bool(option)
