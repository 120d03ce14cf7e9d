"""Name resolvers built from settings, with a real socket where needed."""

import pytest

from tests.unit.driver.media_driver.name_resolution.rig import (
    MS,
    CounterFile,
    NameService,
    make_clock,
)
from windtunnel.driver.base.clock import ManualClock
from windtunnel.driver.base.errors import ConfigurationError
from windtunnel.driver.channel.address_text import HostPort
from windtunnel.driver.channel.resolver import UnknownHostError
from windtunnel.driver.channel.socket_address import SocketAddress
from windtunnel.driver.media.name_resolver import SystemResolver
from windtunnel.driver.media.udp_socket import SocketError, SocketOptions, open_socket
from windtunnel.driver.media_driver.command_error import CommandPendingError
from windtunnel.driver.media_driver.context import DEDICATED, INVOKER, Context
from windtunnel.driver.media_driver.name_resolution.driver_name_resolver import NEIGHBORS
from windtunnel.driver.media_driver.name_resolution.resolver_socket import (
    DATAGRAM_LENGTH_MAX,
    UdpResolverSocket,
)
from windtunnel.driver.media_driver.name_resolution.suppliers import (
    gossip_settings,
    make_name_resolver,
    parse_bootstrap_neighbors,
    supplier_of,
)

SYSTEM = SystemResolver()
LOOPBACK = SocketAddress("127.0.0.1", 0)


class Rig:
    """A resolver of one driver, on loopback."""

    def __init__(self, clock, **settings):
        self.clock = clock
        self.file = CounterFile(clock)
        self.errors = []
        self.resolver = make_name_resolver(
            Context(**({"threading_mode": INVOKER} | settings)),
            NameService(clock, localhost="127.0.0.1", far="10.0.0.9"),
            self.file.manager, self.file.values, clock,
            lambda code, text, kind="": self.errors.append(text),
        )  # fmt: skip


@pytest.mark.parametrize("name", ["default", "csv_table", "driver"])
def test_a_supplier_has_two_names(name):
    assert supplier_of(name) == supplier_of(f"aeron_{name}_name_resolver_supplier") == name
    with pytest.raises(ConfigurationError, match="AERON_NAME_RESOLVER_SUPPLIER"):
        supplier_of(name.upper())


def refuse(code, text):
    raise AssertionError(f"({code}) {text}")


def test_bootstrap_neighbors_are_parsed_as_a_list():
    assert parse_bootstrap_neighbors("localhost:8050,,[::1]:8051,", refuse) == (
        HostPort("localhost", 8050),
        HostPort("::1", 8051),
    )
    assert parse_bootstrap_neighbors("", refuse) == ()
    assert len(parse_bootstrap_neighbors(",".join(["a:1"] * 20), refuse)) == 20


def test_an_invalid_neighbor_is_skipped_and_logged():
    noted = []
    found = parse_bootstrap_neighbors(
        "just:wrong,a:1", lambda code, text, kind="": noted.append(text)
    )
    assert found == (HostPort("a", 1),)
    assert noted == [
        "AERON_DRIVER_RESOLVER_BOOTSTRAP_NEIGHBOR=just:wrong: expected host:port or [ipv6]:port"
    ]


@pytest.mark.parametrize("text", ["localhost", "a:b", "a:70000", ",".join(["a:1"] * 21)])
def test_a_list_without_any_neighbor_is_rejected(text):
    with pytest.raises(ConfigurationError, match="AERON_DRIVER_RESOLVER_BOOTSTRAP_NEIGHBOR"):
        parse_bootstrap_neighbors(text, refuse)


def test_settings_are_passed_to_the_resolver():
    context = Context(
        resolver_name="A", resolver_interface="127.0.0.1:8050", mtu_length=4096,
        resolver_neighbor_timeout_ns=3 * MS, resolver_self_resolution_interval_ns=4 * MS,
        resolver_neighbor_resolution_interval_ns=5 * MS,
        resolver_bootstrap_neighbor_resolution_interval_ns=6 * MS,
    )  # fmt: skip
    made = gossip_settings(context, SYSTEM, refuse)
    assert (made.interface.text, made.mtu_length) == ("127.0.0.1:8050", 4096)
    assert (
        made.neighbor_timeout_ms,
        made.self_resolution_interval_ms,
        made.neighbor_resolution_interval_ms,
        made.bootstrap_resolution_interval_ms,
    ) == (3, 4, 5, 6)


