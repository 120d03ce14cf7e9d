"""Names and interfaces of the local machine."""

import socket

import pytest

from windtunnel.driver.channel.resolver import UnknownHostError
from windtunnel.driver.media.name_resolver import SystemResolver, numeric_address

KEY = "endpoint"


@pytest.mark.parametrize("host", ["127.0.0.1", "10.1.2.3", "::1", "ff02::fb"])
def test_a_numeric_address_resolves_to_itself(host):
    assert SystemResolver().resolve(host, KEY) == (host, 0)


def test_a_scope_is_returned_with_the_address():
    assert SystemResolver().resolve("fe80::1%3", KEY) == ("fe80::1", 3)
    assert SystemResolver().resolve("fe80::1%lo", KEY) == ("fe80::1", 1)
    assert SystemResolver().resolve("fe80::1%4294967295", KEY) == ("fe80::1", 4294967295)


@pytest.mark.parametrize(
    "scope", ["4294967296", "99999999999", "9" * 4000, "\u0663", "\u0663" * 5000]
)
def test_a_scope_that_is_not_a_32_bit_number_is_unknown(scope):
    assert numeric_address(f"fe80::1%{scope}") is None
    with pytest.raises(UnknownHostError, match=KEY):
        SystemResolver().resolve(f"fe80::1%{scope}", KEY)


KNOWN = {
    ("both", socket.AF_INET): ("10.0.0.1", 0),
    ("both", socket.AF_INET6): ("fd00::1", 0, 0, 0),
    ("six", socket.AF_INET6): ("fe80::1%eth0", 0, 0, 4),
}


@pytest.mark.parametrize(("host", "found"), [("both", ("10.0.0.1", 0)), ("six", ("fe80::1", 4))])
def test_ipv4_is_preferred_for_a_name(monkeypatch, host, found):
    def look_up(host, port, family, kind):
        if (host, family) not in KNOWN:
            raise socket.gaierror(socket.EAI_NONAME, "Name or service not known")
        return [(family, kind, 17, "", KNOWN[host, family])]

    monkeypatch.setattr(socket, "getaddrinfo", look_up)
    assert SystemResolver().resolve(host, KEY) == found
    with pytest.raises(UnknownHostError, match=r"^endpoint=none: .* service not known"):
        SystemResolver().resolve("none", KEY)


def test_the_system_resolves_localhost():
    assert SystemResolver().resolve("localhost", KEY)[0] in ("127.0.0.1", "::1")


@pytest.mark.parametrize(
    "host", ["", "..", "a" * 64, "x" * 5000, "\udcff", "name\0zero", "fe80::1%nowhere", "1.2.3.4.5"]
)
def test_an_invalid_host_is_unknown(host):
    with pytest.raises(UnknownHostError, match=KEY):
        SystemResolver().resolve(host, KEY)


def test_the_loopback_is_an_interface():
    interfaces = SystemResolver().interfaces()
    loopback = [entry for entry in interfaces if entry.host == "127.0.0.1"]
    assert [entry.name for entry in loopback] == ["lo"]
    assert loopback[0].is_loopback
    assert loopback[0].index > 0


@pytest.mark.parametrize(
    ("host", "found"),
    [
        ("::1%lo", ("::1", 0)),
        ("fd00::1%no-interface", ("fd00::1", 0)),
        ("fd00::1%7", ("fd00::1", 0)),
        ("ff05::1%7", ("ff05::1", 0)),
        ("ff02::1%7", ("ff02::1", 7)),
        ("ff01::1%7", ("ff01::1", 7)),
    ],
)
def test_only_addresses_of_a_link_have_a_scope(host, found):
    # Aeron's C driver ignores every scope; the system uses those of these addresses only.
    assert SystemResolver().resolve(host, KEY) == found
