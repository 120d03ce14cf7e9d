"""Several simulated hosts: datagram delivery, the middlebox's counts, paused and killed drivers."""

from contextlib import contextmanager

import numpy as np
import pytest

from windtunnel.driver.channel.socket_address import SocketAddress, write_name
from windtunnel.driver.media import link
from windtunnel.harness.middlebox.engine.outbox import make_outbox
from windtunnel.harness.middlebox.engine.state import spread
from windtunnel.harness.scenario.resolved.case import Case, HostCase, Payload
from windtunnel.harness.scenario.resolved.link_case import LinkCase
from windtunnel.harness.simulator.network.in_flight import ENVELOPE_LENGTH
from windtunnel.harness.simulator.support import Unsupported
from windtunnel.harness.simulator.world.event_log import DATAGRAMS
from windtunnel.harness.simulator.world.turns import ManyHosts
from windtunnel.harness.simulator.world.world import open_world
from windtunnel.harness.simulator.world.world_state import (
    COPIES,
    LONGEST,
    RECEIVED_FROM,
    STRAYS,
    UNBOUND,
    UNLINKED,
)

ADDRESSES = {"pub": "10.0.0.1", "sub1": "10.0.0.2", "sub2": "10.0.0.3", "far": "10.0.0.4"}
LINKS = (("pub", "sub1"), ("pub", "sub2"), ("far", "sub2"))
GROUP, PORT = "224.20.30.39", 24_325
MS = 1_000_000
# A machine's first run compiles every kernel of the simulator.
pytestmark = pytest.mark.timeout(400)


@contextmanager
def world(folder):
    case = Case(
        name="star",
        about="",
        seed=1,
        fidelity="sim",
        hosts=tuple(HostCase(name=name, address=each) for name, each in ADDRESSES.items()),
        payload=Payload(path="", sha256="", length_bytes=0),
        traffic=(),
        faults=(),
        expect=(),
        wall_ns=10**9,
        links=tuple(LinkCase(between=each) for each in LINKS),
    )
    with open_world(case, folder) as network:
        yield network


def opened(host, address, port=PORT):
    """Open a mailbox of a host with an address, and return its index."""
    boxes = host.agents.links.mailboxes
    index = int(np.flatnonzero(boxes["is_open"] == 0)[-1])
    boxes[index].local_length = write_name(boxes[index].local, SocketAddress(address, port))
    boxes[index].is_open = 1
    return index


def send(host, mailbox, address, payload):
    name = np.zeros(28, dtype=np.uint8)
    length = write_name(name, SocketAddress(address, PORT))
    buf = np.frombuffer(payload, dtype=np.uint8)
    assert link.put_outbound(host.agents.links, mailbox, name, length, buf, 0, buf.size)


def received(host, mailbox):
    """Take the datagrams from a mailbox: (payload, source address, source port) each."""
    name, buf, found = np.zeros(28, dtype=np.uint8), np.zeros(2_048, dtype=np.uint8), []
    while True:
        length, _ = link.take_inbound(host.agents.links, mailbox, name, buf, 0, buf.size)
        if length == link.NOTHING:
            return found
        port = int(name[2]) << 8 | int(name[3])
        found.append((buf[:length].tobytes(), ".".join(map(str, name[4:8])), port))


def test_each_datagram_is_delivered_to_its_address(tmp_path):
    with world(tmp_path) as network:
        boxes = [opened(each, each.address) for each in network.hosts]
        pub, far = network.hosts[0], network.hosts[3]
        send(pub, boxes[0], ADDRESSES["sub2"], b"for sub2")
        send(pub, boxes[0], ADDRESSES["far"], b"no link there")
        send(pub, boxes[0], "10.0.0.99", b"no such host")
        send(far, boxes[3], ADDRESSES["sub2"], b"from far")
        network.run_step(network.now_ns + MS, MS)
        found = [received(each, box) for each, box in zip(network.hosts, boxes, strict=True)]
        assert found == [
            [],
            [],
            [(b"for sub2", ADDRESSES["pub"], PORT), (b"from far", ADDRESSES["far"], PORT)],
            [],
        ]
        assert network.between.ports[0].tolist() == [3, 1, 1, 0]
        assert network.between.ports[3].tolist() == [1, 0, 0, 0]
        assert network.between.engine.datagrams[:, 0].tolist() == [0, 0, 1, 0, 1, 0]


@pytest.mark.parametrize("address", ["10.0.0.1", "127.0.0.1"])
def test_a_datagram_to_an_own_address_stays_on_the_host(address, tmp_path):
    with world(tmp_path) as network:
        pub = network.hosts[0]
        box = opened(pub, ADDRESSES["pub"])
        other = opened(network.hosts[1], ADDRESSES["sub1"])
        send(pub, box, address, b"to itself")
        network.run_step(network.now_ns + MS, MS)
        assert received(pub, box) == [(b"to itself", ADDRESSES["pub"], PORT)]
        assert received(network.hosts[1], other) == []
        # The middlebox sees nothing of it, and so do captures.
        assert network.between.ports[0].tolist() == [0, 0, 0, 0]
        assert network.between.events.state[DATAGRAMS] == 0


