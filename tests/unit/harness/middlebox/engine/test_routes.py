"""Routing of packets, against a simple reference implementation; and stable link codes."""

import struct

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scapy.layers.inet import IP, UDP
from scapy.layers.inet6 import IPv6
from scapy.layers.l2 import Ether
from scapy.packet import Raw, raw

from tests.naive.middlebox import NaiveMiddlebox
from tests.naive.route import route
from tests.unit.harness.middlebox.synthetic_case import (
    ByteEngine,
    case,
    data,
    fault,
    setup,
    status_message,
)
from windtunnel.harness.artifact.middlebox.frame_class import SM
from windtunnel.harness.middlebox.__main__ import _halves, routes
from windtunnel.harness.middlebox.engine.packet import AERON, ALL_HOSTS, STRAY, classify, set_macs
from windtunnel.harness.middlebox.engine.prf import subject
from windtunnel.harness.middlebox.engine.state import TRIED
from windtunnel.harness.middlebox.relay.relay_state import NO_LINK
from windtunnel.harness.scenario.resolved.case import HostCase, LinkCase

NAMES = ("a", "b", "c", "d")
HOSTS = {name: f"10.64.0.{3 + 16 * index}" for index, name in enumerate(NAMES)}
PAIRS = [(x, y) for i, x in enumerate(NAMES) for y in NAMES[i + 1 :]]
PORTS = np.array([24325], dtype=np.int64)


def star(links, *faults):
    """Return a synthetic case of four hosts."""
    hosts = tuple(HostCase(name=name, address=address) for name, address in HOSTS.items())
    joined = tuple(LinkCase(between=each) for each in links)
    return case(*faults).model_copy(update={"hosts": hosts, "links": joined})


def packet(source, destination, port=24325):
    header = (IPv6 if ":" in source else IP)(src=source, dst=destination)
    return raw(Ether() / header / UDP(sport=40000, dport=port) / Raw(bytes(64)))


def taken(made, near, whole):
    """Return the link directions that the relay's tables select for a packet."""
    table = np.array([_halves(each.address) for each in made.hosts], dtype=np.int64)
    buf = np.frombuffer(whole, dtype=np.uint8)
    kind, far, _, _ = classify(buf, 0, len(buf), table, near, PORTS)
    ways = routes(made)[near]
    if kind == STRAY:
        return []
    return [int(ways[at]) for at in range(4) if far in (ALL_HOSTS, at) and ways[at] != NO_LINK]


@given(
    st.lists(st.sampled_from(PAIRS), min_size=2, unique=True),
    st.integers(0, 3),
    st.sampled_from([*HOSTS.values(), "10.64.0.99", "224.20.30.39", "239.255.255.255"]),
)
def test_routes_are_those_of_the_reference(links, near, destination):
    whole = packet(HOSTS[NAMES[near]], destination)
    assert taken(star(links), near, whole) == route(HOSTS, links, NAMES[near], destination)


def test_the_first_link_has_the_codes_of_an_only_link():
    pair = case()
    assert routes(pair).tolist() == [[NO_LINK, 0], [1, NO_LINK]]
    assert pair.link_names == ("a->b", "b->a")
    made = star([("a", "b"), ("a", "d")])
    assert routes(made)[:2, :2].tolist() == [[NO_LINK, 0], [1, NO_LINK]]
    assert made.link_names == ("a->b", "b->a", "a->d", "d->a")
    assert (made.link_between("d", "a"), made.link_between("b", "d")) == (3, -1)


@pytest.mark.parametrize("destination", ["223.255.255.255", "240.0.0.1", "255.255.255.255"])
def test_only_packets_to_groups_go_to_all_hosts(destination):
    assert taken(star([("a", "b"), ("a", "c")]), 0, packet(HOSTS["a"], destination)) == []


@pytest.mark.parametrize(
    "whole", [packet("10.64.0.99", "224.1.1.1"), packet(HOSTS["a"], "224.1.1.1", 53)]
)
def test_packets_to_a_group_need_a_port_and_a_sender_of_the_case(whole):
    assert taken(star([("a", "b"), ("a", "c")]), 0, whole) == []
    assert taken(star([("a", "b"), ("a", "c")]), 0, packet(HOSTS["a"], "224.1.1.1")) == [0, 2]


def test_packets_to_a_group_of_ipv6_go_to_all_hosts():
    table = np.array([_halves("fd00::1"), _halves("fd00::2")], dtype=np.int64)
    buf = np.frombuffer(packet("fd00::1", "ff02::77"), dtype=np.uint8)
    assert classify(buf, 0, len(buf), table, 0, PORTS)[:2] == (AERON, ALL_HOSTS)


def test_a_packet_to_a_group_keeps_its_address():
    macs = np.arange(24, dtype=np.uint8).reshape(2, 12)
    buf = np.array([0x01, 0x00, 0x5E, 20, 30, 39, 1, 2, 3, 4, 5, 6], dtype=np.uint8)
    set_macs(buf, 0, macs, 1)
    assert buf.tolist() == [0x01, 0x00, 0x5E, 20, 30, 39, *range(18, 24)]


def test_each_direction_draws_independently():
    subjects = {
        subject(link, kind, 3, by) for link in range(56) for kind in range(12) for by in (0, 1)
    }
    assert len(subjects) == 56 * 12 * 2
    assert [subject(link, 5, 3, 1) for link in (0, 1)] == [0x030502, 0x030503]


def crossed(made, link, count=400):
    """Return the frames that an engine forwards of a stream on a link, and the engine."""
    driven = ByteEngine(made)
    driven.offer(setup(), link)
    passed = [bool(driven.frames(data(64 * at), link)) for at in range(count)]
    return passed, driven


def test_rules_affect_the_first_link_like_an_only_one_and_others_differently():
    rule = fault("drop", 0.3)
    everywhere = fault("drop", 0.3, links=("a->b", "a->c"))
    alone, _ = crossed(case(rule), 0)
    links = [("a", "b"), ("a", "c")]
    first, _ = crossed(star(links, everywhere), 0)
    second, _ = crossed(star(links, everywhere), 2)
    assert alone == first
    assert first != second
    twin = NaiveMiddlebox(star(links, everywhere))
    twin.offer(b"", setup(), 2, 0)
    for at in range(400):
        twin.offer(b"", data(64 * at), 2, 0)
    assert len(twin.sent) == 1 + sum(second)


def test_passages_are_counted_by_direction():
    rule = fault("drop", links=("a->b", "a->c")).model_copy(
        update={"attempt": fault("drop").attempt.model_copy(update={"last": 1})}
    )
    driven = ByteEngine(star([("a", "b"), ("a", "c")], rule))
    for link in (0, 2):
        driven.offer(setup(), link)
    left = [len(driven.frames(data(64), link)) for link in (0, 2, 0, 2)]
    assert left == [0, 0, 1, 1]
    assert driven.engine.sessions["number"][:2].tolist() == [1, 1]


def test_a_status_message_of_no_stream_matches_only_rules_of_all_streams():
    asking = struct.pack("<iBBHiiiiiq", 36, 0, 0x80, SM, 0, 0, 0, 0, 0, 5)
    of_one = fault("drop", types=("SM",), links=("b->a",), name="one")
    driven = ByteEngine(case(of_one.model_copy(update={"ordinals": (0,)})))
    assert driven.frames(asking, 1) == [asking]
    assert driven.engine.tallies[0, TRIED] == 0
    driven = ByteEngine(case(of_one))
    assert driven.frames(asking, 1) == []
    assert driven.frames(status_message(stream=77), 1) != []
    assert driven.engine.tallies[0, TRIED] == 1
