"""Wireshark's Aeron dissector agrees with this analysis, except where the dissector is wrong.

Needs tshark; the versions up to 4.6 have the faults that are shown here.
"""

import pytest

from tests.golden.reader import load, seen_by
from tests.stand_ins import synthetic_capture as made
from tests.stand_ins import wireshark
from tests.stand_ins.synthetic_capture import START_NS, packet
from tests.unit.reports.analysis.test_analyze import RETRANSMITTED_BYTES, counter
from tests.unit.reports.analysis.test_analyze import SETS as SETS_OF_COUNTERS
from windtunnel.reports.analysis.analyze import analyze
from windtunnel.reports.analysis.engines.local.local_engine import local_frames
from windtunnel.reports.analysis.reading.capture_files import find_captures
from windtunnel.reports.analysis.reading.parts import ReadSettings

pytestmark = pytest.mark.skipif(
    wireshark.program() is None, reason="no tshark on this machine: apt-get install tshark"
)
SETS = {
    "clean": [24_325], "loss-reliable": [24_326], "loss-unreliable": [24_327],
    "loss-concurrent-mtu8k": [24_328], "one-message": [24_332],
}  # fmt: skip
"""Golden sets with their ports, which tshark decodes as Aeron."""
PORT = 24_325
RETRANSMISSION = "aeron.analysis.rx"
OUT_OF_ORDER = "aeron.analysis.ooo"
IDLE = "aeron.analysis.idle_rx"


def unpacked(tmp_path, golden_set):
    path = tmp_path / "golden.pcap"
    path.write_bytes(load(golden_set, "capture.pcap"))
    return path


def made_file(tmp_path, *payloads):
    path = tmp_path / "made.pcap"
    packets = [
        each if isinstance(each, made.Packet) else packet(START_NS + index * 1_000_000, each)
        for index, each in enumerate(payloads)
    ]
    path.write_bytes(made.pcap(packets))
    return path


def flow_of(path):
    (flow,) = analyze([str(path)]).flows.to_pylist()
    return flow


@pytest.mark.full(keep=2)
@pytest.mark.parametrize("golden_set", SETS)
def test_both_count_the_same_frames(golden_set, tmp_path):
    path = unpacked(tmp_path, golden_set)
    kinds = local_frames(find_captures([str(path)]), ReadSettings()).table()["frame_type"]
    ours = {each["values"]: each["counts"] for each in kinds.value_counts().to_pylist()}
    theirs = wireshark.counts(path, SETS[golden_set])
    # tshark does not count a heartbeat with the end-of-stream flag.
    ends = theirs["DATA"] - ours["DATA"]
    theirs["DATA"], theirs["HEARTBEAT"] = ours["DATA"], theirs["HEARTBEAT"] + ends
    assert 0 <= ends < 20
    assert {name: count for name, count in theirs.items() if count} == ours
    assert sum(theirs.values()) > 50


def test_both_link_a_retransmission_to_its_nak(tmp_path):
    nak = packet(
        START_NS + 2_500_000, made.nak(64, 64), source=made.B, destination=made.A,
        ports=(24_325, 40_000),
    )  # fmt: skip
    path = made_file(
        tmp_path,
        made.setup(),
        made.data(0, bytes(32)),
        made.data(128, bytes(32)),
        nak,
        made.data(64, bytes(32)),
    )
    flow = flow_of(path)
    assert wireshark.linked_retransmissions(path, [PORT]) == flow["resent_frames"] == 1
    assert wireshark.retransmissions(path, [PORT]) == 1


@pytest.mark.parametrize("golden_set", ["loss-reliable", "loss-concurrent-mtu8k"])
def test_new_frames_behind_a_repair_of_the_term_before_are_new(golden_set, tmp_path):
    """tshark: retransmissions. Here: as many retransmitted bytes as the driver counted."""
    path = unpacked(tmp_path, golden_set)
    flow = flow_of(path)
    assert flow["resent_bytes"] == counter(SETS_OF_COUNTERS[golden_set][0], RETRANSMITTED_BYTES)
    assert wireshark.retransmissions(path, SETS[golden_set]) > 3 * flow["resent_frames"]


def test_frames_out_of_order_are_no_retransmissions(tmp_path):
    """tshark: a retransmission. Here: reordered."""
    path = made_file(
        tmp_path, made.setup(), made.data(0, b"a"), made.data(128, b"c"), made.data(64, b"b")
    )
    assert wireshark.flagged(path, [PORT], RETRANSMISSION) == [(5, 64)]
    assert wireshark.flagged(path, [PORT], OUT_OF_ORDER) == []
    flow = flow_of(path)
    assert (flow["reordered_frames"], flow["resent_frames"], flow["duplicate_frames"]) == (1, 0, 0)


def test_a_capture_without_setup_is_not_all_retransmissions(tmp_path):
    """tshark: nearly every frame is a retransmission. Here: every frame is new."""
    path = made_file(tmp_path, *(made.data(at * 64, b"x") for at in range(100)))
    assert len(wireshark.flagged(path, [PORT], IDLE)) > 90
    flow = flow_of(path)
    assert (flow["first_frames"], flow["resent_frames"]) == (100, 0)


def test_a_late_frame_of_an_old_term_does_not_make_new_data_old(tmp_path):
    """tshark: new frames of the new term are retransmissions. Here: they are new."""
    path = made_file(
        tmp_path,
        made.setup(),
        made.data(65_344, bytes(32), term=5),
        made.data(65_472, bytes(32), term=5),
        made.data(0, b"b", term=6),
        made.data(65_408, bytes(32), term=5),
        *(made.data(64 + at * 64, b"new", term=6) for at in range(5)),
    )
    wrong = [each for each in wireshark.flagged(path, [PORT], RETRANSMISSION) if each[0] == 6]
    assert wrong
    flow = flow_of(path)
    assert (flow["first_frames"], flow["reordered_frames"], flow["resent_frames"]) == (8, 1, 0)


def test_the_position_is_that_of_the_publisher_where_term_ids_wrap(tmp_path):
    flow = flow_of(unpacked(tmp_path, "loss-reliable"))
    assert flow["high_position"] == seen_by("loss-reliable", "pub.txt")["position"]
