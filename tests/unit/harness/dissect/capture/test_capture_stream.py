"""Captures of every kind, whole and damaged, in any number of parts, are read the same."""

import io
import struct

import numba
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.naive.checksum import complete
from tests.stand_ins import synthetic_capture as made
from tests.stand_ins.synthetic_capture import START_NS, Packet, packet
from windtunnel.harness.dissect.capture.capture_format import PCAP, CaptureFormatError, read_format
from windtunnel.harness.dissect.capture.capture_records import (
    FOUND,
    TIME_MAX_NS,
    WINDOW,
    find_record,
)
from windtunnel.harness.dissect.capture.capture_stream import (
    CELL_LENGTH_MIN,
    NO_STOP,
    CaptureStream,
    Reading,
    SplitError,
)

NAK = made.nak(64, 96)
needs_machine_code = pytest.mark.skipif(
    bool(numba.config.DISABLE_JIT),
    reason="a search looks at each byte, for which plain Python takes minutes",
)
SMALL = 4_096
"""Length of a cell for captures with short packets."""


def read(capture: bytes, **settings):
    """Return the rows of a capture, without fields that a type lacks, and the counts above 0."""
    stream = CaptureStream(io.BytesIO(capture), Reading(**settings))
    rows = [
        (
            int(row["record_at"]),
            int(row["frame_index"]),
            int(row["time_ns"]),
            int(row["frame_type"]),
        )
        for batch in stream.batches()
        for row in batch.rows
    ]
    return rows, {name: count for name, count in stream.counts.items() if count}


def read_in_parts(capture: bytes, part_length: int, cell_length: int):
    rows, totals = [], {}
    for start in range(0, len(capture), part_length):
        stop = start + part_length if start + part_length < len(capture) else NO_STOP
        more, counts = read(capture, start=start, stop=stop, cell_length=cell_length, is_split=True)
        rows += more
        for name, count in counts.items():
            totals[name] = totals.get(name, 0) + count
    return rows, totals


def around(payload):
    return [Packet(START_NS + 1000, payload, len(payload))]


IP = made.ipv4(made.udp(NAK))
VLAN, SERVICE_VLAN = b"\x81\x00\x00\x2a", b"\x88\xa8\x00\x2a"
OLD_SERVICE_VLAN = b"\x91\x00\x00\x2a"


def tagged(*tags):
    """Return an Ethernet packet whose type follows these tags."""
    return bytes(12) + b"".join(tags) + b"\x08\x00" + IP


LINKS = {
    "ethernet": (1, made.ethernet(IP)),
    "vlan": (1, tagged(VLAN)),
    "two vlans": (1, tagged(SERVICE_VLAN, VLAN)),
    "two vlans, old": (1, tagged(OLD_SERVICE_VLAN, VLAN)),
    "ethernet padding": (1, made.ethernet(IP) + bytes(6)),
    "ethernet ipv6": (1, made.ethernet(made.ipv6(made.udp(NAK)), 0x86DD)),
    "ipv6 hop options": (
        1,
        made.ethernet(made.ipv6(bytes([17, 0]) + bytes(6) + made.udp(NAK), 0), 0x86DD),
    ),
    "cooked": (113, bytes(14) + b"\x08\x00" + IP),
    "cooked 2": (276, b"\x08\x00" + bytes(18) + IP),
    "raw": (101, IP),
    "raw ipv6": (101, made.ipv6(made.udp(NAK))),
    "ipv4": (228, IP),
    "loopback little": (0, b"\x02\x00\x00\x00" + IP),
    "loopback big": (108, b"\x00\x00\x00\x02" + IP),
}


@pytest.mark.parametrize("link", LINKS)
@pytest.mark.parametrize("big", [False, True], ids=["little", "big"])
@pytest.mark.parametrize("kind", ["pcap us", "pcap ns", "pcapng us", "pcapng ns"])
def test_reads_every_format_and_link_layer(kind, big, link):
    link_type, captured = LINKS[link]
    nanos = kind.endswith("ns")
    if kind.startswith("pcapng"):
        capture = made.pcapng(around(captured), big=big, nanos=nanos, links=(link_type,))
    else:
        capture = made.pcap(around(captured), big=big, nanos=nanos, link=link_type)
    rows, counts = read(capture)
    assert [row[1:] for row in rows] == [(0, START_NS + 1000, 2)]
    assert counts == {"packets": 1, "datagrams": 1, "frames": 1}


