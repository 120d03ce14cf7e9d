"""The same channels in this driver and the real one have the same effects for a client."""

import socket
import time

import pytest

from tests.peer.driver_facts import DriverFacts
from tests.peer.ports import free_ports
from tests.peer.processes import process
from tests.peer.streams import until
from tests.peer.test_fan_out_beside_real_aeron import our_driver, real_driver
from windtunnel.driver.client.aeron import Aeron
from windtunnel.driver.client.errors import RegistrationError
from windtunnel.driver.logbuffer import descriptor
from windtunnel.driver.logbuffer.log_buffer import LogBuffer

pytest.importorskip("pyaeron", reason="the real Aeron (pyaeron) is not installed")
pytestmark = pytest.mark.peer

STREAM = 1001
both = pytest.mark.parametrize("driver", [our_driver, real_driver])


@both
def test_a_multicast_publication_shows_the_socket_that_receives(tmp_path, driver):
    (port,) = free_ports(1)
    with driver(tmp_path) as directory, Aeron(directory) as client:
        channel = f"aeron:udp?endpoint=224.20.30.39:{port}|interface=127.0.0.1"
        publication = client.add_publication(channel, STREAM)
        assert publication.local_socket_addresses == [f"0.0.0.0:{port}"]


@both
def test_the_channel_that_opened_an_endpoint_determines_windows(tmp_path, driver):
    (port,) = free_ports(1)
    channel = f"aeron:udp?endpoint=127.0.0.1:{port}"
    with driver(tmp_path) as directory, Aeron(directory) as client:
        client.add_subscription(f"{channel}|tags=5|rcv-wnd=16k", STREAM + 1)
        subscription = client.add_subscription("aeron:udp?tags=5|rcv-wnd=32k", STREAM)
        client.add_publication(channel, STREAM)
        until(lambda: subscription.is_connected, "connecting")
        (path,) = (directory / "images").iterdir()
        log = LogBuffer.map(path)
        window = log.log[log.meta_at + descriptor.RECEIVER_WINDOW_LENGTH :][:4].view("<i4")[0]
        log.close()
        assert window == 16 * 1024


@both
def test_the_error_log_names_the_error_of_the_system(tmp_path, driver):
    with (
        socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as taken,
        driver(tmp_path) as directory,
        Aeron(directory) as client,
    ):
        taken.bind(("127.0.0.1", 0))
        (port,) = free_ports(1)
        channel = f"aeron:udp?endpoint=127.0.0.1:{port}"
        client.add_subscription(channel, STREAM)
        for refused in (
            f"aeron:udp?endpoint=127.0.0.1:{taken.getsockname()[1]}",
            f"aeron:udp?endpoint=192.0.2.1:{port}",
            f"{channel}|reliable=false",
            "aeron:udp",
        ):
            with pytest.raises(RegistrationError):
                client.add_subscription(refused, STREAM)
        assert [text.partition("\n")[0] for text in DriverFacts(directory).errors()] == [
            "(98) Address already in use",
            "(99) Cannot assign requested address",
            "(22) Invalid argument",
            "(-1) invalid channel",
        ]


@pytest.mark.parametrize(("text", "is_connected"), [("", False), ("false", False), ("true", True)])
def test_the_real_driver_of_the_benchmark_reads_its_environment(tmp_path, text, is_connected):
    directory = tmp_path / "real"
    settings = {"AERON_SPIES_SIMULATE_CONNECTION": text} if text else {}
    with process("windtunnel.harness.bench.c_driver", AERON_DIR=str(directory), **settings):
        until(lambda: (directory / "cnc.dat").exists(), "the driver to start")
        with Aeron(directory) as client:
            (port,) = free_ports(1)
            channel = f"aeron:udp?endpoint=127.0.0.1:{port}"
            publication = client.add_publication(channel, STREAM)
            client.add_subscription(f"aeron-spy:{channel}", STREAM)
            if is_connected:
                until(lambda: publication.is_connected, "the simulated connection")
            else:
                time.sleep(0.5)
                assert not publication.is_connected
