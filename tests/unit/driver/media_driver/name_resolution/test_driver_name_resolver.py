"""Driver name resolvers on an in-memory network with a manual clock."""

import errno

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.naive import resolution as naive
from tests.unit.driver.media_driver.name_resolution.rig import (
    FIRST_FREE,
    MS,
    CounterFile,
    HeldLookups,
    NameService,
    Network,
    make_clock,
)
from windtunnel.driver.channel.address_text import HostPort
from windtunnel.driver.channel.socket_address import SocketAddress
from windtunnel.driver.media_driver.agent.system_counters import INVALID_PACKETS, SHORT_SENDS
from windtunnel.driver.media_driver.name_resolution.driver_name_resolver import (
    BOOTSTRAP_NEIGHBOR,
    CACHE_ENTRIES,
    NEIGHBORS,
    DriverNameResolver,
    GossipSettings,
)

STEP_MS = 10
ANY_V4 = "0.0.0.0"


class Driver:
    """One driver's resolver and its counters."""

    def __init__(self, world, name, host, port, bootstrap=(), interface=None, lookups=None):
        self.file = CounterFile(world.clock)
        self.errors = []
        local = SocketAddress(interface or host, port)
        self.socket = world.network.bind(local, SocketAddress(host, port))
        self.lookups = lookups or HeldLookups(world.system, world.clock)
        self.world = world
        self.resolver = DriverNameResolver(
            GossipSettings(name, local, tuple(HostPort(*item) for item in bootstrap)),
            self.socket, self.lookups, self.file.manager, self.file.values,
            lambda code, text, kind="": self.errors.append((code, text)), world.clock.now_ns(),
        )  # fmt: skip

    def count(self, type_id):
        return [counter.value for counter in self.file.by_type(type_id)]

    def label(self, type_id):
        return [counter.label for counter in self.file.by_type(type_id)]

    def resolve(self, name):
        return self.resolver.substitute(name, "endpoint")

    def deliver(self, datagram, source="10.0.0.99", port=8050):
        now_ms = self.world.clock.now_ns() // MS
        self.resolver.on_datagram(datagram, SocketAddress(source, port), now_ms)


