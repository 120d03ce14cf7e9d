"""A topology has a subnet for each host, and rejects invalid networks."""

import pytest

from windtunnel.harness.topology import model


def test_each_host_shares_a_subnet_with_the_relay_only():
    topology = model.build("a run", ["a", "b"], ("a", "b"))
    a, b = topology.hosts
    assert a.address in a.subnet
    assert a.gateway in a.subnet
    assert not a.subnet.overlaps(b.subnet)
    assert len({a.address, a.gateway, a.bridge}) == 3
    assert topology.addresses == {"a": str(a.address), "b": str(b.address)}
    assert topology.host("b") is b
    assert a.address_with_prefix == f"{a.address}/29"
    assert a.gateway_with_prefix == f"{a.gateway}/29"


def test_addresses_can_be_independent_of_the_run():
    first, second = (
        model.build(run_id, ["a", "b"], ("a", "b"), addresses_of="sim") for run_id in ("r1", "r2")
    )
    assert first.addresses == second.addresses
    assert first.token != second.token
    assert first.addresses != model.build("r1", ["a", "b"], ("a", "b")).addresses


@pytest.mark.parametrize(("datagram_length", "mtu"), [(0, 1500), (1472, 1500), (1473, 1501)])
def test_the_mtu_grows_only_when_a_datagram_would_not_fit(datagram_length, mtu):
    topology = model.build("r", ["a", "b"], ("a", "b"), datagram_length_max=datagram_length)
    assert topology.mtu == mtu


def test_the_longest_datagram_of_aeron_fits():
    assert model.build("r", ["a", "b"], ("a", "b"), datagram_length_max=65504).mtu == 65532


@pytest.mark.parametrize(
    ("hosts", "between", "words"),
    [
        (["a", "a"], ("a", "a"), "expected unique host names"),
        (["a", "b"], ("a", "a"), "expected at least two different hosts"),
        (["a", "b"], ("a", "c"), "expected at least two different hosts"),
        ([f"h{n}" for n in range(33)], ("h0", "h1"), "found 33"),
    ],
)
def test_refuses_an_invalid_network(hosts, between, words):
    with pytest.raises(ValueError, match=words):
        model.build("r", hosts, between)


def test_refuses_a_datagram_that_exceeds_an_ipv4_packet():
    with pytest.raises(ValueError, match="65535"):
        model.build("r", ["a", "b"], ("a", "b"), datagram_length_max=65508)


def test_names_the_existing_hosts_if_another_is_requested():
    with pytest.raises(KeyError, match="no host 'z'"):
        model.build("r", ["a", "b"], ("a", "b")).host("z")
