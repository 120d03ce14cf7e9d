"""ARP requests for a host's MAC address, compared with scapy's reading."""

import pytest
from scapy.layers.l2 import ARP, Ether
from scapy.packet import raw

from windtunnel.harness.middlebox.relay import neighbour
from windtunnel.harness.middlebox.relay.neighbour import arp_answer, arp_request, find_neighbour
from windtunnel.harness.middlebox.relay.port import Port, PortError, open_port

OWN, HOST = bytes.fromhex("020000000001"), bytes.fromhex("020000000002")


class Wire:
    """Stands in for a socket: answers with the packets it was given."""

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


def test_a_request_reads_as_one():
    packet = Ether(arp_request(OWN, "10.64.0.2", "10.64.0.3"))
    assert packet.dst == "ff:ff:ff:ff:ff:ff"
    assert packet[ARP].op == 1
    assert (packet[ARP].psrc, packet[ARP].pdst) == ("10.64.0.2", "10.64.0.3")
    assert packet[ARP].hwsrc == "02:00:00:00:00:01"


def test_takes_the_answer_for_the_address_asked():
    assert arp_answer(answer("10.64.0.3"), "10.64.0.3") == HOST
    assert arp_answer(answer("10.64.0.4"), "10.64.0.3") is None
    assert arp_answer(answer("10.64.0.3")[:30], "10.64.0.3") is None
    assert arp_answer(bytes(60), "10.64.0.3") is None


def test_asks_until_the_host_answers():
    found = find_neighbour(port(answer("10.64.0.9"), answer("10.64.0.3")), "10.64.0.3")
    assert found == HOST


def test_an_answer_that_came_while_this_process_stood_still_is_read(monkeypatch):
    times_s = iter([0.0, 0.0, 0.0])
    monkeypatch.setattr(neighbour.time, "monotonic", lambda: next(times_s, 6.0))
    assert find_neighbour(port(answer("10.64.0.3")), "10.64.0.3") == HOST


def test_says_who_did_not_answer():
    with pytest.raises(PortError, match=r"left: 10\.64\.0\.3 did not answer ARP within 0\.01 s"):
        find_neighbour(port(), "10.64.0.3", timeout_s=0.01)


def test_refuses_what_it_cannot_ask_for():
    with pytest.raises(PortError, match="IPv6 hosts are not supported"):
        find_neighbour(port(), "fd00::3")


def test_a_missing_interface_is_named():
    with pytest.raises(PortError, match=r"nowhere0|CAP_NET_RAW"):
        open_port("nowhere0")
