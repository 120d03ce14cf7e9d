"""The addresses from which our driver and the real one send, and at which they receive."""

import socket

import pytest

from tests.peer.ports import free_ports
from tests.peer.streams import until
from tests.peer.test_fan_out_beside_real_aeron import our_driver, real_driver
from windtunnel.driver.client.aeron import Aeron
from windtunnel.driver.client.errors import RegistrationError

pytest.importorskip("pyaeron", reason="the real Aeron (pyaeron) is not installed")
pytestmark = pytest.mark.peer

STREAM = 1001
both = pytest.mark.parametrize("driver", [our_driver, real_driver])


def connected(client, subscribed, published):
    """Connect a stream. Returns the publication and the image's source identity."""
    subscription = client.add_subscription(subscribed, STREAM)
    publication = client.add_publication(f"{published}|term-length=64k", STREAM)
    until(lambda: publication.is_connected and subscription.images, "connecting")
    source = subscription.images[0].source_identity
    until(lambda: publication.offer(b"message") > 0, "offering")
    seen = []

    def is_received():
        subscription.poll(lambda payload, header: seen.append(bytes(payload)))
        return seen == [b"message"]

    until(is_received, "delivery")
    return publication, source


@both
def test_a_subscription_to_any_ipv6_address_receives_ipv4(tmp_path, driver):
    (port,) = free_ports(1)
    with driver(tmp_path) as directory, Aeron(directory) as client:
        publication, source = connected(
            client, f"aeron:udp?endpoint=[::]:{port}", f"aeron:udp?endpoint=127.0.0.1:{port}"
        )
        (address,) = publication.local_socket_addresses
        assert source == f"[::ffff:127.0.0.1]:{address.rpartition(':')[2]}"


@both
def test_a_multicast_publication_sends_from_a_port_of_the_system(tmp_path, driver):
    port, unused = free_ports(2)
    with driver(tmp_path) as directory, Aeron(directory) as client:
        channel = f"aeron:udp?endpoint=224.20.30.39:{port}|interface=127.0.0.1"
        _, source = connected(client, channel, f"{channel}:{unused}")
        host, _, source_port = source.partition(":")
        assert host == "127.0.0.1"
        assert int(source_port) not in (port, unused)


@both
def test_the_port_of_an_interface_precedes_its_prefix(tmp_path, driver):
    port, local = free_ports(2)
    with driver(tmp_path) as directory, Aeron(directory) as client:
        channel = f"aeron:udp?endpoint=127.0.0.1:{port}"
        publication, source = connected(client, channel, f"{channel}|interface=127.0.0.0:{local}/8")
        assert publication.local_socket_addresses == [f"127.0.0.1:{local}"]
        assert source == f"127.0.0.1:{local}"


@both
@pytest.mark.skipif(not socket.has_ipv6, reason="this machine has no IPv6")
def test_ipv6_addresses_have_brackets_everywhere(tmp_path, driver):
    (port,) = free_ports(1)
    with driver(tmp_path) as directory, Aeron(directory) as client:
        channel = f"aeron:udp?endpoint=[0:0::1]:{port}"
        publication, source = connected(client, channel, channel)
        assert publication.local_socket_addresses == [source]
        assert source.startswith("[::1]:")
        labels = [each.label for each in client.counters if each.type_id == 7]
        assert labels == [f"rcv-channel: {channel} [::1]:{port}"]


@both
@pytest.mark.skipif(not socket.has_ipv6, reason="this machine has no IPv6")
@pytest.mark.parametrize("interface", ["[::1]", "[::]"])
def test_an_interface_determines_the_family_of_manual_destinations(tmp_path, driver, interface):
    (port,) = free_ports(1)
    with driver(tmp_path) as directory, Aeron(directory) as client:
        subscription = client.add_subscription(f"aeron:udp?endpoint=[::1]:{port}", STREAM)
        channel = f"aeron:udp?control-mode=manual|interface={interface}"
        publication = client.add_publication(channel, STREAM)
        publication.add_destination(f"aeron:udp?endpoint=[::1]:{port}")
        until(lambda: publication.is_connected and subscription.images, "connecting")
        (address,) = publication.local_socket_addresses
        assert address.startswith(f"{interface}:")


@both
def test_an_interface_must_exist_beside_a_control_address(tmp_path, driver):
    port, control = free_ports(2)
    with driver(tmp_path) as directory, Aeron(directory) as client:
        channel = f"aeron:udp?endpoint=127.0.0.1:{port}|control=127.0.0.1:{control}"
        client.add_subscription(f"{channel}|interface=127.0.0.1", STREAM)
        with pytest.raises(RegistrationError):
            client.add_subscription(f"{channel}|interface=192.0.2.77", STREAM)
