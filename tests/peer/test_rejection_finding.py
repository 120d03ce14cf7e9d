"""The longest reason for a rejection: see docs/findings/long-rejection-reason.md."""

import signal

import pytest

from tests.peer.ports import free_port
from tests.peer.processes import real_driver_process
from tests.peer.streams import STREAM_ID, until
from tests.peer.test_fan_out_beside_real_aeron import our_driver
from windtunnel.driver.client import Aeron, ClientContext

pytest.importorskip("pyaeron", reason="the real Aeron (pyaeron) is not installed")
pytestmark = pytest.mark.peer

REASON = "x" * 1_023


def image(client):
    channel = f"aeron:udp?endpoint=127.0.0.1:{free_port()}|term-length=64k"
    subscription = client.add_subscription(channel, STREAM_ID)
    client.add_exclusive_publication(channel, STREAM_ID)
    until(lambda: subscription.images, "an image")
    return subscription.images[0]


def test_the_real_driver_ends(tmp_path):
    directory = tmp_path / "aeron"
    context = ClientContext(dir=directory, error_handler=lambda error: None)
    with real_driver_process(directory) as driver, Aeron(context=context) as client:
        image(client).async_reject(REASON)
        until(lambda: driver.poll() is not None, "the end of the driver")
        assert driver.returncode == -signal.SIGSEGV


def test_our_driver_sends_the_reason(tmp_path):
    rejections = []
    with our_driver(tmp_path) as directory:
        context = ClientContext(dir=directory, publication_error_handler=rejections.append)
        with Aeron(context=context) as client:
            image(client).reject(REASON)
            until(lambda: rejections, "the publisher to be notified")
            assert rejections[0].message == REASON
