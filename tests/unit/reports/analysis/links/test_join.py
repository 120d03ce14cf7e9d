"""Vantage points are joined: their order and clocks are found, with blocks of any size."""

import pyarrow.parquet as pq
import pytest

from tests.stand_ins import synthetic_capture as made
from tests.stand_ins.synthetic_capture import START_NS, packet
from windtunnel.reports.analysis.analyze import analyze
from windtunnel.reports.analysis.links import join
from windtunnel.reports.analysis.options import AnalysisOptions
from windtunnel.reports.analysis.streams.frame_outcomes import FRAME_OUTCOMES, in_order

WAY_NS, TERMS, FRAMES_A_TERM, STEP = 40_000, 12, 256, 256
LOST = {700, 701, 1_900}
AHEAD_NS = 5_000_000_000


def sent_packets():
    frames = []
    for index in range(TERMS * FRAMES_A_TERM):
        offset, term = index % FRAMES_A_TERM * STEP, 5 + index // FRAMES_A_TERM
        payload = made.data(offset, bytes(STEP - 32), term=term)
        frames.append(packet(START_NS + index * 1_000, payload))
    return frames


def status_messages(at_far):
    """Status messages, which pass the far point first and the near one later."""
    shift_ns = 0 if at_far else WAY_NS
    return [
        packet(
            START_NS + 100_000 + index * 50_000 + shift_ns, made.sm(index * STEP, 65_536),
            source=made.B, destination=made.A, ports=(24_325, 40_000),
        )
        for index in range(20)
    ]  # fmt: skip


def write(path, packets):
    path.write_bytes(made.pcap(sorted(packets, key=lambda each: each.time_ns)))


def later(packets, by_ns):
    return [each._replace(time_ns=each.time_ns + by_ns) for each in packets]


@pytest.fixture
def points(tmp_path):
    sent = [packet(START_NS - 1_000, made.setup()), *sent_packets()]
    arrived = [each for index, each in enumerate(later(sent, WAY_NS)) if index - 1 not in LOST]
    write(tmp_path / "near.pcap", sent + status_messages(at_far=False))
    write(tmp_path / "far.pcap", later(arrived + status_messages(at_far=True), AHEAD_NS))
    return tmp_path


def joined(folder, points, name):
    tables = analyze([str(points)], options=AnalysisOptions(outcomes_dir=folder / name))
    return tables.links, in_order(pq.read_table(folder / name, schema=FRAME_OUTCOMES))


def test_order_and_clocks_follow_from_traffic_in_both_directions(points, tmp_path):
    links, outcomes = joined(tmp_path, points, "outcomes")
    (link,) = links.to_pylist()
    assert (link["from_point"], link["to_point"]) == ("near", "far")
    assert link["lost_frames"] == len(LOST)
    assert (link["clock_offset_ns"], link["clock_error_ns"]) == (AHEAD_NS, WAY_NS)
    assert link["is_corrected"]
    assert (link["delay_min_ns"], link["delay_max_ns"]) == (WAY_NS, WAY_NS)
    assert (link["control_sent"], link["control_lost"]) == (20, 0)
    lost = [
        each["position"] // STEP
        for each in outcomes.to_pylist()
        if each["onward"] and not each["onward"][0]["arrived"]
    ]
    assert set(lost) == LOST


def test_a_link_is_found_if_all_status_messages_are_equal(tmp_path):
    """A receiver of a short stream repeats its last status message, and sends no other."""
    sent = [packet(START_NS - 1_000, made.setup()), *sent_packets()[:600]]
    write(tmp_path / "near.pcap", sent + _repeated(WAY_NS))
    write(tmp_path / "far.pcap", later(later(sent[:500], WAY_NS) + _repeated(0), AHEAD_NS))
    (link,) = joined(tmp_path, tmp_path, "repeated")[0].to_pylist()
    assert (link["from_point"], link["to_point"], link["lost_frames"]) == ("near", "far", 101)
    assert (link["clock_offset_ns"], link["clock_error_ns"]) == (AHEAD_NS, WAY_NS)
    assert (link["control_sent"], link["control_lost"]) == (5, 0)


def test_a_link_is_found_if_all_frames_were_sent_twice(tmp_path):
    sent = [packet(START_NS - 1_000, made.setup()), *sent_packets()[:300]]
    sent += later(sent[1:], 10_000_000)
    write(tmp_path / "near.pcap", sent + status_messages(at_far=False))
    write(tmp_path / "far.pcap", later(sent, WAY_NS) + status_messages(at_far=True))
    (link,) = joined(tmp_path, tmp_path, "twice")[0].to_pylist()
    assert (link["from_point"], link["to_point"]) == ("near", "far")
    assert (link["sent_frames"], link["lost_frames"], link["copied_frames"]) == (600, 0, 0)


