"""Damaged packets: each flipped bit is detected, and no valid packet is reported as damaged."""

import struct

import numpy as np
import pytest

from tests.naive.checksum import complete
from tests.unit.harness.dissect.capture.test_pcap import NAK, ethernet, ipv4, ipv6, udp
from windtunnel.harness.dissect.capture.checksum import has_valid_checksums, has_wrong_checksum
from windtunnel.harness.dissect.capture.pcap import read_capture_bytes

MAC_B = bytes([2, 0, 0, 0, 0, 0xB])


def packet(payload=NAK, finished=True):
    whole = bytearray(ethernet(0x0800, ipv4(udp(payload))))
    whole[:6] = MAC_B
    return bytes(complete(whole, 14, finished))


def whole(packet):
    return has_valid_checksums(np.frombuffer(bytes(packet), dtype=np.uint8), 14, 34)


@pytest.mark.parametrize("payload", [NAK, NAK + b"x"])
@pytest.mark.parametrize("finished", [True, False])
def test_valid_packets_are_not_damaged(payload, finished):
    assert whole(packet(payload, finished))


def test_without_a_checksum_damage_is_not_detected():
    sound = bytearray(packet())
    sound[40:42] = b"\0\0"
    assert whole(sound)


def test_ipv6_is_supported():
    made = bytearray(ethernet(0x86DD, ipv6(udp(NAK))))
    made = complete(made, 14, True)
    buf = np.frombuffer(bytes(made), dtype=np.uint8)
    assert has_valid_checksums(buf, 14, 54)
    made[-1] ^= 1
    assert not has_valid_checksums(np.frombuffer(bytes(made), dtype=np.uint8), 14, 54)


def test_every_flipped_bit_is_detected():
    sound = packet()
    lengths = {16, 17, 38, 39, 14}
    for at in (each for each in range(14, len(sound)) if each not in lengths):
        for bit in range(8):
            damaged = bytearray(sound)
            damaged[at] ^= 1 << bit
            assert not whole(damaged), (at, bit)


def is_wrong(packet, udp_at=34):
    return has_wrong_checksum(np.frombuffer(bytes(packet), dtype=np.uint8), 14, udp_at)


@pytest.mark.parametrize("length", [28, 29, 35, 64, 1400, 65_000])
@pytest.mark.parametrize("finished", [True, False])
def test_checksums_of_all_lengths_agree_with_the_reference(length, finished):
    payload = bytes(np.random.default_rng(length).integers(0, 256, length, dtype=np.uint8))
    sound = packet(payload, finished)
    assert not is_wrong(sound)
    for at in (*range(22, 38), 42, 42 + length // 2, 42 + length - 1):
        damaged = bytearray(sound)
        damaged[at] ^= 0x10
        # Without the checksum of the datagram, damage to it is not detected.
        assert is_wrong(damaged) == (finished or at < 34), at


def test_a_checksum_that_a_network_card_fills_in_is_not_verified():
    sound = bytearray(packet())
    sound[24:26] = sound[40:42] = b"\0\0"
    assert not is_wrong(sound)
    made = bytearray(complete(bytearray(ethernet(0x86DD, ipv6(udp(NAK)))), 14, True))
    assert not is_wrong(made, 54)
    made[-1] ^= 1
    assert is_wrong(made, 54)
    made[60:62] = b"\0\0"
    assert not is_wrong(made, 54)


def capture_of(*packets):
    head = struct.pack("<IHHiIII", 0xA1B23C4D, 2, 4, 0, 0, 65_535, 1)
    records = b"".join(struct.pack("<IIII", 1, 0, len(p), len(p)) + p for p in packets)
    return np.frombuffer(head + records, dtype=np.uint8)


def test_damaged_packets_of_a_capture_are_skipped():
    damaged = bytearray(packet())
    damaged[-1] ^= 4
    buf = capture_of(packet(), bytes(damaged), packet())
    assert read_capture_bytes(buf).datagrams == 3
    found = read_capture_bytes(buf, skip_damaged=True)
    assert (found.datagrams, found.damaged, len(found.frames)) == (2, 1, 2)


def test_a_packet_for_another_station_is_damaged_and_one_for_a_group_is_not():
    stray, group = bytearray(packet()), bytearray(packet())
    stray[5] ^= 8
    group[0] ^= 1
    found = read_capture_bytes(capture_of(packet(), bytes(stray), bytes(group)), skip_damaged=True)
    assert (found.datagrams, found.damaged) == (2, 1)
