"""Captures of every kind are read, and arbitrary bytes cause no exception."""

import struct

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.golden.reader import load, load_array
from tests.naive import capture as naive
from windtunnel.harness.artifact.middlebox.frame_class import NAMES
from windtunnel.harness.dissect.capture.pcap import (
    address_halves,
    read_capture,
    read_capture_bytes,
    sent_by,
    sent_to,
)
from windtunnel.harness.dissect.frames.frames import FRAME, walk

SETS = ["clean", "loss-reliable", "loss-unreliable", "loss-concurrent-mtu8k", "one-message"]
PCAPNG = bytes.fromhex("0a0d0d0a000000004d3c2b1a") + bytes(52)
NAK = struct.pack("<iBBHiiiii", 28, 0, 0, 2, -7, 1001, 5, 64, 96)
V4 = ("10.0.0.1", "10.0.0.2")
V6 = ("fd00::1", "fd00::2")


def udp(payload, ports=(4000, 24325)):
    return struct.pack(">HHHH", *ports, 8 + len(payload), 0) + payload


def ipv4(payload, protocol=17, fragment=0, extra=b""):
    words = (5 + len(extra) // 4) | 0x40
    header = struct.pack(
        ">BBHHHBBH", words, 0, 20 + len(extra) + len(payload), 0, fragment, 64, protocol, 0
    )
    return header + bytes([10, 0, 0, 1, 10, 0, 0, 2]) + extra + payload


def ipv6(payload, protocol=17):
    ends = bytes([0xFD]) + bytes(14) + b"\x01" + bytes([0xFD]) + bytes(14) + b"\x02"
    return struct.pack(">IHBB", 0x60000000, len(payload), protocol, 64) + ends + payload


def ethernet(ethertype, payload, *tags):
    return bytes(12) + b"".join(tags) + struct.pack(">H", ethertype) + payload


VLAN = struct.pack(">HH", 0x8100, 42)
SERVICE_VLAN = struct.pack(">HH", 0x88A8, 42)
LINKS = {
    "ethernet": (1, ethernet(0x0800, ipv4(udp(NAK)))),
    "vlan": (1, ethernet(0x0800, ipv4(udp(NAK)), VLAN)),
    "two vlans": (1, ethernet(0x0800, ipv4(udp(NAK)), SERVICE_VLAN, VLAN)),
    "ipv4 options": (1, ethernet(0x0800, ipv4(udp(NAK), extra=bytes(8)))),
    "ethernet padding": (1, ethernet(0x0800, ipv4(udp(NAK))) + bytes(6)),
    "ipv6": (1, ethernet(0x86DD, ipv6(udp(NAK)))),
    "ipv6 hop options": (1, ethernet(0x86DD, ipv6(bytes([17, 0]) + bytes(6) + udp(NAK), 0))),
    "cooked": (113, bytes(14) + b"\x08\x00" + ipv4(udp(NAK))),
    "cooked 2": (276, b"\x08\x00" + bytes(18) + ipv4(udp(NAK))),
    "cooked 2 with ipv6": (276, b"\x86\xdd" + bytes(18) + ipv6(udp(NAK))),
    "raw": (101, ipv4(udp(NAK))),
    "raw ipv6": (101, ipv6(udp(NAK))),
    "null": (0, struct.pack("<I", 2) + ipv4(udp(NAK))),
    "loop": (108, struct.pack(">I", 30) + ipv6(udp(NAK))),
}


def pcap(link_type, *packets, order="<", magic=0xA1B23C4D):
    parts = [struct.pack(order + "IHHiIII", magic, 2, 4, 0, 0, 262144, link_type)]
    for index, packet in enumerate(packets):
        parts += [struct.pack(order + "IIII", 100 + index, 250, len(packet), len(packet)), packet]
    return np.frombuffer(b"".join(parts), dtype=np.uint8)


@pytest.mark.parametrize("golden", SETS)
def test_a_capture_of_real_aeron_is_read_as_by_the_reference(golden):
    capture = read_capture_bytes(load_array(golden, "capture.pcap"))
    expected = naive.read(load(golden, "capture.pcap"))
    frames = capture.frames
    assert len(frames) == len(expected)
    assert [NAMES[int(kind)] for kind in frames["frame_type"]] == [each[2] for each in expected]
    assert frames["time_ns"].tolist() == [each[0] for each in expected]
    assert frames["source_port"].tolist() == [each[3] for each in expected]
    for row, (_, data, _, _) in zip(frames, expected, strict=True):
        assert capture.buf[row["at"] : row["at"] + 8].tobytes() == data[:8]
    assert (capture.problem, capture.torn, capture.cut, capture.not_udp) == ("", False, 0, 0)


def test_the_fields_of_a_golden_stream_are_read():
    frames = read_capture_bytes(load_array("clean", "capture.pcap")).frames
    (setup,) = frames[frames["frame_type"] == 5]
    wanted = {"session_id": 1234567, "stream_id": 1001, "initial_term_id": -3, "term_id": -3}
    wanted |= {"term_length": 65536, "mtu": 1408, "frame_length": 40, "datagram_length": 40}
    assert {name: int(setup[name]) for name in wanted} == wanted
    messages = frames[frames["frame_type"] == 3]
    assert set(messages["window_bytes"].tolist()) == {32768}
    assert len(set(messages["receiver_id"].tolist())) == 1
    naks = frames[frames["frame_type"] == 2]
    assert (naks["nak_length"] > 0).all()
    assert (naks["nak_length"] % 32 == 0).all()


def test_several_frames_of_one_datagram_share_its_index():
    frames = read_capture_bytes(load_array("clean", "capture.pcap")).frames
    _, counts = np.unique(frames["datagram"], return_counts=True)
    assert counts.max() > 1
    assert np.array_equal(np.unique(frames["datagram"]), np.arange(len(counts)))


@pytest.mark.parametrize("name", LINKS)
@pytest.mark.parametrize("order", ["<", ">"])
@pytest.mark.parametrize(("magic", "unit_ns"), [(0xA1B23C4D, 1), (0xA1B2C3D4, 1000)])
def test_every_kind_of_link_and_file_is_read(name, order, magic, unit_ns):
    link_type, packet = LINKS[name]
    capture = read_capture_bytes(pcap(link_type, packet, order=order, magic=magic))
    (row,) = capture.frames
    assert (int(row["frame_type"]), int(row["nak_length"]), int(row["term_offset"])) == (2, 96, 64)
    assert (int(row["session_id"]), int(row["stream_id"]), int(row["term_id"])) == (-7, 1001, 5)
    assert (int(row["source_port"]), int(row["destination_port"])) == (4000, 24325)
    assert int(row["time_ns"]) == 100 * 1_000_000_000 + 250 * unit_ns
    source, destination = V6 if "ipv6" in name or name == "loop" else V4
    assert sent_by(capture.frames, source).all()
    assert sent_to(capture.frames, destination).all()
    assert not sent_by(capture.frames, destination).any()


def test_only_the_requested_ports_count():
    packets = [ethernet(0x0800, ipv4(udp(NAK, ports))) for ports in ((1, 2), (2, 3), (4, 1))]
    capture = read_capture_bytes(pcap(1, *packets), ports=[1])
    assert (capture.datagrams, capture.other_ports, capture.packets) == (2, 1, 3)
    assert read_capture_bytes(pcap(1, *packets)).datagrams == 3


def test_packets_that_are_not_complete_udp_are_counted_separately():
    packets = [
        ethernet(0x0806, bytes(28)),
        ethernet(0x0800, ipv4(bytes(20), protocol=6)),
        ethernet(0x0800, ipv4(udp(NAK), fragment=0x2000)),
        ethernet(0x0800, ipv4(udp(NAK), fragment=10)),
        ethernet(0x86DD, ipv6(bytes(8) + udp(NAK), 44)),
        ethernet(0x0800, ipv4(udp(NAK)))[:-1],
        b"short",
        ethernet(0x0800, ipv4(udp(NAK))),
    ]
    capture = read_capture_bytes(pcap(1, *packets))
    assert (capture.not_udp, capture.ip_fragments, capture.cut) == (2, 3, 2)
    assert (len(capture.frames), capture.datagrams) == (1, 1)


def test_a_file_that_ends_inside_a_packet_is_read_up_to_it():
    whole = pcap(1, *[LINKS["ethernet"][1]] * 3)
    for cut in (1, 40, 60):
        capture = read_capture_bytes(whole[:-cut])
        assert (capture.torn, len(capture.frames)) == (True, 2)


@pytest.mark.parametrize(
    ("head", "why"),
    [
        (b"", "is empty: expected a pcap or pcapng file"),
        (pcap(1).tobytes()[:23], "ends after 23 bytes, within its file header of 24 bytes"),
        (bytes(24), "begins with 00000000: expected the magic number of pcap or pcapng"),
        (PCAPNG, "is a pcapng file: expected a pcap file"),
        (pcap(147).tobytes(), "has link type 147: expected one of"),
    ],
)
def test_a_file_that_is_not_a_capture_has_a_reason(tmp_path, head, why):
    file = tmp_path / "x.pcap"
    file.write_bytes(head)
    capture = read_capture(file)
    assert why in capture.problem
    assert len(capture.frames) == 0


def test_a_missing_capture_is_none(tmp_path):
    assert read_capture(tmp_path / "none.pcap") is None


@given(st.binary(max_size=400), st.sampled_from([kind for kind, _ in LINKS.values()]))
def test_any_packets_are_survived_and_counted(data, link_type):
    capture = read_capture_bytes(pcap(link_type, data))
    seen = capture.datagrams + capture.not_udp + capture.ip_fragments + capture.cut
    assert (capture.packets, seen) == (1, 1)


@given(st.binary(max_size=300))
def test_any_file_is_survived(data):
    header = pcap(1).tobytes()
    read_capture_bytes(np.frombuffer(data, dtype=np.uint8))
    capture = read_capture_bytes(np.frombuffer(header + data, dtype=np.uint8))
    assert capture.problem == ""


@st.composite
def datagrams(draw):
    """Draw UDP payloads similar to valid ones: complete frames, then damage."""
    parts = []
    for _ in range(draw(st.integers(1, 4))):
        body = draw(st.integers(0, 70))
        kind = draw(st.sampled_from([1, 1, 1, 0, 3, 11, 9]))
        header = struct.pack("<iBBHiiiiq", 32 + body, 0, 0xC0, kind, 0, 1, 2, 3, 0)
        parts.append(header + bytes((body + 31) // 32 * 32 if kind == 1 else 0))
    data = bytearray(b"".join(parts))
    for at in draw(st.lists(st.integers(0, len(data) - 1), max_size=2)):
        data[at] = draw(st.integers(0, 255))
    return bytes(data[: draw(st.integers(0, len(data)))])


@settings(max_examples=300)
@given(st.one_of(datagrams(), st.binary(max_size=80)))
def test_a_datagram_is_split_as_by_the_reference(data):
    buf = np.frombuffer(b"???" + data, dtype=np.uint8)
    rows = np.zeros(16, dtype=FRAME)
    count = walk(buf, 3, len(data), rows, 0)
    ours = [(NAMES[int(row["frame_type"])], int(row["at"]) - 3) for row in rows[:count]]
    assert ours == naive.split(data)


def test_rows_that_do_not_fit_are_counted():
    frame = struct.pack("<iBBHiiiiq", 32, 0, 0xC0, 1, 0, 1, 2, 3, 0)
    rows = np.zeros(2, dtype=FRAME)
    assert walk(np.frombuffer(frame * 5, dtype=np.uint8), 0, 160, rows, 0) == 5


def test_both_halves_of_addresses_are_kept():
    assert address_halves("10.1.2.3") == (0, 0xFFFF0A010203)
    assert address_halves("ffff::1") == (-(1 << 48), 1)