@pytest.mark.parametrize(
    ("settings", "named"),
    [
        ({"resolver_interface": "0.0.0.0:1"}, "AERON_DRIVER_RESOLVER_NAME"),
        ({"resolver_name": "A"}, "AERON_DRIVER_RESOLVER_INTERFACE"),
        ({"resolver_name": "A", "resolver_interface": "{eth0}:1"}, "RESOLVER_INTERFACE"),
        ({"resolver_name": "A", "resolver_interface": "a b"}, "RESOLVER_INTERFACE"),
        ({"resolver_name": "A" * 513, "resolver_interface": "0.0.0.0:1"}, "RESOLVER_NAME"),
    ],
)
def test_a_driver_without_a_name_or_interface_is_rejected(settings, named):
    with pytest.raises(ConfigurationError, match=named):
        gossip_settings(Context(**settings), SYSTEM, refuse)


def test_an_unknown_interface_is_rejected():
    context = Context(resolver_name="A", resolver_interface="nowhere:1")
    with pytest.raises(UnknownHostError, match="AERON_DRIVER_RESOLVER_INTERFACE=nowhere"):
        gossip_settings(context, NameService(make_clock()), refuse)


def test_only_an_invoked_driver_waits_for_lookups():
    assert Rig(ManualClock()).resolver.resolve("far", "endpoint") == ("10.0.0.9", 0)
    threaded = Rig(ManualClock(), threading_mode=DEDICATED).resolver
    with pytest.raises(CommandPendingError):
        threaded.resolve("far", "endpoint")
    threaded.close()


def test_a_csv_table_may_be_the_supplier():
    rig = Rig(ManualClock(), name_resolver="csv_table", name_resolver_init_args="one,localhost,far")
    assert rig.resolver.resolve("one", "endpoint") == ("127.0.0.1", 0)
    rig.file.set(rig.file.by_type(2001)[0].counter_id, 1)
    rig.resolver.on_command_end()
    assert rig.resolver.resolve("one", "endpoint") == ("10.0.0.9", 0)


def test_two_drivers_discover_each_other_over_udp():
    clock = ManualClock()
    driver = {"name_resolver": "driver", "resolver_interface": "127.0.0.1:0"}
    a = Rig(clock, resolver_name="A", **driver)
    port = a.file.by_type(NEIGHBORS)[0].label.rpartition(":")[2]
    b = Rig(clock, resolver_name="B", resolver_bootstrap_neighbor=f"localhost:{port}", **driver)
    for _ in range(4):
        clock.advance(1_000 * MS)
        for rig in (b, a):
            rig.resolver.do_work(clock.now_ns())
    assert a.resolver.resolve("B", "endpoint") == ("127.0.0.1", 0)
    assert b.resolver.resolve("A", "endpoint") == ("127.0.0.1", 0)
    assert a.errors == b.errors == []
    a.resolver.close()
    b.resolver.close()


def test_an_interface_in_use_is_reported():
    taken = open_socket(LOOPBACK, SocketOptions())
    with pytest.raises(SocketError, match="in use"):
        UdpResolverSocket(taken.local, SocketOptions())
    taken.close()


def test_a_socket_carries_whole_datagrams_and_reports_errors():
    one, two = (UdpResolverSocket(LOOPBACK, SocketOptions()) for _ in range(2))
    assert one.send(b"hello", two.local) == 5
    assert one.send(b"", two.local) == 0
    assert list(two.receive()) == [(b"hello", one.local), (b"", one.local)]
    assert list(two.receive()) == []
    longest = bytes(DATAGRAM_LENGTH_MAX)
    assert one.send(longest, two.local) == len(longest)
    assert one.send(longest + b"\0", two.local) == len(longest) + 1
    assert [len(datagram) for datagram, _ in two.receive()] == [len(longest), 0]
    assert one.send(bytes(1 << 16), two.local) < 0
    one.close()
    two.close()
