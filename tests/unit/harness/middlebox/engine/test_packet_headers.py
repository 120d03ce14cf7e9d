"""Headers of outgoing packets, compared with packets that scapy builds."""

import numpy as np
import pytest
from scapy.layers.inet import ICMP, IP, UDP, fragment
from scapy.layers.inet6 import IPv6
from scapy.layers.l2 import ARP, Ether
from scapy.packet import Raw, raw

from windtunnel.harness.middlebox.__main__ import _halves
from windtunnel.harness.middlebox.engine.packet import (
    AERON,
    FRAGMENT,
    OTHER,
    STRAY,
    classify,
    port,
    seal,
    set_macs,
    set_port,
)

A, B, RELAY = "10.64.0.3", "10.64.0.19", "10.64.0.2"
A6, B6 = "fd00::3", "fd00:1::19"
PORTS = np.array([24325], dtype=np.int64)
FRAMES = bytes(range(200)) + b"\xff" * 57


def built(frames=FRAMES, source=A, destination=B, sport=40000, dport=24325, **udp):
    network = IPv6 if ":" in source else IP
    header = network(src=source, dst=destination)
    return raw(
        Ether(src="02:00:00:00:00:01", dst="02:00:00:00:00:02")
        / header
        / UDP(sport=sport, dport=dport, **udp)
        / Raw(frames)
    )


def hosts(first=A, second=B):
    return np.array([_halves(first), _halves(second)], dtype=np.int64)


def sorted_out(packet, near=0, table=None):
    buf = np.frombuffer(b"\0\0" + packet, dtype=np.uint8)
    table = hosts() if table is None else table
    kind, _, envelope_length, length = classify(buf, 2, len(buf), table, near, PORTS)
    return kind, envelope_length, length


def sealed(packet, envelope_length, frames, is_changed=False):
    """Return the packet with other frames after its headers, with lengths and checksums."""
    changed = packet[:envelope_length] + frames
    buf = np.frombuffer(b"\0" * 4 + changed + b"\x77" * 3, dtype=np.uint8).copy()
    seal(buf, 4, envelope_length, len(frames), is_changed)
    return buf[4 : 4 + len(changed)].tobytes()


def pseudo_only(packet, checksum_at, words):
    """Return the packet as from a virtual interface, with a checksum of the pseudo-header only."""
    total = sum(int.from_bytes(words[at : at + 2], "big") for at in range(0, len(words), 2))
    while total >> 16:
        total = (total & 0xFFFF) + (total >> 16)
    return packet[:checksum_at] + total.to_bytes(2, "big") + packet[checksum_at + 2 :]


def test_recognises_aeron_in_both_directions():
    assert sorted_out(built()) == (AERON, 42, len(FRAMES))
    back = built(source=B, destination=A, sport=24325, dport=40000)
    assert sorted_out(back, near=1) == (AERON, 42, len(FRAMES))
    assert sorted_out(back, near=0)[0] == STRAY


def test_without_ports_all_datagrams_between_hosts_are_aerons():
    buf = np.frombuffer(built(sport=7, dport=8), dtype=np.uint8)
    no_ports = np.zeros(0, dtype=np.int64)
    assert classify(buf, 0, len(buf), hosts(), 0, PORTS)[0] == OTHER
    assert classify(buf, 0, len(buf), hosts(), 0, no_ports)[0] == AERON
    assert classify(buf, 0, len(buf), hosts(), 1, no_ports)[0] == STRAY


def test_recognises_aeron_over_ipv6():
    packet = built(source=A6, destination=B6)
    assert sorted_out(packet, table=hosts(A6, B6)) == (AERON, 62, len(FRAMES))


def test_ethernet_padding_is_not_a_frame():
    assert sorted_out(built(b"") + bytes(18)) == (AERON, 42, 0)


@pytest.mark.parametrize(
    ("packet", "expected"),
    [
        (built(dport=53), OTHER),
        (built(source="10.64.0.99"), OTHER),
        (raw(Ether() / IP(src=A, dst=B) / ICMP()), OTHER),
        (built(destination=RELAY), STRAY),
        (raw(Ether() / ARP(psrc=A, pdst=RELAY)), STRAY),
        (built()[:30], STRAY),
        (b"", STRAY),
        (raw(Ether() / fragment(IP(src=A, dst=B) / UDP() / Raw(bytes(99)), 40)[1]), FRAGMENT),
    ],
)
def test_rejects_packets_that_are_not_aeron(packet, expected):
    assert sorted_out(packet)[0] == expected


@pytest.mark.parametrize("frames", [FRAMES[:32], FRAMES, b"", b"\x01", FRAMES[:33]])
@pytest.mark.parametrize(("source", "destination", "length"), [(A, B, 42), (A6, B6, 62)])
def test_a_datagram_without_some_frames_equals_one_that_was_sent_so(
    frames, source, destination, length
):
    packet = built(FRAMES + b"more", source, destination)
    assert sealed(packet, length, frames) == built(frames, source, destination)


def test_a_complete_datagram_is_unchanged():
    packet = built()
    assert sealed(packet, 42, FRAMES) == packet
    wrong = built(chksum=0x1234)
    assert sealed(wrong, 42, FRAMES) == wrong


def test_a_datagram_without_checksum_gets_none():
    packet = built(chksum=0)
    assert sealed(packet, 42, FRAMES) == packet
    assert sealed(packet, 42, FRAMES[:32]) == built(FRAMES[:32], chksum=0)


@pytest.mark.parametrize(("source", "destination", "length"), [(A, B, 42), (A6, B6, 62)])
def test_an_offloaded_checksum_is_completed(source, destination, length):
    packet = built(FRAMES, source, destination)
    addresses = packet[26:34] if length == 42 else packet[22:54]
    words = addresses + (17).to_bytes(2, "big") + (len(FRAMES) + 8).to_bytes(2, "big")
    partial = pseudo_only(packet, length - 2, words)
    assert partial != packet
    assert sealed(partial, length, FRAMES) == packet


def test_a_checksum_of_zero_is_sent_as_all_ones():
    complement = built(bytes(2))[40:42]
    packet = built(complement)
    assert packet[40:42] == b"\xff\xff"
    assert sealed(built(b"longer"), 42, complement) == packet


def test_macs_are_those_of_the_far_side():
    macs = np.arange(24, dtype=np.uint8).reshape(2, 12)
    buf = np.zeros(20, dtype=np.uint8)
    set_macs(buf, 3, macs, 1)
    assert buf.tolist() == [0] * 3 + list(range(12, 24)) + [0] * 5


@pytest.mark.parametrize(("source", "destination", "length"), [(A, B, 42), (A6, B6, 62)])
def test_changed_frames_and_ports_have_a_valid_checksum(source, destination, length):
    packet = built(FRAMES, source, destination)
    other = bytes([FRAMES[0] ^ 1]) + FRAMES[1:]
    assert sealed(packet, length, other, True) == built(other, source, destination)
    buf = np.frombuffer(b"\0" * 4 + packet, dtype=np.uint8).copy()
    assert port(buf, 4, length, 1) == 24325
    set_port(buf, 4, length, 0, 40001)
    seal(buf, 4, length, len(FRAMES), True)
    assert buf[4:].tobytes() == built(FRAMES, source, destination, sport=40001)
