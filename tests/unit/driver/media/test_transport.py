"""Batches over loopback sockets and over links, through the same kernels."""

import errno
import random
import socket
import struct

import numpy as np
import pytest

from windtunnel.driver.base.atomics import address_of
from windtunnel.driver.channel import socket_address
from windtunnel.driver.channel.socket_address import (
    SocketAddress,
    from_python_name,
    read_name,
    write_name,
)
from windtunnel.driver.kernels.jit import kernel
from windtunnel.driver.media import link, transport
from windtunnel.driver.media.system_message import UDP_GRO_OPTION

UDP_SEGMENT = 103
SLOT_LENGTH = 2048
NO_NAME = np.zeros(28, dtype=np.uint8)
HOSTS = ["127.0.0.1", "::1"]


def open_socket(host):
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    sock = socket.socket(family, socket.SOCK_DGRAM)
    sock.setblocking(False)
    sock.bind((host, 0))
    return sock


def pair(host):
    """A sender connected to a receiver, and the receiver back to it."""
    one, two = open_socket(host), open_socket(host)
    one.connect(two.getsockname())
    return one, two


def batch_of(datagrams):
    memory = np.frombuffer(b"".join(datagrams), dtype=np.uint8).copy()
    batch = transport.make_send_batch(max(len(datagrams), 1))
    at = 0
    for index, datagram in enumerate(datagrams):
        transport.set_outgoing(batch, index, address_of(memory) + at, len(datagram))
        at += len(datagram)
    return batch, memory


def received(inbox, count):
    for index in range(count):
        at, length = transport.incoming_at(inbox, index), transport.incoming_length(inbox, index)
        yield bytes(inbox.slots[at : at + length])


def open_link_pair():
    """Mailbox 0 connected to mailbox 1, unconnected."""
    links = link.make_links(2, 1 << 14)
    for index, port in enumerate((40001, 40002)):
        mailbox = links.mailboxes[index]
        mailbox.is_open = 1
        mailbox.local_length = write_name(mailbox.local, SocketAddress("10.0.0.1", port))
    links.mailboxes[0].peer_length = write_name(
        links.mailboxes[0].peer, SocketAddress("10.0.0.1", 40002)
    )
    return links


def carry(links, origin, target):
    """A network without faults: all that `origin` sent reaches `target`."""
    name, buf = np.zeros(28, dtype=np.uint8), np.zeros(1 << 14, dtype=np.uint8)
    mailbox = links.mailboxes[origin]
    while (length := link.take(links, origin, name, buf, 0, buf.size)[0]) != link.NOTHING:
        link.deliver(links, target, mailbox.local, mailbox.local_length, buf, 0, length)


DATAGRAMS = [bytes([i]) * (32 * i) for i in range(1, 9)]


@pytest.mark.parametrize("host", HOSTS)
def test_batch_reaches_a_socket_in_order_with_its_source(host):
    one, two = pair(host)
    with one, two:
        outbox, _memory = batch_of(DATAGRAMS)
        inbox = transport.make_receive_batch(16, SLOT_LENGTH)
        sent = transport.send_gathered(one.fileno(), outbox, 0, 8, NO_NAME, 0, link.NO_LINKS)
        assert sent == 8
        assert transport.receive(two.fileno(), inbox, link.NO_LINKS) == 8
        assert list(received(inbox, 8)) == DATAGRAMS
        for index in range(8):
            name = inbox.names[index]
            length = transport.source_length(inbox, index)
            source = socket_address.read_name(name, length)
            assert source == from_python_name(one.getsockname())
            assert not transport.is_truncated(inbox, index)


def test_batch_reaches_a_link_in_order_with_its_source():
    links = open_link_pair()
    outbox, _memory = batch_of(DATAGRAMS)
    inbox = transport.make_receive_batch(16, SLOT_LENGTH)
    assert transport.send_gathered(-2, outbox, 0, 8, NO_NAME, 0, links) == 8
    assert transport.receive(-3, inbox, links) == 0
    carry(links, 0, 1)
    assert transport.receive(-3, inbox, links) == 8
    assert list(received(inbox, 8)) == DATAGRAMS
    name, length = inbox.names[7], transport.source_length(inbox, 7)
    assert socket_address.read_name(name, length) == SocketAddress("10.0.0.1", 40001)


