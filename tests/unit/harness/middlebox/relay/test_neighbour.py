"""ARP requests for a host's MAC address, compared with scapy's reading."""

import pytest
from scapy.layers.l2 import ARP, Ether
from scapy.packet import raw

from windtunnel.harness.middlebox.relay import neighbour
from windtunnel.harness.middlebox.relay.neighbour import arp_answer, arp_request, find_neighbour
from windtunnel.harness.middlebox.relay.port import Port, PortError, open_port

OWN, HOST = bytes.fromhex("020000000001"), bytes.fromhex("020000000002")


class Wire:
    """Replacement for a socket, which returns the given packets."""

    def __init__(self, *packets):
        self.packets = list(packets)
        self.sent = []

    def settimeout(self, _):
        pass

    def send(self, packet):
        self.sent.append(packet)

    def recv(self, _):
        if not self.packets:
            raise TimeoutError
        return self.packets.pop(0)


def answer(address, mac=HOST):
    return raw(Ether(src=mac, dst=OWN) / ARP(op=2, hwsrc=mac, psrc=address, pdst="10.64.0.2"))


def port(*packets):
    return Port(name="left", socket=Wire(*packets), mac=OWN, address="10.64.0.2", mtu=1500)


def test_a_request_is_read_as_an_arp_request():
    packet = Ether(arp_request(OWN, "10.64.0.2", "10.64.0.3"))
    assert packet.dst == "ff:ff:ff:ff:ff:ff"
    assert packet[ARP].op == 1
    assert (packet[ARP].psrc, packet[ARP].pdst) == ("10.64.0.2", "10.64.0.3")
    assert packet[ARP].hwsrc == "02:00:00:00:00:01"


def test_accepts_only_the_reply_for_the_requested_address():
    assert arp_answer(answer("10.64.0.3"), "10.64.0.3") == HOST
    assert arp_answer(answer("10.64.0.4"), "10.64.0.3") is None
    assert arp_answer(answer("10.64.0.3")[:30], "10.64.0.3") is None
    assert arp_answer(bytes(60), "10.64.0.3") is None


def test_repeats_the_request_until_the_host_replies():
    found = find_neighbour(port(answer("10.64.0.9"), answer("10.64.0.3")), "10.64.0.3")
    assert found == HOST


def test_a_reply_that_arrived_while_the_process_was_stopped_is_read(monkeypatch):
    times_s = iter([0.0, 0.0, 0.0])
    monkeypatch.setattr(neighbour.time, "monotonic", lambda: next(times_s, 6.0))
    assert find_neighbour(port(answer("10.64.0.3")), "10.64.0.3") == HOST


def test_names_the_host_that_did_not_reply():
    with pytest.raises(PortError, match=r"left: 10\.64\.0\.3 did not answer ARP within 0\.01 s"):
        find_neighbour(port(), "10.64.0.3", timeout_s=0.01)


def test_refuses_invalid_addresses():
    with pytest.raises(PortError, match="IPv6 hosts are not supported"):
        find_neighbour(port(), "fd00::3")


def test_a_missing_interface_is_named():
    with pytest.raises(PortError, match=r"nowhere0|CAP_NET_RAW"):
        open_port("nowhere0")