@pytest.mark.parametrize(
    ("options", "ticks", "time_ns"),
    [
        (made.option(9, b"\x03"), 1_500, 1_500_000_000),
        (made.option(9, b"\x0c"), 1_234_567_891_234, 1_234_567_891),
        (made.option(9, b"\x8a"), 1_536, 1_500_000_000),
        (made.option(9, b"\xa8"), 3 << 39, 1_500_000_000),
        (made.option(14, (-7).to_bytes(8, "little", signed=True)), 9_000_001, 2_000_001_000),
        (made.option(2, b"eth0") + made.option(9, b"\x09") + made.option(0, b""), 7, 7),
    ],
    ids=["milli", "pico", "binary 10", "binary 40", "offset", "after a name"],
)
def test_reads_pcapng_times_of_any_unit(options, ticks, time_ns):
    capture = made.pcapng_head(options=options) + made.pcapng_packets(
        around(LINKS["ethernet"][1]), ticks=lambda _: ticks
    )
    rows, _ = read(capture)
    assert [row[2] for row in rows] == [time_ns]


@pytest.mark.parametrize(
    ("options", "ticks", "time_ns"),
    [
        (made.option(9, b"\x09"), TIME_MAX_NS, TIME_MAX_NS),
        (made.option(9, b"\x09"), TIME_MAX_NS + 1, None),
        (made.option(9, b"\x09"), (1 << 64) - 1, None),
        (made.option(9, b"\x00"), TIME_MAX_NS // 10**9, TIME_MAX_NS // 10**9 * 10**9),
        # Each of these times would be 0 ns if it wrapped around.
        (made.option(9, b"\x00"), 1 << 55, None),
        (made.option(9, b"\x80"), 1 << 55, None),
        (made.option(14, (1 << 55).to_bytes(8, "little")), 0, None),
        (made.option(14, (1 << 55).to_bytes(8, "little")) + made.option(9, b"\xff"), 0, None),
        (made.option(14, (-1 << 63).to_bytes(8, "little", signed=True)), 0, None),
        (made.option(14, (-1).to_bytes(8, "little", signed=True)), 999_999, None),
        (made.option(14, (-1).to_bytes(8, "little", signed=True)), 1_000_000, 0),
    ],
)
def test_a_time_out_of_range_is_counted(options, ticks, time_ns):
    capture = made.pcapng_head(options=options) + made.pcapng_packets(
        around(LINKS["ethernet"][1]), ticks=lambda _: ticks
    )
    rows, counts = read(capture)
    assert [row[2] for row in rows] == ([] if time_ns is None else [time_ns])
    assert (counts["packets"], counts.get("untimed", 0)) == (1, int(time_ns is None))


def test_follows_interfaces_and_sections():
    first = made.pcapng_packets(
        [packet(START_NS, NAK, interface=0), Packet(START_NS, IP, len(IP), 1)],
        ticks=lambda time_ns: time_ns // 1000,
    )
    second = made.pcapng(around(made.ethernet(IP)), big=True)
    unknown = made.pcapng_packets([packet(START_NS, NAK, interface=2)], big=True)
    capture = made.pcapng_head(links=(1, 101)) + first + second + unknown
    rows, counts = read(capture)
    assert [row[2] for row in rows] == [START_NS, START_NS, START_NS + 1000]
    assert counts == {"packets": 4, "datagrams": 3, "frames": 3, "unknown_link": 1}


def test_does_not_split_a_file_with_a_section_in_the_middle():
    capture = made.pcapng(made.stream_packets(40)) * 2
    with pytest.raises(SplitError, match="interface block at byte"):
        read_in_parts(capture, SMALL, SMALL)
    assert len(read(capture)[0]) == 80


@needs_machine_code
@pytest.mark.parametrize("to_file", [made.pcap, made.pcapng])
def test_any_split_gives_the_same_rows(to_file):
    capture = to_file(made.stream_packets(400))
    whole = read(capture)
    assert len(whole[0]) == 400
    for cell_length in (SMALL, 3 * SMALL):
        assert read(capture, cell_length=cell_length) == whole
        for cells in (1, 2, 5):
            assert read_in_parts(capture, cells * cell_length, cell_length) == whole


def like_records(count):
    """Return packets in which the bytes from the UDP length on look like the header of a record of
    114,688 bytes: the low byte of the checksum is the high byte of the time in seconds.
    """
    seconds_high = (START_NS // 1_000_000_000) >> 24
    found = []
    for index in range(count):
        # Payloads of 512 to 608 bytes, at offsets from 114,688 on.
        payload = made.data(114_688 + 608 * index, bytes(480 + 32 * (index % 4)))
        for last in range(1, 255):
            whole = made.ethernet(made.ipv4(made.udp(payload), source=f"10.0.0.{last}"))
            whole = bytes(complete(whole, 14, False))
            if whole[41] == seconds_high:
                break
        assert whole[41] == seconds_high
        found.append(Packet(START_NS + 1_000 * index, whole, len(whole)))
    return found


@needs_machine_code
def test_an_aeron_frame_is_never_mistaken_for_a_record():
    capture = made.pcap(like_records(1_000))
    whole = read(capture)
    assert whole[1] == {"packets": 1_000, "datagrams": 1_000, "frames": 1_000}
    for cell_length in (1 << 17, 1 << 18):
        assert read(capture, cell_length=cell_length) == whole
        assert read_in_parts(capture, cell_length, cell_length) == whole


@needs_machine_code
def test_a_capture_within_a_payload_is_never_mistaken_for_records():
    inner = made.pcap([packet(START_NS + i, NAK) for i in range(400)])[24:]
    jumbo = [
        packet(START_NS + i, made.data(0, inner[at : at + 60_000])) for i, at in enumerate([0] * 20)
    ]
    capture = made.pcap(jumbo)
    whole = read(capture)
    assert {row[3] for row in whole[0]} == {1}
    assert read_in_parts(capture, CELL_LENGTH_MIN, CELL_LENGTH_MIN) == whole


def test_a_capture_within_a_truncated_packet_is_recognised_without_later_bytes():
    """A record within a packet ends where the packet would, and both beyond the file's end."""
    seconds = made.START_NS // 10**9
    outer = struct.pack("<4I", seconds, 0, 600, 600)
    inner = struct.pack("<4I", seconds, 0, 40, 40) + bytes(40)
    torn = struct.pack("<4I", seconds, 0, 600 - 56 - 16, 600)
    file = np.frombuffer(b"\xff" * 20 + outer + inner + torn, dtype=np.uint8)
    window = np.zeros(1, dtype=WINDOW)[0]
    window["kind"], window["fraction_ns"], window["near_s"] = PCAP, 1, seconds
    window["at"], window["limit"], window["is_eof"] = 36, len(file), 1
    window["until"], window["steps"] = 1 << 40, 1 << 20
    assert find_record(file, window) == FOUND
    assert window["at"] == 20 + 16 + 600


@needs_machine_code
def test_reassembles_fragments_wherever_the_file_is_split():
    payloads = [made.data(64 * i, bytes([i]) * 5_000) for i in range(12)]
    pieces = [made.fragments(each, 1480, identification=i) for i, each in enumerate(payloads)]
    packets = [
        Packet(START_NS + i, each, len(each))
        for i, each in enumerate(piece for pair in zip(*pieces, strict=True) for piece in pair)
    ]
    capture = made.pcap(packets)
    rows, counts = read(capture)
    assert counts == {"packets": 48, "datagrams": 12, "frames": 12, "ip_fragments": 48}
    for cells in (1, 2, 3):
        again, totals = read_in_parts(capture, cells * SMALL, SMALL)
        assert (sorted(again), totals) == (sorted(rows), counts)


def test_counts_datagrams_whose_pieces_are_missing():
    pieces = made.fragments(made.data(0, bytes(5_000)), 1480)
    for missing in range(1, 4):
        rest = [each for index, each in enumerate(pieces) if index != missing]
        rows, counts = read(made.pcap([Packet(START_NS, each, len(each)) for each in rest]))
        assert rows == []
        assert counts == {"packets": 3, "ip_fragments": 3, "fragments_incomplete": 1}


def test_reads_what_a_short_snap_length_leaves():
    batch = made.data(0, bytes(32)) + made.data(64, bytes(32)) + made.data(128, bytes(32))
    rows, counts = read(made.pcap([packet(START_NS, batch, snap=96)]))
    assert [row[1] for row in rows] == [0]
    assert counts == {
        "packets": 1, "datagrams": 1, "frames": 1, "cut_datagrams": 1, "unseen_bytes": 128,
    }  # fmt: skip
    rows, counts = read(made.pcap([packet(START_NS, batch, snap=60)]))
    assert (rows, counts) == ([], {"packets": 1, "cut": 1})


@pytest.mark.parametrize(("snap", "is_wrong"), [(made.SNAP_LENGTH, True), (100, False)])
def test_a_packet_with_a_wrong_checksum_is_counted_and_not_read(snap, is_wrong):
    """Of a truncated packet, the checksum cannot be verified."""
    whole = packet(START_NS, made.data(0, bytes(64)))
    sound = bytes(complete(whole.captured, 14, True))
    wrong = sound[:-1] + b"\1"
    packets = [Packet(START_NS, each[:snap], len(each)) for each in (sound, wrong)]
    rows, counts = read(made.pcap(packets))
    assert len(rows) == counts["datagrams"] == counts["frames"] == 2 - is_wrong
    assert counts.get("wrong_checksums", 0) == is_wrong


@pytest.mark.parametrize(
    ("payload", "why"),
    [
        (b"", "unrecognised"),
        (bytes(range(40)), "unrecognised"),
        (NAK + b"\0", "unrecognised"),
        (b"\x1c\0\0\0\1" + NAK[5:], "unrecognised"),
        (made.nak(65, 96), "unrecognised"),
        (made.nak(64, -1), "unrecognised"),
        (made.setup(term_length=65_537), "unrecognised"),
        (made.setup(mtu=1409), "unrecognised"),
        (made.setup(65_536), "unrecognised"),
        (made.data(0, b"x") + made.data(96, b"y"), "unrecognised"),
        (made.data(0, b"x") + made.data(64, b"y", session=78), "unrecognised"),
        (made.data(0, b"x")[:-8], "unrecognised"),
        (made.data(7, b"x"), "unrecognised"),
        (made.data(0, b"x", flags=0xC1), "unrecognised"),
        (made.pad(0, 64) + made.data(64, b"x"), "unrecognised"),
        (made.heartbeat(0) + bytes(32), "unrecognised"),
        (made.error("no")[:-1], "unrecognised"),
    ],
)
def test_rejects_datagrams_that_are_not_aeron(payload, why):
    assert read(made.pcap([packet(START_NS, payload)])) == ([], {"packets": 1, why: 1})


@pytest.mark.parametrize(
    "payload",
    [
        NAK,
        made.setup(),
        made.data(0, b"x"),
        made.data(0, b"x") + made.data(64, b"y") + made.pad(128, 4096),
        made.pad(0, 64),
        made.heartbeat(64, flags=0xF0),
        made.sm(0, 131_072),
        made.sm(0, 131_072, tag=-3),
        made.rttm(5),
        made.error("no"),
        made.response_setup(3),
    ],
)
def test_recognises_each_frame_type(payload):
    rows, counts = read(made.pcap([packet(START_NS, payload)]))
    assert counts == {"packets": 1, "datagrams": 1, "frames": len(rows)}
    assert rows


def test_counts_other_ports_and_other_traffic():
    tcp = made.ethernet(made.ipv4(bytes(40), protocol=6))
    capture = made.pcap(
        [
            packet(START_NS, NAK),
            packet(START_NS, NAK, ports=(1, 2)),
            *around(tcp),
            Packet(START_NS, b"", 60),
        ]
    )
    rows, counts = read(capture, ports=(24_325,))
    assert len(rows) == 1
    assert counts == {
        "packets": 4, "datagrams": 1, "frames": 1, "other_ports": 1, "not_udp": 1,
        "empty_records": 1,
    }  # fmt: skip


@needs_machine_code
@pytest.mark.parametrize("to_file", [made.pcap, made.pcapng])
def test_continues_after_damaged_bytes(to_file):
    capture = bytearray(to_file(made.stream_packets(1_000)))
    whole, _ = read(bytes(capture))
    first, behind = whole[500], whole[501]
    capture[first[0] : first[0] + 16] = b"\xff" * 16
    rows, counts = read(bytes(capture))
    assert rows == whole[:500] + whole[501:]
    assert counts["damaged_places"] == 1
    assert counts["damaged_bytes"] == behind[0] - first[0]
    assert counts["packets"] == 999
    again = read_in_parts(bytes(capture), 4 * 65_536, 65_536)
    assert again == read(bytes(capture), cell_length=65_536)


@needs_machine_code
def test_continues_after_a_hole_of_zeros():
    capture = made.pcap(made.stream_packets(1_000))
    whole, _ = read(capture)
    start, end = whole[300][0], whole[420][0]
    holed = capture[:start] + bytes(end - start) + capture[end:]
    rows, counts = read(holed)
    assert rows == whole[:300] + whole[420:]
    assert counts["damaged_bytes"] == end - start
    assert read_in_parts(holed, 65_536, 16_384) == read(holed, cell_length=16_384)


@needs_machine_code
@pytest.mark.parametrize("to_file", [made.pcap, made.pcapng])
def test_leaves_out_a_truncated_last_packet(to_file):
    capture = to_file(made.stream_packets(50))
    whole, _ = read(capture)
    for missing in (1, 100, 280):
        torn = capture[:-missing]
        rows, counts = read(torn)
        assert rows == whole[:-1]
        assert counts["torn_bytes"] == len(torn) - whole[-1][0]
        assert read_in_parts(torn, SMALL, SMALL) == (rows, counts)


@pytest.mark.parametrize(
    ("head", "text"),
    [
        (b"", "is empty"),
        (b"\xd4\xc3\xb2\xa1", "within its file header of 24 bytes"),
        (b"hello, world; this is no capture", "begins with 68656c6c"),
        (made.pcap([], link=147), "link type 147"),
        (made.pcapng([])[:20], "within its section header"),
        (b"\x0a\x0d\x0d\x0a" + bytes(40), "byte order magic"),
    ],
)
def test_explains_why_a_header_is_invalid(head, text):
    with pytest.raises(CaptureFormatError, match=text):
        read_format(head[:28])


@given(st.binary(max_size=3_000), st.sampled_from([made.pcap([]), made.pcapng([])]))
@settings(max_examples=60)
def test_survives_any_bytes(noise, head):
    capture = head + noise
    _, counts = read(capture, cell_length=SMALL)
    assert counts.get("packets", 0) <= len(noise) // 12


@needs_machine_code
@given(st.data())
@settings(max_examples=60)
def test_survives_any_damage_and_counts_every_byte(data):
    capture = bytearray(made.pcap(made.stream_packets(60)))
    for _ in range(data.draw(st.integers(1, 4))):
        at = data.draw(st.integers(24, len(capture) - 1))
        capture[at] = data.draw(st.integers(0, 255))
    rows, counts = read(bytes(capture), cell_length=SMALL)
    assert len(rows) + counts.get("unrecognised", 0) <= counts["packets"]
    assert read_in_parts(bytes(capture), SMALL, SMALL) == (rows, counts)


@needs_machine_code
def test_noise_of_eight_mebibytes_ends_the_reading_in_time():
    noise = np.random.default_rng(5).integers(0, 256, 1 << 23, dtype=np.uint8).tobytes()
    rows, counts = read(made.pcap([]) + noise)
    assert rows == []
    assert counts["damaged_bytes"] + counts.get("torn_bytes", 0) >= len(noise) - 65_536


class EndlessCapture(io.RawIOBase):
    """A capture followed by endless blocks of bytes, as a small compressed file can contain."""

    def __init__(self, capture: bytes, block: bytes):
        self.at, self._capture, self._block = 0, capture, block

    def readinto(self, buffer):
        if self.at < len(self._capture):
            piece = self._capture[self.at : self.at + len(buffer)]
        else:
            assert self.at < 1 << 25, "expected reading to end"
            inside = (self.at - len(self._capture)) % len(self._block)
            piece = self._block[inside : inside + len(buffer)]
        buffer[: len(piece)] = piece
        self.at += len(piece)
        return len(piece)


UNKNOWN_BLOCK = struct.pack("<II", 0x7777, SMALL) + bytes(SMALL - 12) + struct.pack("<I", SMALL)


@pytest.mark.full(keep=3)
@needs_machine_code
@pytest.mark.parametrize("block", [bytes(SMALL), UNKNOWN_BLOCK])
@pytest.mark.parametrize("packets", [[], made.stream_packets(1000)])
@pytest.mark.parametrize("write", [made.pcap, made.pcapng])
def test_ends_after_a_long_part_without_packets(write, packets, block):
    capture, gap = write(packets), 16 * CELL_LENGTH_MIN
    reading = Reading(cell_length=CELL_LENGTH_MIN, gap_bytes_max=gap)
    stream = CaptureStream(EndlessCapture(capture, block), reading)
    rows = sum(len(each.rows) for each in stream.batches())
    assert bool(packets) == bool(rows)
    assert f"no packet in {gap} bytes: expected a capture" in stream.problem
    assert stream.position <= len(capture) + gap + 2 * CELL_LENGTH_MIN


@needs_machine_code
def test_a_shorter_part_without_packets_is_skipped():
    packets = made.stream_packets(1000)
    gap = 16 * CELL_LENGTH_MIN
    capture = made.pcap(packets) + bytes(gap // 2) + made.pcap(packets)[24:]
    bounded = read(capture, cell_length=CELL_LENGTH_MIN, gap_bytes_max=gap)
    assert bounded == read(capture, cell_length=CELL_LENGTH_MIN)
    assert len(bounded[0]) > len(packets)