def test_part_of_a_batch_is_sent():
    one, two = pair("127.0.0.1")
    with one, two:
        outbox, _memory = batch_of(DATAGRAMS)
        inbox = transport.make_receive_batch(16, SLOT_LENGTH)
        fd = one.fileno()
        assert transport.send_gathered(fd, outbox, 3, 2, NO_NAME, 0, link.NO_LINKS) == 2
        for nothing in (0, -1):
            sent = transport.send_gathered(fd, outbox, 0, nothing, NO_NAME, 0, link.NO_LINKS)
            assert sent == 0
        assert transport.receive(two.fileno(), inbox, link.NO_LINKS) == 2
        assert list(received(inbox, 2)) == DATAGRAMS[3:5]
        assert transport.outgoing_length(outbox, 3) == len(DATAGRAMS[3])


@pytest.mark.parametrize("host", HOSTS)
def test_unconnected_socket_sends_to_a_name(host):
    one, two = open_socket(host), open_socket(host)
    with one, two:
        name = np.zeros(28, dtype=np.uint8)
        length = write_name(name, from_python_name(two.getsockname()))
        frame = np.arange(100, dtype=np.uint8)
        outbox, _memory = batch_of([b"batched"])
        inbox = transport.make_receive_batch(4, SLOT_LENGTH)
        fd = one.fileno()
        assert transport.send_frame(fd, frame, 10, 20, name, length, link.NO_LINKS) == 20
        assert transport.send_gathered(fd, outbox, 0, 1, name, length, link.NO_LINKS) == 1
        assert transport.receive(two.fileno(), inbox, link.NO_LINKS) == 2
        assert list(received(inbox, 2)) == [bytes(range(10, 30)), b"batched"]


@kernel
def send_to_record(fd, buf, batch, records, links):
    rec = records[0]
    sent = transport.send_frame(fd, buf, 0, 5, rec.name, rec.name_length, links)
    return sent + transport.send_gathered(fd, batch, 0, 1, rec.name, rec.name_length, links)


def test_a_destination_name_can_be_stored_in_a_record():
    dtype = np.dtype([("name_length", "i8"), ("name", "u1", (28,))])
    records = np.zeros(2, dtype=dtype).view(np.recarray)
    one, two = open_socket("127.0.0.1"), open_socket("127.0.0.1")
    with one, two:
        address = from_python_name(two.getsockname())
        records[0].name_length = write_name(records[0].name, address)
        outbox, _memory = batch_of([b"batched"])
        inbox = transport.make_receive_batch(4, SLOT_LENGTH)
        frame = np.zeros(5, dtype=np.uint8)
        assert send_to_record(one.fileno(), frame, outbox, records, link.NO_LINKS) == 6
        assert transport.receive(two.fileno(), inbox, link.NO_LINKS) == 2
        assert list(received(inbox, 2)) == [bytes(5), b"batched"]


def test_frame_goes_to_the_connected_peer_and_over_a_link():
    one, two = pair("127.0.0.1")
    links = open_link_pair()
    with one, two:
        inbox = transport.make_receive_batch(4, SLOT_LENGTH)
        frame = np.arange(64, dtype=np.uint8)
        assert transport.send_frame(one.fileno(), frame, 32, 32, NO_NAME, 0, links) == 32
        assert transport.send_frame(-2, frame, 32, 32, NO_NAME, 0, links) == 32
        carry(links, 0, 1)
        for fd in (two.fileno(), -3):
            assert transport.receive(fd, inbox, links) == 1
            assert list(received(inbox, 1)) == [bytes(range(32, 64))]