class World:
    def __init__(self):
        self.clock = make_clock()
        self.network = Network()
        self.system = NameService(self.clock, a="10.0.0.1", b="10.0.0.2")
        self.drivers = []

    def driver(self, *values, **options):
        made = Driver(self, *values, **options)
        self.drivers.append(made)
        return made

    def run(self, duration_ms):
        for _ in range(duration_ms // STEP_MS):
            for driver in self.drivers:
                driver.lookups.complete()
                driver.resolver.do_work(self.clock.now_ns())
            self.clock.advance(STEP_MS * MS)


@pytest.fixture
def world():
    return World()


def pair(world):
    """Two drivers: A is a bootstrap neighbor of B, and A has none."""
    a = world.driver("A", "10.0.0.1", 8050)
    b = world.driver("B", "10.0.0.2", 8051, [("a", 8050)], interface=ANY_V4)
    return a, b


def test_the_counters_have_aerons_types_and_labels(world):
    _, b = pair(world)
    first, second, third = (b.file.reader.read(FIRST_FREE + index) for index in range(3))
    assert (first.type_id, first.key[:4]) == (BOOTSTRAP_NEIGHBOR, bytes(4))
    assert first.label == "Bootstrap neighbor: name=a:8050 resolved="
    assert (second.type_id, second.label) == (
        NEIGHBORS,
        "Resolver neighbors: bound 0.0.0.0:8051",
    )
    assert (third.type_id, third.label) == (CACHE_ENTRIES, "Resolver cache entries: name=B")
    world.run(STEP_MS)
    assert b.label(BOOTSTRAP_NEIGHBOR) == ["Bootstrap neighbor: name=a:8050 resolved=10.0.0.1:8050"]


def test_two_drivers_discover_each_other(world):
    a, b = pair(world)
    world.run(2_500)
    for one, other, name, host in ((a, b, "B", "10.0.0.2"), (b, a, "A", "10.0.0.1")):
        assert one.count(NEIGHBORS) == one.count(CACHE_ENTRIES) == [1]
        assert one.resolve(name) == host
        assert other.errors == []
    assert b.count(BOOTSTRAP_NEIGHBOR) == [1]
    assert a.count(BOOTSTRAP_NEIGHBOR) == []


def test_a_driver_resolves_its_own_name_and_passes_others_to_the_system(world):
    a, b = pair(world)
    assert a.resolve("A") == "10.0.0.1"
    assert b.resolve("B") == ANY_V4
    assert a.resolve("elsewhere") == "elsewhere"


def test_a_third_driver_is_discovered_through_the_second(world):
    a, b = pair(world)
    c = world.driver("C", "10.0.0.3", 8052, [("b", 8051)])
    world.run(6_000)
    assert [driver.count(NEIGHBORS) for driver in (a, b, c)] == [[2]] * 3
    assert c.resolve("A") == "10.0.0.1"


def test_a_silent_driver_is_removed_everywhere(world):
    a, b = pair(world)
    c = world.driver("C", "10.0.0.3", 8052, [("b", 8051)])
    world.run(6_000)
    world.drivers.remove(c)
    world.run(9_000)
    assert a.count(NEIGHBORS) == [2]
    world.run(3_000)
    assert a.count(NEIGHBORS) == b.count(NEIGHBORS) == [1]
    assert a.count(CACHE_ENTRIES) == [1]
    assert a.resolve("C") == "C"


def test_a_neighbor_is_sent_the_drivers_name_every_second_and_all_names_every_two(world):
    _, b = pair(world)
    world.run(10_000)
    own = naive.frame(naive.entry(b"B", ANY_V4, 8051, 0, 0x80))
    sent = [datagram for datagram, _ in b.socket.sent]
    assert sent.count(own) == 10
    names = [datagram for datagram in sent if datagram != own]
    assert len(names) == 4
    assert {naive.read(datagram)[0][0][:3] for datagram in names} == {(b"A", "10.0.0.1", 8050)}


def test_the_ages_of_names_are_passed_on(world):
    a, _ = pair(world)
    a.deliver(naive.frame(naive.entry(b"old", "10.0.0.5", 9, 4_000)))
    world.run(2_500)
    sent = [naive.read(datagram)[0] for datagram, _ in a.socket.sent]
    ages = [age for entries in sent for name, _, _, age, _ in entries if name == b"old"]
    assert ages[0] == 6_000


def test_a_name_is_removed_once_it_is_too_old(world):
    a, _ = pair(world)
    a.deliver(
        naive.frame(naive.entry(b"old", "10.0.0.5", 9, 9_990), naive.entry(b"x", "::5", 9, 0))
    )
    assert a.resolve("old") == "10.0.0.5"
    world.run(STEP_MS)
    assert a.resolve("old") == "10.0.0.5"
    world.run(STEP_MS)
    assert a.resolve("old") == "old"
    assert a.resolve("x") == "::5"


def test_a_silent_bootstrap_neighbor_is_looked_up_again_every_ten_seconds(world):
    b = world.driver("B", "10.0.0.2", 8051, [("a", 8050)])
    world.run(25_000)
    assert world.system.looked_up == ["a"] * 3
    assert b.count(BOOTSTRAP_NEIGHBOR) == [0]
    world.system.hosts["a"] = "10.0.0.77"
    world.run(10_000)
    assert b.label(BOOTSTRAP_NEIGHBOR) == [
        "Bootstrap neighbor: name=a:8050 resolved=10.0.0.77:8050"
    ]


def test_an_active_bootstrap_neighbor_is_not_looked_up_again(world):
    pair(world)
    world.run(40_000)
    assert world.system.looked_up == ["a"]


def test_an_unresolved_bootstrap_neighbor_is_an_error_and_retried(world):
    b = world.driver("B", "10.0.0.2", 8051, [("nowhere", 8050), ("10.0.0.9", 1)])
    world.run(11_000)
    assert [code for code, _ in b.errors] == [9, 9]
    assert "bootstrap_neighbor=nowhere" in b.errors[0][1]
    assert b.label(BOOTSTRAP_NEIGHBOR)[0] == "Bootstrap neighbor: name=nowhere:8050 resolved="
    assert {to.text for _, to in b.socket.sent} == {"10.0.0.9:1"}


def test_entries_about_the_driver_itself_add_no_neighbor(world):
    a, _ = pair(world)
    a.deliver(
        naive.frame(naive.entry(b"A", "10.0.0.1", 8050), naive.entry(b"AA", "10.0.0.1", 8050))
    )
    assert a.resolve("AA") == "10.0.0.1"
    assert a.count(CACHE_ENTRIES) == [1]


def test_a_driver_of_the_same_name_at_another_port_is_another_neighbor(world):
    a, _ = pair(world)
    a.deliver(naive.frame(naive.entry(b"A", "10.0.0.8", 8051)))
    assert a.resolve("A") == "10.0.0.8"
    assert a.count(CACHE_ENTRIES) == [1]
    assert a.count(NEIGHBORS) == [0]


def test_the_wildcard_address_means_the_source_of_the_datagram(world):
    a, _ = pair(world)
    a.deliver(naive.frame(naive.entry(b"x", ANY_V4, 7, 0, 0x80)), "10.0.0.42", 9)
    a.deliver(naive.frame(naive.entry(b"y", "::", 7, 0, 0x80)), "fd00::42", 9)
    a.deliver(naive.frame(naive.entry(b"z", ANY_V4, 7)), "10.0.0.43", 9)
    assert [a.resolve(name) for name in "xyz"] == ["10.0.0.42", "fd00::42", ANY_V4]


def test_only_a_neighbors_own_entries_keep_it_alive(world):
    a = world.driver("A", "10.0.0.1", 8050)
    for _ in range(12):
        a.deliver(naive.frame(naive.entry(b"announced", "10.0.0.5", 9)), "10.0.0.6", 9)
        a.deliver(naive.frame(naive.entry(b"itself", "10.0.0.6", 9, 0, 0x80)), "10.0.0.6", 9)
        world.run(1_000)
        if a.count(NEIGHBORS) == [1]:
            break
    else:
        pytest.fail("a neighbor that sent nothing was kept")
    assert a.resolve("announced") == "10.0.0.5"


@pytest.mark.parametrize(
    ("datagram", "invalid", "errors"),
    [
        (b"", 1, 0),
        (naive.frame(), 0, 0),
        (naive.frame(bytes([1, 0, 0, 0])), 1, 0),
        (naive.frame(naive.entry(b"x", "10.0.0.5", 9)[:-8]), 1, 0),
        (naive.frame(b"\7" + bytes(15)), 0, 1),
    ],
)
def test_invalid_datagrams_are_counted_or_logged(world, datagram, invalid, errors):
    a, _ = pair(world)
    a.deliver(datagram)
    assert a.file.get(INVALID_PACKETS) == invalid
    assert len(a.errors) == errors
    assert a.count(CACHE_ENTRIES) == [0]


def test_a_send_error_names_the_neighbor(world):
    _, b = pair(world)
    b.socket.send_result = -errno.ENETUNREACH
    world.run(1_500)
    assert b.errors[0][1].startswith(
        "Failed to send resolution frames to neighbor: 10.0.0.1:8050: "
    )
    assert len(b.errors) == 2
    b.socket.send_result = 0
    world.run(1_000)
    assert b.file.get(SHORT_SENDS) == 1


def test_a_port_chosen_by_the_system_is_announced(world):
    socket = world.network.bind(SocketAddress("10.0.0.4", 50_123))
    file = CounterFile(world.clock)
    DriverNameResolver(
        GossipSettings("D", SocketAddress(ANY_V4, 0)), socket,
        HeldLookups(world.system, world.clock), file.manager, file.values,
        lambda code, text, kind="": None, 0,
    )  # fmt: skip
    assert file.by_type(NEIGHBORS)[0].label == "Resolver neighbors: bound 0.0.0.0:50123"


def test_a_resolver_runs_every_ten_milliseconds(world):
    a, _ = pair(world)
    a.resolver.do_work(world.clock.now_ns())
    a.socket.waiting.append((b"", SocketAddress("10.0.0.9", 1)))
    a.resolver.do_work(world.clock.now_ns() + 9 * MS)
    assert a.socket.waiting
    a.resolver.do_work(world.clock.now_ns() + 10 * MS)
    assert not a.socket.waiting
    a.resolver.close()
    assert a.socket.is_closed


@given(st.binary(max_size=80), st.booleans())
def test_no_datagram_raises_an_error(content, is_framed):
    world = World()
    a, _ = pair(world)
    a.deliver(naive.frame(content) if is_framed else content)
    world.run(3_000)
