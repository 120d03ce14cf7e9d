"""Captured packets of simulated datagrams are valid unless an impairment has corrupted them."""

import numpy as np
import pytest

from windtunnel.driver.channel.socket_address import SocketAddress
from windtunnel.harness.dissect.capture.checksum import has_valid_checksums
from windtunnel.harness.simulator.network.datagram_delivery import seal
from windtunnel.harness.simulator.network.in_flight import (
    DESTINATION,
    ENVELOPE_LENGTH,
    IDENTIFICATION,
    SEAL,
)
from windtunnel.harness.simulator.output.capture import write_packets
from windtunnel.harness.simulator.world.event_log import (
    RECEIVED,
    USED,
    make_event_log,
    note_datagram,
)

IP_AT, UDP_AT = 16 + 14, 16 + 14 + 20


def packet(length, *, is_sealed=False, flipped=None, to="10.0.0.2", number=0):
    """Convert one datagram. Returns the bytes of its packet in a capture."""
    made = np.zeros(ENVELOPE_LENGTH + length, dtype=np.uint8)
    for at, (address, port) in ((0, ("10.0.0.1", 54_321)), (DESTINATION, (to, 24_325))):
        name = SocketAddress(address, port).encode()
        made[at : at + len(name)] = np.frombuffer(name, dtype=np.uint8)
    made[IDENTIFICATION : IDENTIFICATION + 8].view(np.int64)[0] = number
    made[ENVELOPE_LENGTH:] = np.arange(length) * 7 % 251
    if is_sealed:
        made[SEAL : SEAL + 8].view(np.int64)[0] = seal(made, ENVELOPE_LENGTH, length)
    if flipped is not None:
        made[ENVELOPE_LENGTH + flipped // 8] ^= np.uint8(1 << flipped % 8)
    events = make_event_log(1 << 16, 0)
    note_datagram(events, 5, 1, RECEIVED, made, 0, length)
    out, counts = np.zeros(1 << 16, dtype=np.uint8), np.zeros(2, dtype=np.int64)
    end = write_packets(events.tape, int(events.state[USED]), 1, out, counts)
    assert counts.tolist() == [0, 1]
    assert end == 16 + 14 + 20 + 8 + length  # packet header, Ethernet, IP, UDP
    return out[:end]


@pytest.mark.parametrize(("to", "mac"), [
    ("10.0.0.2", "02000a000002"),
    ("224.20.30.39", "01005e141e27"),
    ("239.129.1.2", "01005e010102"),
])  # fmt: skip
def test_a_packet_is_addressed_to_its_host_or_group(to, mac):
    assert packet(32, to=to)[16:22].tobytes().hex() == mac


@pytest.mark.parametrize("length", [32, 33, 1_408])
@pytest.mark.parametrize("is_sealed", [False, True])
def test_an_undamaged_packet_is_valid(length, is_sealed):
    assert has_valid_checksums(packet(length, is_sealed=is_sealed), IP_AT, UDP_AT)


@pytest.mark.parametrize("length", [32, 33, 1_408])
def test_a_packet_with_a_flipped_bit_is_rejected(length):
    for flipped in range(0, 8 * length, 97):
        assert not has_valid_checksums(
            packet(length, is_sealed=True, flipped=flipped), IP_AT, UDP_AT
        )


@pytest.mark.parametrize("number", [0, 1, 0xABCD, 0xFFFF])
def test_packet_has_its_identification(number):
    made = packet(32, number=number)
    assert int.from_bytes(made[IP_AT + 4 : IP_AT + 6].tobytes(), "big") == number
    assert has_valid_checksums(made, IP_AT, UDP_AT)