def test_more_than_a_batch_is_left_for_the_next_receive():
    one, two = pair("127.0.0.1")
    with one, two:
        outbox, _memory = batch_of(DATAGRAMS)
        inbox = transport.make_receive_batch(3, SLOT_LENGTH)
        transport.send_gathered(one.fileno(), outbox, 0, 8, NO_NAME, 0, link.NO_LINKS)
        counts = [transport.receive(two.fileno(), inbox, link.NO_LINKS) for _ in range(4)]
        assert counts == [3, 3, 2, 0]


def test_sources_and_segments_are_those_of_each_receive_however_many_came_before():
    """An IPv4 source and no control data shorten what the system may write the next time."""
    senders = [open_socket("127.0.0.1") for _ in range(3)]
    target = open_socket("127.0.0.1")
    target.setsockopt(*UDP_GRO_OPTION, 1)
    inbox, rng = transport.make_receive_batch(6, SLOT_LENGTH), random.Random(3)
    for _ in range(60):
        sent = []
        for _ in range(rng.randrange(6)):
            sender, length = rng.choice(senders), rng.randrange(1, 200)
            segment = rng.choice([length, 50])
            control = [(socket.SOL_UDP, UDP_SEGMENT, struct.pack("=H", segment))]
            sender.sendmsg([bytes(length)], control, 0, target.getsockname())
            sent.append((sender.getsockname(), length, min(segment, length)))
        assert transport.receive(target.fileno(), inbox, link.NO_LINKS) == len(sent)
        for index, (source, length, segment) in enumerate(sent):
            name = read_name(inbox.names[index], transport.source_length(inbox, index))
            assert name == from_python_name(source)
            assert transport.incoming_length(inbox, index) == length
            assert transport.segment_length(inbox, index) == segment
        if rng.random() < 0.5:
            assert transport.receive(target.fileno(), inbox, link.NO_LINKS) == 0
    for each in (*senders, target):
        each.close()


def test_few_messages_are_requested_after_long_ones():
    one, two = pair("127.0.0.1")
    with one, two:
        # As much as a system with the default limits allows.
        two.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 212_992)
        inbox = transport.make_receive_batch(16, 1 << 16)

        def counts(length):
            for _ in range(5):
                one.send(bytes(length))
            found = []
            while (count := transport.receive(two.fileno(), inbox, link.NO_LINKS)) > 0:
                found.append(count)
            return found

        # The first receive of each does not know yet how long they are.
        assert counts(40_000) == [5]
        assert counts(40_000) == [3, 2]
        assert counts(60_000) == [3, 2]
        assert counts(60_000) == [2, 2, 1]
        assert counts(100) == [2, 3]
        assert counts(100) == [5]


@pytest.mark.parametrize("excess", [0, 1])
def test_datagram_longer_than_its_slot_is_flagged(excess):
    one, two = pair("127.0.0.1")
    links = open_link_pair()
    with one, two:
        frame = np.ones(64 + excess, dtype=np.uint8)
        inbox = transport.make_receive_batch(2, 64)
        for sender, receiver in ((one.fileno(), two.fileno()), (-2, -3)):
            transport.send_frame(sender, frame, 0, 64 + excess, NO_NAME, 0, links)
            carry(links, 0, 1)
            assert transport.receive(receiver, inbox, links) == 1
            assert transport.incoming_length(inbox, 0) == 64
            assert transport.is_truncated(inbox, 0) == bool(excess)


def test_flag_of_a_long_datagram_does_not_stick_to_the_slot():
    one, two = pair("127.0.0.1")
    with one, two:
        frame = np.ones(65, dtype=np.uint8)
        inbox = transport.make_receive_batch(1, 64)
        for length, truncated in ((65, True), (64, False)):
            transport.send_frame(one.fileno(), frame, 0, length, NO_NAME, 0, link.NO_LINKS)
            assert transport.receive(two.fileno(), inbox, link.NO_LINKS) == 1
            assert transport.is_truncated(inbox, 0) == truncated


