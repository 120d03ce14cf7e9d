"""What was lost, if frames are requested, retransmitted or delivered more than once."""

import pytest

from tests.stand_ins import synthetic_capture as made
from tests.stand_ins.synthetic_capture import START_NS, packet
from windtunnel.reports.analysis.analyze import analyze
from windtunnel.reports.analysis.output.summary import summary_lines
from windtunnel.reports.analysis.streams.repair import lost_bytes


def to_sender(time_ns, payload):
    return packet(time_ns, payload, source=made.B, destination=made.A, ports=(24_325, 40_000))


@pytest.mark.parametrize("is_answered", [False, True])
def test_bytes_requested_again_after_their_repair_stay_repaired(tmp_path, is_answered):
    packets = [
        packet(START_NS, made.setup()),
        packet(START_NS + 1_000, made.data(0, b"")),
        packet(START_NS + 2_000, made.data(64, b"")),
        to_sender(START_NS + 10_000, made.nak(32, 32)),
        packet(START_NS + 15_000, made.data(32, b"")),
        to_sender(START_NS + 20_000, made.nak(32, 32)),
        packet(START_NS + 25_000, made.data(96, b"")),
    ]
    if is_answered:
        packets.append(packet(START_NS + 30_000, made.data(32, b"")))
    path = tmp_path / "made.pcap"
    path.write_bytes(made.pcap(packets))
    result = analyze([str(path)])
    (flow,), (gap,) = result.flows.to_pylist(), result.gaps.to_pylist()
    assert flow["rebuilt_position"] == flow["high_position"] == 128
    assert (gap["repaired_ns"], gap["time_to_repair_ns"]) == (START_NS + 15_000, 13_000)
    assert (flow["lost_bytes_min"], flow["lost_bytes_max"]) == (0 if is_answered else 32, 32)


def gap_of(length, **changes):
    known = {"cause": "before capture", "outcome": "repaired", "late_bytes": 0}
    return {**known, "over_filled_bytes": 0, "length": length, **changes}


@pytest.mark.parametrize(("late", "expected"), [((32, 32), (96, 96)), ((0, 32), (96, 128))])
def test_originals_that_arrived_after_their_retransmits_were_not_lost(late, expected):
    gaps = [gap_of(128), gap_of(64, outcome="reordered")]
    assert lost_bytes(late, gaps, in_group=False) == expected


@pytest.mark.parametrize(
    "first",
    [
        # Frame 1 is late, frame 2 is lost, and the receiver requests both.
        [(101, 0), (104, 3), (102, 1), "nak", (110, 1), (111, 2), (112, 4), (113, 5)],
        # Frame 1 is late. The receiver requests it before it arrives.
        [(101, 0), (103, 2), "nak", (102, 1), (104, 3), (105, 4), (106, 5), (110, 1)],
    ],
    ids=["guessed late", "guessed resent"],
)
def test_before_the_order_is_known_late_and_resent_frames_are_not_distinguished(tmp_path, first):
    """The first packets do not show yet that their identifications count them."""
    packets = [packet(START_NS, made.setup(), identification=100)]
    for at, each in enumerate([*first, *((108 + index, index) for index in range(6, 12))], start=1):
        time_ns = START_NS + 1_000 * at
        if each == "nak":
            packets.append(to_sender(time_ns, made.nak(32, 64 if first[1][1] == 3 else 32)))
            continue
        identification, index = each
        packets.append(packet(time_ns, made.data(32 * index, b""), identification=identification))
    path = tmp_path / "made.pcap"
    path.write_bytes(made.pcap(packets))
    (flow,) = analyze([str(path)]).flows.to_pylist()
    assert flow["is_order_known"]
    assert (flow["lost_bytes_min"], flow["lost_bytes_max"]) == (0, 32)


@pytest.mark.parametrize("in_group", [False, True])
def test_bytes_that_were_captured_here_were_not_lost_here(in_group):
    gaps = [gap_of(128), gap_of(64, cause="behind capture")]
    assert lost_bytes((0, 0), gaps, in_group) == (128, 128)


