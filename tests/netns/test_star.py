"""The relay with four ports between real namespaces forwards and counts every datagram."""

import os

import pytest

from tests.netns.test_relay import PORT, SOURCE_PORT, Bench, unpacked
from tests.unit.harness.middlebox.synthetic_case import case, data, fault, setup
from windtunnel.harness.artifact.middlebox.decision import read_decisions
from windtunnel.harness.artifact.middlebox.ledger import Ledger
from windtunnel.harness.middlebox.__main__ import EXIT_HARNESS
from windtunnel.harness.orchestrate.labs import privileges
from windtunnel.harness.scenario.resolved.case import HostCase, LinkCase
from windtunnel.harness.topology.model import build

pytestmark = [
    pytest.mark.netns,
    pytest.mark.skipif(
        bool(privileges.missing()), reason="network namespaces need root or CAP_NET_ADMIN"
    ),
]

NAMES = ("a", "b", "c", "d")
LINKS = (("a", "b"), ("a", "c"), ("b", "c"))
"""Host d has no link."""
GROUP = "224.20.30.39"

RECEIVE_GROUP = """
import socket, struct, sys, time
port, path, own = int(sys.argv[1]), sys.argv[2], sys.argv[3]
receiver = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
receiver.bind(("0.0.0.0", port))
receiver.setsockopt(socket.IPPROTO_IP, socket.IP_ADD_MEMBERSHIP,
                  socket.inet_aton(sys.argv[4]) + socket.inet_aton(own))
print("ready", flush=True)
with open(path, "wb", buffering=0) as file:
    while True:
        datagram = receiver.recv(65536)
        file.write(struct.pack("<qi", time.time_ns(), len(datagram)) + datagram)
"""


class Star(Bench):
    """A lab of four hosts with a relay between them."""

    def __init__(self, folder, *faults):
        self.prepare(folder, build(f"star-test-{os.getpid()}", NAMES, NAMES))
        hosts = tuple(HostCase(name=each, address=self.lab.address(each)) for each in NAMES)
        links = tuple(LinkCase(between=each) for each in LINKS)
        self.case = case(*faults).model_copy(update={"hosts": hosts, "links": links})
        self.case.write(self.run_dir.case)

    def receive_group(self, place):
        path = self.folder / f"{place}.group"
        name = f"{place}-group"
        own = self.lab.address(place)
        started = self.spawn(place, name, "-c", RECEIVE_GROUP, str(PORT), str(path), own, GROUP)
        self.await_ready(started, name)
        return path


@pytest.fixture
def star(tmp_path):
    made = []

    def make(*faults):
        made.append(Star(tmp_path, *faults))
        return made[-1]

    yield make
    for each in made:
        each.lab.down()


def numbered(count, first=0):
    return [data(64 * (first + index)) for index in range(count)]


def test_links_are_independent_and_every_datagram_is_counted(star):
    made = star(fault("drop", 0.5, links=("a->c",)))
    relay = made.relay()
    made.await_ready(relay, "relay")
    received = {place: made.receive(place, PORT) for place in ("b", "c", "d")}
    sent = [setup(), *numbered(100)]
    for near, far in (("a", "b"), ("a", "c"), ("b", "c"), ("a", "d"), ("d", "a")):
        made.send(near, far, PORT, SOURCE_PORT, sent)
    made.end(relay, received)
    decisions = read_decisions(made.run_dir.decisions)
    dropped = {int(each["position"]) for each in decisions}
    assert set(decisions["link"].tolist()) == {2}
    assert 20 < len(dropped) < 80
    assert [frames for _, frames in unpacked(received["b"])] == sent
    passed = [each for at, each in enumerate(numbered(100)) if 64 * at not in dropped]
    assert [frames for _, frames in unpacked(received["c"])] == [setup(), *passed, *sent]
    assert unpacked(received["d"]) == []
    ledger = Ledger.read(made.run_dir.ledger)
    assert list(ledger.links) == ["a->b", "b->a", "a->c", "c->a", "b->c", "c->b"]
    assert {name: link.datagrams_in for name, link in ledger.links.items()} == {
        **dict.fromkeys(ledger.links, 0), "a->b": 101, "a->c": 101, "b->c": 101,
    }  # fmt: skip
    assert ledger.links["a->c"].datagrams_out == 101 - len(dropped)
    assert (ledger.ports["a"].unlinked, ledger.ports["d"].unlinked) == (101, 101)
    _assert_all_counted(ledger)


def test_a_multicast_datagram_is_sent_on_each_link_of_its_sender(star):
    made = star(fault("drop", links=("a->c",)))
    relay = made.relay()
    made.await_ready(relay, "relay")
    received = {place: made.receive_group(place) for place in ("b", "c", "d")}
    sent = [setup(), *numbered(50)]
    path = made.folder / "a.send"
    path.write_bytes(made.packed(sent))
    argv = ["-c", made.SEND, GROUP, str(PORT), str(SOURCE_PORT), str(path)]
    assert made.spawn("a", "a-send", *argv).wait(30) == 0
    made.end(relay, received)
    found = {place: [frames for _, frames in unpacked(path)] for place, path in received.items()}
    assert found == {"b": sent, "c": [setup()], "d": []}
    ledger = Ledger.read(made.run_dir.ledger)
    assert (ledger.links["a->b"].datagrams_in, ledger.links["a->c"].datagrams_in) == (51, 51)
    assert ledger.links["a->c"].datagrams_dropped == 50
    assert ledger.ports["a"].copies == 51
    _assert_all_counted(ledger)


def _assert_all_counted(ledger):
    """Assert that each packet of a port is a stray, unlinked, or on a link that begins there."""
    for host, port in ledger.ports.items():
        links = [link for name, link in ledger.links.items() if name.startswith(f"{host}->")]
        assert port.handed_on == sum(link.datagrams_in + link.other_in for link in links)
        assert all(link.unaccounted == 0 and link.kernel_drops == 0 for link in links)


def test_a_missing_interface_is_refused(star):
    made = star()
    relay = made.relay(left="to-a", right="to-b")
    assert relay.wait(60) == EXIT_HARNESS
    assert "2 interfaces: expected one for each of the hosts a, b, c, d" in relay.tail()