def test_refused_connection_counts_as_nothing_sent():
    one, two = pair("127.0.0.1")
    with one:
        two.close()
        outbox, _memory = batch_of(DATAGRAMS[:1])
        inbox = transport.make_receive_batch(1, SLOT_LENGTH)
        fd = one.fileno()
        results = [
            transport.send_gathered(fd, outbox, 0, 1, NO_NAME, 0, link.NO_LINKS) for _ in range(4)
        ]
        assert results == [1, 0, 1, 0]
        assert transport.send_frame(fd, NO_NAME, 0, 4, NO_NAME, 0, link.NO_LINKS) == 4
        assert transport.receive(fd, inbox, link.NO_LINKS) == 0
        assert transport.send_frame(fd, NO_NAME, 0, 4, NO_NAME, 0, link.NO_LINKS) == 4
        assert transport.send_frame(fd, NO_NAME, 0, 4, NO_NAME, 0, link.NO_LINKS) == 0


def test_full_link_cuts_the_batch_short():
    links = open_link_pair()
    outbox, _memory = batch_of([bytes(5000)] * 4)
    assert transport.send_gathered(-2, outbox, 0, 4, NO_NAME, 0, links) == 3
    assert transport.send_gathered(-2, outbox, 3, 1, NO_NAME, 0, links) == 0


def test_datagram_too_long_for_udp_is_reported_after_those_before_it():
    one, two = pair("127.0.0.1")
    with one, two:
        outbox, _memory = batch_of([b"short", bytes(70_000)])
        fd = one.fileno()
        assert transport.send_gathered(fd, outbox, 0, 2, NO_NAME, 0, link.NO_LINKS) == 1
        too_long = transport.send_gathered(fd, outbox, 1, 1, NO_NAME, 0, link.NO_LINKS)
        assert too_long == -errno.EMSGSIZE


def test_bad_descriptor_is_reported():
    sock = open_socket("127.0.0.1")
    fd = sock.fileno()
    sock.close()
    outbox, _memory = batch_of([b"x"])
    inbox = transport.make_receive_batch(1, SLOT_LENGTH)
    assert transport.send_gathered(fd, outbox, 0, 1, NO_NAME, 0, link.NO_LINKS) == -errno.EBADF
    assert transport.send_frame(fd, NO_NAME, 0, 1, NO_NAME, 0, link.NO_LINKS) == -errno.EBADF
    assert transport.receive(fd, inbox, link.NO_LINKS) == -errno.EBADF


@pytest.mark.parametrize("fd", [-1, -2, -99])
def test_no_socket_and_no_mailbox_carry_nothing(fd):
    outbox, _memory = batch_of([b"x"])
    inbox = transport.make_receive_batch(1, SLOT_LENGTH)
    assert transport.send_gathered(fd, outbox, 0, 1, NO_NAME, 0, link.NO_LINKS) == 0
    assert transport.send_frame(fd, NO_NAME, 0, 1, NO_NAME, 0, link.NO_LINKS) == 0
    assert transport.receive(fd, inbox, link.NO_LINKS) == 0


@pytest.mark.parametrize("code", [errno.EAGAIN, errno.EINTR, errno.ECONNREFUSED, errno.ENOBUFS])
def test_would_block_is_no_error(code):
    assert transport.is_transient(-code)


@pytest.mark.parametrize("result", [-errno.ENETUNREACH, -errno.EPERM, -errno.EBADF, 0, 1])
def test_other_errors_are_passed_on(result):
    assert not transport.is_transient(result)


@pytest.mark.parametrize("family", [0, 1, 2, 10, 255])
def test_an_invalid_name_is_an_error_and_no_crash(family):
    sock = open_socket("127.0.0.1")
    with sock:
        name = np.full(28, 0xFF, dtype=np.uint8)
        name[:2] = (family, 0)
        for length in (1, 15, 16, 28):
            result = transport.send_frame(sock.fileno(), NO_NAME, 0, 4, name, length, link.NO_LINKS)
            assert result <= 4