@pytest.mark.parametrize("is_first", [False, True], ids=["after repair", "before repair"])
def test_the_retransmit_of_a_late_frame_is_needless(tmp_path, is_first):
    """The packets are numbered, so the original and the retransmit can be distinguished."""
    offsets = [32 * index for index in range(12)]
    sent = [made.data(offset, b"") for offset in offsets]
    arrival = [*range(8), 9, 10, "nak", *((8, 11) if is_first else (11, 8))]
    packets = [packet(START_NS, made.setup(), identification=100)]
    for at, index in enumerate(arrival):
        time_ns = START_NS + 1_000 * (at + 1)
        if index == "nak":
            packets.append(to_sender(time_ns, made.nak(offsets[8], 32)))
            continue
        # Packet 11 is the retransmit of packet 8.
        payload = sent[8 if index == 11 else index]
        packets.append(packet(time_ns, payload, identification=101 + index))
    path = tmp_path / "made.pcap"
    path.write_bytes(made.pcap(packets))
    result = analyze([str(path)])
    (flow,), (line, _) = result.flows.to_pylist(), summary_lines(result)
    assert flow["is_order_known"]
    assert "; 32 bytes of gaps with NAKs were late, not lost: their retransmits" in line
    assert "; lost" not in line


def test_at_the_sender_requested_bytes_are_not_called_lost(tmp_path):
    """The receiver requests a frame that is late: the sender's capture shows only the request."""
    path = tmp_path / "made.pcap"
    frames = [packet(START_NS + at, made.data(at, b"")) for at in (0, 32, 64)]
    requests = [to_sender(START_NS + 1_000, made.nak(32, 32))]
    again = [packet(START_NS + 2_000, made.data(32, b""))]
    path.write_bytes(made.pcap([packet(START_NS, made.setup()), *frames, *requests, *again]))
    result = analyze([str(path)])
    (flow,), (line, _) = result.flows.to_pylist(), summary_lines(result)
    assert (flow["lost_bytes_max"], flow["requested_bytes"]) == (0, 32)
    text = "the receiver requested 32 bytes in 1 gap, which had been captured here"
    assert f"; {text} (a capture at the receiver shows what became of them); " in line
    assert "lost" not in line


def test_requested_bytes_behind_a_gap_that_were_captured_are_not_lost(tmp_path):
    """The receiver refuses frame 2, and requests it with the lost frame 1 before it."""
    path = tmp_path / "made.pcap"
    frames = [packet(START_NS + at, made.data(at, b"")) for at in (0, 64, 96)]
    requests = [to_sender(START_NS + 1_000 * each, made.nak(32, 64)) for each in (1, 2)]
    again = [packet(START_NS + 3_000 + at, made.data(at, b"")) for at in (32, 64)]
    path.write_bytes(made.pcap([packet(START_NS, made.setup()), *frames, *requests, *again]))
    result = analyze([str(path)])
    (flow,) = result.flows.to_pylist()
    assert (flow["lost_bytes_min"], flow["lost_bytes_max"], flow["requested_bytes"]) == (32, 32, 32)
    gaps = [(gap["position"], gap["length"], gap["cause"]) for gap in result.gaps.to_pylist()]
    assert gaps == [(32, 32, "before capture"), (64, 32, "behind capture")]


def test_an_original_that_fills_a_gap_requested_again_was_late(tmp_path):
    """Frame 5 is late. Its retransmit fills the gap, and a second NAK requests it again before the
    original arrives.
    """
    packets = [packet(START_NS, made.setup(), identification=100)]
    arrival = [*((101 + index, index) for index in range(5)), (107, 6), (108, 7), "nak"]
    arrival += [(109, 5), "nak", (106, 5), (110, 8)]
    for at, each in enumerate(arrival, start=1):
        time_ns = START_NS + 1_000 * at
        if each == "nak":
            packets.append(to_sender(time_ns, made.nak(160, 32)))
            continue
        identification, index = each
        packets.append(packet(time_ns, made.data(32 * index, b""), identification=identification))
    path = tmp_path / "made.pcap"
    path.write_bytes(made.pcap(packets))
    (flow,) = analyze([str(path)]).flows.to_pylist()
    assert flow["is_order_known"]
    assert (flow["late_bytes"], flow["lost_bytes_min"], flow["lost_bytes_max"]) == (32, 0, 0)