def test_a_stream_of_localhost_stays_on_the_host(tmp_path):
    channel = f"aeron:udp?endpoint=localhost:{PORT}|term-length=64k"
    with world(tmp_path) as network:
        client, found = network.hosts[0].connect().client, []
        subscription = client.add_subscription(channel, 1_001)
        publication = client.add_publication(channel, 1_001)
        network.until(lambda: publication.is_connected, "a connection")
        assert publication.offer(b"to itself") > 0
        network.until(
            lambda: subscription.poll(lambda payload, _: found.append(bytes(payload))), "a message"
        )
        assert found == [b"to itself"]
        assert network.between.ports[0].tolist() == [0, 0, 0, 0]


def test_a_call_that_waits_for_a_paused_driver_is_unsupported(tmp_path):
    with world(tmp_path) as network:
        host = network.hosts[0]
        client = host.connect().client
        host.pause_driver()
        with pytest.raises(Unsupported, match="the driver of host pub while it is paused"):
            client.add_subscription("aeron:ipc", 1_001)
        host.resume_driver()


def test_each_member_of_a_group_receives_a_datagram_once_with_its_source(tmp_path):
    with world(tmp_path) as network:
        pub = network.hosts[0]
        own = opened(pub, GROUP)
        members = [opened(each, GROUP) for each in network.hosts[1:]]
        second_box = opened(network.hosts[1], GROUP)
        send(pub, own, GROUP, b"to all")
        network.run_step(network.now_ns + MS, MS)
        expected = [(b"to all", ADDRESSES["pub"], PORT)]
        found = [received(each, box) for each, box in zip(network.hosts[1:], members, strict=True)]
        assert found == [expected, expected, []]
        assert received(network.hosts[1], second_box) == expected
        assert received(pub, own) == []
        ports = network.between.ports[0]
        assert (ports[RECEIVED_FROM], ports[COPIES]) == (1, 1)
        assert (ports[STRAYS], ports[UNLINKED]) == (0, 0)
        # One datagram was sent, two arrived.
        assert network.between.events.state[DATAGRAMS] == 3


def test_a_host_that_has_not_joined_receives_and_counts_nothing(tmp_path):
    with world(tmp_path) as network:
        box = opened(network.hosts[0], ADDRESSES["pub"])
        send(network.hosts[0], box, GROUP, b"no members")
        send(network.hosts[0], box, ADDRESSES["sub1"], b"to a closed port")
        network.run_step(network.now_ns + MS, MS)
        assert network.between.lost[:, UNBOUND].tolist() == [0, 1, 0, 0]


def test_a_full_outbox_keeps_datagrams_for_the_remaining_links(tmp_path):
    with world(tmp_path) as network:
        pub = network.hosts[0]
        box = opened(pub, ADDRESSES["pub"])
        members = [opened(each, GROUP) for each in network.hosts[1:3]]
        engine, count = network.between.engine, 200
        frames = 1 + int(network.between.state[LONGEST]) // 32
        datagrams, length = spread(engine.state, frames, 32 * frames, ENVELOPE_LENGTH)
        # The outbox has room for the copies of one datagram only.
        small = engine._replace(outbox=make_outbox(datagrams, 2 * length))
        turns = ManyHosts(network.hosts, network.between._replace(engine=small))
        for index in range(count):
            send(pub, box, GROUP, index.to_bytes(4, "little") + bytes(1_000))
        until_ns = network.now_ns + MS
        while network.now_ns < until_ns:
            turns.run(until_ns)
        for host, member in zip(network.hosts[1:3], members, strict=True):
            numbers = [int.from_bytes(each[:4], "little") for each, *_ in received(host, member)]
            assert numbers == list(range(count))


def test_the_sockets_of_a_paused_driver_still_receive(tmp_path):
    with world(tmp_path) as network:
        pub, sub = network.hosts[:2]
        boxes = [opened(each, each.address) for each in (pub, sub)]
        sub.connect()
        sub.pause_driver()
        before = sub.agents.conductor.counters.copy()
        send(pub, boxes[0], ADDRESSES["sub1"], b"waits for it")
        network.run_step(network.now_ns + 50 * MS, 50 * MS)
        assert np.array_equal(before, sub.agents.conductor.counters)
        assert [each for each, *_ in received(sub, boxes[1])] == [b"waits for it"]
        sub.resume_driver()
        assert sub.connect().client.client_id > 0


@pytest.mark.full
def test_a_killed_driver_receives_nothing_and_its_successor_has_new_state(tmp_path):
    with world(tmp_path) as network:
        sub = network.hosts[1]
        first = sub.agents
        old = sub.connect().client
        opened(sub, sub.address)
        sub.kill_driver()
        assert not sub.agents.links.mailboxes["is_open"].any()
        network.run_step(network.now_ns + 20 * MS, 20 * MS)
        assert not old.is_closed
        sub.restart_driver()
        assert sub.agents is not first
        second = sub.connect()
        subscription = second.client.async_add_subscription("aeron:udp?endpoint=10.0.0.2:24325", 5)
        network.until(lambda: second.client.get_subscription(subscription), "a subscription")
        # The client of the killed driver gets no response.
        network.run_step(network.now_ns + 12_000 * MS, 12_000 * MS)
        assert old.is_closed
        assert not second.client.is_closed
