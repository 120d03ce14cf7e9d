"""Several simulated hosts: deliveries, the middlebox's counts, paused hosts."""

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
    with open_world(case, folder) as made:
        yield made


def opened(host, address, port=PORT):
    """Open a mailbox of a host under a name. Returns its index."""
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


def heard(host, mailbox):
    """The datagrams in a mailbox: payload and source."""
    name, buf, found = np.zeros(28, dtype=np.uint8), np.zeros(2_048, dtype=np.uint8), []
    while True:
        length, _ = link.take_inbound(host.agents.links, mailbox, name, buf, 0, buf.size)
        if length == link.NOTHING:
            return found
        port = int(name[2]) << 8 | int(name[3])
        found.append((buf[:length].tobytes(), ".".join(map(str, name[4:8])), port))


def test_each_datagram_goes_where_its_name_says(tmp_path):
    with world(tmp_path) as made:
        boxes = [opened(each, each.address) for each in made.hosts]
        pub, far = made.hosts[0], made.hosts[3]
        send(pub, boxes[0], ADDRESSES["sub2"], b"for sub2")
        send(pub, boxes[0], ADDRESSES["far"], b"no link there")
        send(pub, boxes[0], "10.0.0.99", b"nobody")
        send(far, boxes[3], ADDRESSES["sub2"], b"from far")
        made.run_step(made.now_ns + MS, MS)
        found = [heard(each, box) for each, box in zip(made.hosts, boxes, strict=True)]
        assert found == [
            [],
            [],
            [(b"for sub2", ADDRESSES["pub"], PORT), (b"from far", ADDRESSES["far"], PORT)],
            [],
        ]
        assert made.between.ports[0].tolist() == [3, 1, 1, 0]
        assert made.between.ports[3].tolist() == [1, 0, 0, 0]
        assert made.between.engine.datagrams[:, 0].tolist() == [0, 0, 1, 0, 1, 0]


def test_a_group_hears_it_once_each_and_sees_who_sent_it(tmp_path):
    with world(tmp_path) as made:
        pub = made.hosts[0]
        own = opened(pub, GROUP)
        members = [opened(each, GROUP) for each in made.hosts[1:]]
        again = opened(made.hosts[1], GROUP)
        send(pub, own, GROUP, b"to all")
        made.run_step(made.now_ns + MS, MS)
        told = [(b"to all", ADDRESSES["pub"], PORT)]
        found = [heard(each, box) for each, box in zip(made.hosts[1:], members, strict=True)]
        assert found == [told, told, []]
        assert heard(made.hosts[1], again) == told
        assert heard(pub, own) == []
        ports = made.between.ports[0]
        assert (ports[RECEIVED_FROM], ports[COPIES]) == (1, 1)
        assert (ports[STRAYS], ports[UNLINKED]) == (0, 0)
        # One left its host, two arrived.
        assert made.between.events.state[DATAGRAMS] == 3


def test_who_has_not_joined_hears_nothing_and_counts_nothing(tmp_path):
    with world(tmp_path) as made:
        box = opened(made.hosts[0], ADDRESSES["pub"])
        send(made.hosts[0], box, GROUP, b"to nobody")
        send(made.hosts[0], box, ADDRESSES["sub1"], b"to a closed port")
        made.run_step(made.now_ns + MS, MS)
        assert made.between.lost[:, UNBOUND].tolist() == [0, 1, 0, 0]


def test_a_full_outbox_keeps_what_has_yet_to_take_some_of_its_links(tmp_path):
    with world(tmp_path) as made:
        pub = made.hosts[0]
        box = opened(pub, ADDRESSES["pub"])
        members = [opened(each, GROUP) for each in made.hosts[1:3]]
        engine, count = made.between.engine, 200
        frames = 1 + int(made.between.state[LONGEST]) // 32
        datagrams, length = spread(engine.state, frames, 32 * frames, ENVELOPE_LENGTH)
        # Room for all that one datagram could become, and for no more beside it.
        small = engine._replace(outbox=make_outbox(datagrams, 2 * length))
        turns = ManyHosts(made.hosts, made.between._replace(engine=small))
        for index in range(count):
            send(pub, box, GROUP, index.to_bytes(4, "little") + bytes(1_000))
        until_ns = made.now_ns + MS
        while made.now_ns < until_ns:
            turns.run(until_ns)
        for host, member in zip(made.hosts[1:3], members, strict=True):
            numbers = [int.from_bytes(each[:4], "little") for each, *_ in heard(host, member)]
            assert numbers == list(range(count))


def test_a_driver_that_stands_still_has_sockets_that_do_not(tmp_path):
    with world(tmp_path) as made:
        pub, sub = made.hosts[:2]
        boxes = [opened(each, each.address) for each in (pub, sub)]
        sub.connect()
        sub.pause_driver()
        before = sub.agents.conductor.counters.copy()
        send(pub, boxes[0], ADDRESSES["sub1"], b"waits for it")
        made.run_step(made.now_ns + 50 * MS, 50 * MS)
        assert np.array_equal(before, sub.agents.conductor.counters)
        assert [each for each, *_ in heard(sub, boxes[1])] == [b"waits for it"]
        sub.resume_driver()
        assert sub.connect().client.client_id > 0


@pytest.mark.full
def test_a_dead_driver_hears_nothing_and_its_successor_starts_afresh(tmp_path):
    with world(tmp_path) as made:
        sub = made.hosts[1]
        first = sub.agents
        old = sub.connect().client
        opened(sub, sub.address)
        sub.kill_driver()
        assert not sub.agents.links.mailboxes["is_open"].any()
        made.run_step(made.now_ns + 20 * MS, 20 * MS)
        assert not old.is_closed
        sub.restart_driver()
        assert sub.agents is not first
        guest = sub.connect()
        subscription = guest.client.async_add_subscription("aeron:udp?endpoint=10.0.0.2:24325", 5)
        made.until(lambda: guest.client.get_subscription(subscription), "a subscription")
        # The client of the dead driver finds nobody who answers.
        made.run_step(made.now_ns + 12_000 * MS, 12_000 * MS)
        assert old.is_closed
        assert not guest.client.is_closed
