"""The in-memory link compared with a naive implementation, and at its limits."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.naive import link as naive
from windtunnel.driver.channel.socket_address import SocketAddress, write_name
from windtunnel.driver.media import link

RING_LENGTH = 1024
LONGEST = RING_LENGTH - link.HEADER_LENGTH
HERE = SocketAddress("10.0.0.1", 40123)
THERE = SocketAddress("10.0.0.2", 40456)
ELSEWHERE = SocketAddress("fd00::3", 40789)


def name_of(address):
    name = np.zeros(28, dtype=np.uint8)
    return name, write_name(name, address)


def open_links(peer=None):
    links = link.make_links(2, RING_LENGTH)
    mailbox = links.mailboxes[0]
    mailbox.is_open = 1
    mailbox.local_length = write_name(mailbox.local, HERE)
    mailbox.peer_length = write_name(mailbox.peer, peer)
    return links


def put(links, datagram, to=THERE):
    name, length = name_of(to)
    buf = np.frombuffer(datagram, dtype=np.uint8).copy()
    return link.put_outbound(links, 0, name, length, buf, 0, buf.size)


def deliver(links, datagram, source=THERE):
    name, length = name_of(source)
    buf = np.frombuffer(datagram, dtype=np.uint8).copy()
    return link.deliver(links, 0, name, length, buf, 0, buf.size)


def drain(links, take):
    name, buf = np.zeros(28, dtype=np.uint8), np.zeros(2 * RING_LENGTH, dtype=np.uint8)
    length, name_length = take(links, 0, name, buf, 0, buf.size)
    return None if length == link.NOTHING else (bytes(name[:name_length]), bytes(buf[:length]))


STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("send"), st.integers(0, LONGEST + 40), st.sampled_from([THERE, None])),
        st.tuples(st.just("deliver"), st.integers(0, LONGEST + 40), st.sampled_from([THERE, HERE])),
        st.tuples(st.sampled_from(["take", "receive"])),
    ),
    max_size=60,
)


@given(steps=STEPS, is_connected=st.booleans())
def test_agrees_with_its_naive_twin(steps, is_connected):
    links = open_links(THERE if is_connected else None)
    peer = THERE.encode() if is_connected else b""
    twin = naive.Mailbox(HERE.encode(), peer, naive.Ring(RING_LENGTH), naive.Ring(RING_LENGTH))
    words = {True: "taken", False: "full"}
    for number, step in enumerate(steps):
        if step[0] == "take":
            assert drain(links, link.take) == twin.outbound.take()
            continue
        if step[0] == "receive":
            assert drain(links, link.take_inbound) == twin.inbound.take()
            continue
        datagram = bytes((number + i) & 0xFF for i in range(step[1]))
        if step[0] == "send":
            name = step[2].encode() if step[2] else b""
            assert put(links, datagram, step[2]) == twin.put_outbound(name, datagram)
        else:
            result = deliver(links, datagram, step[2])
            word = "not for us" if result == link.NOT_FOR_US else words[result == len(datagram)]
            assert word == twin.deliver(step[2].encode(), datagram)


def test_carries_source_and_destination():
    links = open_links()
    assert put(links, b"out", ELSEWHERE)
    assert drain(links, link.take) == (ELSEWHERE.encode(), b"out")
    assert deliver(links, b"in", ELSEWHERE) == 2
    assert drain(links, link.take_inbound) == (ELSEWHERE.encode(), b"in")


def test_takes_a_datagram_that_fills_the_ring_and_none_longer():
    links = open_links()
    assert not put(links, bytes(LONGEST + 1))
    assert put(links, bytes(LONGEST))
    assert not put(links, b"")
    assert drain(links, link.take) == (THERE.encode(), bytes(LONGEST))
    assert put(links, b"")


def test_a_datagram_that_just_fits_before_the_head_is_accepted_and_no_longer_one():
    links = open_links()
    quarter = RING_LENGTH // 4 - link.HEADER_LENGTH
    for _ in range(4):
        assert put(links, bytes(quarter))
    drain(links, link.take)
    assert not put(links, bytes(quarter + 1))
    assert put(links, bytes(quarter))
    assert not put(links, b"")


def test_a_connected_mailbox_receives_only_from_its_peer():
    links = open_links(peer=THERE)
    assert deliver(links, b"x", THERE.with_port(THERE.port + 1)) == link.NOT_FOR_US
    assert deliver(links, b"x", THERE) == 1
    assert put(links, b"y", to=None)
    assert drain(links, link.take) == (THERE.encode(), b"y")


def test_unconnected_mailbox_needs_a_destination():
    assert not put(open_links(), b"lost", to=None)


def test_closed_mailbox_takes_nothing():
    links = open_links()
    links.mailboxes[0].is_open = 0
    assert deliver(links, b"x") == link.NOTHING
    assert link.index_of(links, link.FIRST_FD) == link.NOTHING


@pytest.mark.parametrize(("fd", "index"), [(-2, 0), (-3, link.NOTHING), (-4, link.NOTHING)])
def test_fd_names_an_open_mailbox(fd, index):
    assert link.index_of(open_links(), fd) == index


def test_finds_the_mailbox_by_its_local_name():
    links = open_links()
    assert link.find(links, *name_of(HERE)) == 0
    assert link.find(links, *name_of(HERE.with_port(1))) == link.NOTHING
    assert link.find(links, *name_of(THERE)) == link.NOTHING
