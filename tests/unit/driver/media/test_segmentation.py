"""GSO packets: gathered as a naive reference does, and segmented by the operating system."""

import errno
import socket

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from windtunnel.driver.base.atomics import address_of
from windtunnel.driver.media import segmentation, transport
from windtunnel.driver.media.link import NO_LINKS
from windtunnel.driver.media.system_message import UDP_GRO_OPTION

SO_NO_CHECK = 11
NO_NAME = np.zeros(28, dtype=np.uint8)


def naive_packets(entries):
    """Return packets as lists of entries: an entry joins if it is adjacent and not longer."""
    packets = []
    for address, length in entries:
        packet = packets[-1] if packets else []
        total = sum(item[1] for item in packet)
        joins = (
            packet
            and address == packet[0][0] + total
            and length <= packet[0][1]
            and packet[-1][1] == packet[0][1]
            and len(packet) < segmentation.GSO_SEGMENTS_MAX
            and total + length <= segmentation.GSO_LENGTH_MAX
        )
        if joins:
            packet.append((address, length))
        else:
            packets.append([(address, length)])
    return packets


@given(
    st.lists(st.tuples(st.sampled_from([32, 64, 1408, 9000]), st.booleans()), max_size=70),
    st.integers(0, 5),
)
def test_gathers_the_same_packets_as_the_naive_reference(shapes, first):
    entries, at = [], 1 << 20
    for length, has_gap in shapes:
        at += 4096 if has_gap else 0
        entries.append((at, length))
        at += length
    first = min(first, len(entries))
    batch = transport.make_send_batch(max(len(entries), 1))
    for index, (address, length) in enumerate(entries):
        transport.set_outgoing(batch, index, address, length)
    count = len(entries) - first
    gso_batch = batch.gso_batch
    packet_count = segmentation.gather_gso_packets(gso_batch, batch.vectors, first, count)
    expected = naive_packets(entries[first:])
    assert packet_count == len(expected)
    end = first
    for index, packet in enumerate(expected):
        end += len(packet)
        assert gso_batch.ends[index] == end
        assert gso_batch.vectors[index].address == packet[0][0]
        assert gso_batch.vectors[index].length == sum(item[1] for item in packet)
        assert (gso_batch.headers[index].control_length > 0) == (len(packet) > 1)


@pytest.mark.parametrize("length", [1, 32, 1015, 1016, 1376, 1408, 9000, 32_500, 32_501, 65_507])
def test_a_packet_has_room_for_as_many_datagrams_as_it_gathers(length):
    batch = transport.make_send_batch(70)
    for index in range(70):
        transport.set_outgoing(batch, index, 4096 + index * length, length)
    segmentation.gather_gso_packets(batch.gso_batch, batch.vectors, 0, 70)
    assert segmentation.datagrams_per_packet(length) == batch.gso_batch.ends[0]


def open_pair(*, gro_enabled):
    receiving = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    receiving.setblocking(False)
    if gro_enabled:
        receiving.setsockopt(*UDP_GRO_OPTION, 1)
    receiving.bind(("127.0.0.1", 0))
    sending = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    sending.connect(receiving.getsockname())
    return sending, receiving


def fill(batch, memory, lengths):
    at = 0
    for index, length in enumerate(lengths):
        transport.set_outgoing(batch, index, address_of(memory) + at, length)
        at += length


@pytest.mark.parametrize("gro_enabled", [False, True])
def test_a_gso_packet_arrives_as_its_datagrams(gro_enabled):
    lengths = [1408] * 20 + [640] + [96] * 3
    memory = np.arange(sum(lengths), dtype=np.uint64).astype(np.uint8)
    outbox = transport.make_send_batch(len(lengths))
    fill(outbox, memory, lengths)
    sending, receiving = open_pair(gro_enabled=gro_enabled)
    with sending, receiving:
        sent = transport.send_segmented(sending.fileno(), outbox, 0, len(lengths), NO_NAME, 0)
        assert sent == len(lengths)
        inbox = transport.make_receive_batch(64, 65_536)
        messages = transport.receive(receiving.fileno(), inbox, NO_LINKS)
    datagrams = []
    for index in range(messages):
        at, total = transport.incoming_at(inbox, index), transport.incoming_length(inbox, index)
        segment = transport.segment_length(inbox, index)
        for begin in range(0, total, segment):
            end = min(begin + segment, total)
            datagrams.append(bytes(inbox.slots[at + begin : at + end]))
    assert [len(item) for item in datagrams] == lengths
    assert b"".join(datagrams) == memory.tobytes()
    assert (messages < len(lengths)) == gro_enabled


def test_a_gso_refusal_is_distinguished_from_other_errors_and_nothing_is_sent():
    lengths = [1408] * 4
    memory = np.zeros(sum(lengths), dtype=np.uint8)
    outbox = transport.make_send_batch(8)
    fill(outbox, memory, lengths)
    sending, receiving = open_pair(gro_enabled=False)
    with sending, receiving:
        # A socket without checksums refuses GSO.
        sending.setsockopt(socket.SOL_SOCKET, SO_NO_CHECK, 1)
        result = transport.send_segmented(sending.fileno(), outbox, 0, 4, NO_NAME, 0)
        assert segmentation.is_refusal(result)
        inbox = transport.make_receive_batch(8, 2048)
        assert transport.receive(receiving.fileno(), inbox, NO_LINKS) == 0
        assert transport.send_gathered(sending.fileno(), outbox, 0, 4, NO_NAME, 0, NO_LINKS) == 4
        assert transport.receive(receiving.fileno(), inbox, NO_LINKS) == 4
        fd = sending.fileno()
    closed = transport.send_segmented(fd, outbox, 0, 4, NO_NAME, 0)
    assert closed == -errno.EBADF
    assert not segmentation.is_refusal(closed)
    assert not segmentation.is_refusal(0)
    assert not segmentation.is_refusal(4)