def test_a_link_is_found_if_no_status_message_arrived(tmp_path):
    sent = [packet(START_NS - 1_000, made.setup()), *sent_packets()[:600]]
    write(tmp_path / "near.pcap", [*sent, packet(START_NS + 2_000_000, made.setup())])
    write(tmp_path / "far.pcap", later(sent[:500], WAY_NS) + status_messages(at_far=True))
    (link,) = joined(tmp_path, tmp_path, "no-status-messages")[0].to_pylist()
    assert (link["from_point"], link["to_point"], link["lost_frames"]) == ("near", "far", 101)
    assert (link["clock_offset_ns"], link["clock_error_ns"]) == (None, None)
    assert (link["control_sent"], link["control_lost"]) == (20, 20)


@pytest.mark.parametrize("ahead_ns", [0, AHEAD_NS, -AHEAD_NS])
def test_frames_outside_a_shorter_capture_are_not_counted(tmp_path, ahead_ns):
    """The far capture has only the middle of the stream, with the losses in it."""
    sent = [packet(START_NS - 1_000, made.setup()), *sent_packets()]
    arrived = [each for index, each in enumerate(later(sent, WAY_NS)) if index - 1 not in LOST]
    first_ns, last_ns = START_NS + 500_000, START_NS + 1_500_000
    far = [each for each in arrived + status_messages(True) if first_ns <= each.time_ns <= last_ns]
    write(tmp_path / "near.pcap", sent + status_messages(False))
    write(tmp_path / "far.pcap", later(far, ahead_ns))
    (link,) = joined(tmp_path, tmp_path, "short")[0].to_pylist()
    first, last = (each_ns - START_NS - WAY_NS for each_ns in (first_ns, last_ns))
    middle = range(first // 1_000, last // 1_000 + 1)
    lost = LOST & set(middle)
    assert lost
    assert (link["from_point"], link["to_point"]) == ("near", "far")
    assert link["arrived_frames"] == len(middle) - len(lost)
    assert link["lost_frames"] == len(lost)
    assert link["lost_bytes"] == link["lost_frames"] * STEP
    assert link["sent_frames"] == link["arrived_frames"] + link["lost_frames"]
    total = TERMS * FRAMES_A_TERM
    assert link["sent_frames"] + link["unobserved_frames"] == total
    assert (link["unsent_frames"], link["control_lost"]) == (0, 0)


def test_frames_after_the_senders_capture_are_not_called_unsent(tmp_path):
    sent = [packet(START_NS - 1_000, made.setup()), *sent_packets()]
    write(tmp_path / "near.pcap", sent[:1_000])
    write(tmp_path / "far.pcap", later(sent, WAY_NS) + status_messages(True))
    (link,) = joined(tmp_path, tmp_path, "forged")[0].to_pylist()
    assert (link["sent_frames"], link["lost_frames"]) == (999, 0)
    assert (link["arrived_frames"], link["unobserved_frames"]) == (999, TERMS * FRAMES_A_TERM - 999)
    assert link["unsent_frames"] == 0


def test_blocks_of_any_size_give_the_same_result(points, tmp_path, monkeypatch):
    whole = joined(tmp_path, points, "whole")
    monkeypatch.setattr("windtunnel.harness.dissect.capture.capture_stream.ROWS_A_BATCH", 300)
    monkeypatch.setattr(join, "JOIN_ROWS_MIN", 600)
    for index, table in enumerate(joined(tmp_path, points, "blocks")):
        assert table.to_pylist() == whole[index].to_pylist()


def test_three_points_are_a_chain_and_each_loss_is_on_its_link(points, tmp_path):
    middle = later([packet(START_NS - 1_000, made.setup()), *sent_packets()], WAY_NS // 2)
    middle = [each for index, each in enumerate(middle) if index - 1 != min(LOST)]
    write(points / "middle.pcap", middle + later(status_messages(at_far=True), WAY_NS // 2))
    links, _ = joined(tmp_path, points, "chain")
    found = {(row["from_point"], row["to_point"]): row["lost_frames"] for row in links.to_pylist()}
    assert found == {("near", "middle"): 1, ("middle", "far"): len(LOST) - 1}


def test_receivers_without_common_control_frames_are_two_branches(tmp_path):
    sent = [packet(START_NS - 1_000, made.setup()), *sent_packets()[:600]]
    write(tmp_path / "near.pcap", sent + status_messages(False) + _other_status_messages(WAY_NS))
    write(tmp_path / "left.pcap", later(sent, WAY_NS) + status_messages(True))
    write(tmp_path / "right.pcap", later(sent[:500], 2 * WAY_NS) + _other_status_messages(0))
    links, _ = joined(tmp_path, tmp_path, "branches")
    found = {(row["from_point"], row["to_point"]): row["lost_frames"] for row in links.to_pylist()}
    assert found == {("near", "left"): 0, ("near", "right"): 101}


def _other_status_messages(shift_ns):
    return [
        packet(
            START_NS + 120_000 + index * 50_000 + shift_ns, made.sm(index * STEP + 32, 32_768),
            source="10.0.0.3", destination=made.A, ports=(24_325, 40_000),
        )
        for index in range(20)
    ]  # fmt: skip


def _repeated(shift_ns):
    return [
        packet(
            START_NS + 100_000 + index * 200_000_000 + shift_ns, made.sm(0, 65_536),
            source=made.B, destination=made.A, ports=(24_325, 40_000),
        )
        for index in range(5)
    ]  # fmt: skip
