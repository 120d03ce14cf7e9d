"""A port after the prefix length of an interface: see docs/findings/prefix-before-the-port.md."""

import signal

import pytest

from tests.peer.ports import free_port
from tests.peer.processes import real_driver_process
from tests.peer.streams import STREAM_ID, until
from tests.peer.test_fan_out_beside_real_aeron import our_driver
from windtunnel.driver.client import Aeron, ClientContext, RegistrationError
from windtunnel.driver.command.command_type import ErrorCode

pytest.importorskip("pyaeron", reason="the real Aeron (pyaeron) is not installed")
pytestmark = pytest.mark.peer

INTERFACE = "interface=127.0.0.0/8:0"


def channel():
    return f"aeron:udp?endpoint=127.0.0.1:{free_port()}|{INTERFACE}"


def test_the_real_driver_crashes(tmp_path):
    directory = tmp_path / "aeron"
    context = ClientContext(dir=directory, error_handler=lambda error: None)
    with real_driver_process(directory) as driver, Aeron(context=context) as client:
        client.async_add_subscription(channel(), STREAM_ID)
        until(lambda: driver.poll() is not None, "the end of the driver")
        assert driver.returncode == -signal.SIGSEGV


def test_our_driver_refuses_the_channel(tmp_path):
    with our_driver(tmp_path) as directory, Aeron(directory) as client:
        with pytest.raises(RegistrationError) as refusal:
            client.add_subscription(channel(), STREAM_ID)
        assert refusal.value.code == ErrorCode.INVALID_CHANNEL
        assert client.add_subscription("aeron:ipc", STREAM_ID).registration_id >= 0
