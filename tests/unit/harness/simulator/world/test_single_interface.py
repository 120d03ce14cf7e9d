"""A simulated host resolves numeric addresses only, and has a single interface."""

import pytest

from windtunnel.driver.channel.resolver import UnknownHostError
from windtunnel.harness.simulator.world.single_interface import OneInterface


def test_numeric_addresses_are_resolved():
    resolver = OneInterface("10.64.0.3")
    assert resolver.resolve("10.64.0.19", "endpoint") == ("10.64.0.19", 0)
    assert resolver.resolve("localhost", "endpoint") == ("127.0.0.1", 0)


def test_names_are_not_resolved():
    with pytest.raises(UnknownHostError, match=r"endpoint=example\.org: unknown host"):
        OneInterface("10.64.0.3").resolve("example.org", "endpoint")


def test_groups_are_joined_by_the_interface_that_leads_out():
    found = OneInterface("10.64.0.3").interfaces()
    assert [each.host for each in found if each.is_multicast] == ["10.64.0.3"]
    assert [each.host for each in found if each.is_loopback] == ["127.0.0.1"]
