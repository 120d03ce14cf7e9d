"""One capture shows every frame's outcome if its packets are numbered in the order of sending."""

import pyarrow.parquet as pq
import pytest

from tests.stand_ins import repaired_link
from tests.stand_ins import synthetic_capture as made
from windtunnel.reports.analysis.analyze import analyze
from windtunnel.reports.analysis.options import AnalysisOptions

SEEDS = range(8)


def frame_rows(folder, name, **captures):
    for point, content in captures.items():
        (folder / f"{point}.pcap").write_bytes(content)
    paths = [str(folder / f"{point}.pcap") for point in captures]
    analyze(paths, options=AnalysisOptions(outcomes_dir=folder / name))
    rows = pq.read_table(folder / name).to_pylist()
    return [each for each in rows if each["record_at"] is not None]


def arrivals_in_order(link):
    return sorted(link.arrivals, key=lambda each: each.time_ns)


@pytest.mark.full(keep=8)
@pytest.mark.parametrize("batch", [1, 4, 8])
@pytest.mark.parametrize("seed", SEEDS)
def test_one_capture_shows_all_outcomes(tmp_path, seed, batch):
    link = repaired_link.run(seed)
    _, far = repaired_link.captures(link, batch=batch)
    outcomes = [each["outcome"] for each in frame_rows(tmp_path, "one", far=far)]
    expected = [each.outcome for each in arrivals_in_order(link) for _ in range(batch)]
    assert {"resent", "late", "reordered", "duplicate", "first"} <= set(expected)
    assert outcomes == expected


@pytest.mark.full(keep=3)
@pytest.mark.parametrize("seed", SEEDS)
def test_numbers_match_the_passages_of_two_captures(tmp_path, seed):
    link = repaired_link.run(seed)
    near, far = repaired_link.captures(link)
    rows = frame_rows(tmp_path, "both", near=near, far=far)
    arrivals = [each for each in rows if each["vantage_point"] == "far"]
    expected = [(each.sent.attempt, each.is_copy) for each in arrivals_in_order(link)]
    assert [(each["attempt"], each["outcome"] == "duplicate") for each in arrivals] == expected


def test_without_numbers_some_outcomes_are_wrong(tmp_path):
    """The tests above would prove nothing if outcomes could be found without the numbers."""
    links = [repaired_link.run(seed) for seed in SEEDS]
    wrong = 0
    for index, link in enumerate(links):
        _, far = repaired_link.captures(link, has_numbers=False)
        outcomes = [each["outcome"] for each in frame_rows(tmp_path, f"one-{index}", far=far)]
        pairs = zip(outcomes, arrivals_in_order(link), strict=True)
        wrong += sum(outcome != each.outcome for outcome, each in pairs)
    assert wrong > 0


def numbered(index, payload, number):
    return made.packet(made.START_NS + index * 20_000, payload, identification=number)


def nak(index, offset, length):
    back = {"source": made.B, "destination": made.A, "ports": (24_325, 40_000)}
    return made.packet(made.START_NS + index * 20_000, made.nak(offset, length), **back)


def analysed(folder, *packets):
    """Analyse packets; return the outcomes of frames in order, and the only row of flows."""
    begin = made.packet(made.START_NS - 1_000, made.setup())
    (folder / "made.pcap").write_bytes(made.pcap([begin, *packets]))
    tables = analyze(
        [str(folder / "made.pcap")], options=AnalysisOptions(outcomes_dir=folder / "outcomes")
    )
    rows = pq.read_table(folder / "outcomes").to_pylist()
    (flow,) = tables.flows.to_pylist()
    return [each["outcome"] for each in rows if each["record_at"] is not None], flow


def in_order(count):
    return [numbered(index, made.data(32 * index), 100 + index) for index in range(count)]


def test_numbers_are_not_trusted_after_datagrams_were_captured_as_one_packet(tmp_path):
    """The packet has as many numbers as datagrams: a copy of the second one would look new."""
    train = b"".join(made.data(32 * index) for index in range(40, 40 + 48))
    copy = numbered(42, made.data(32 * 50), 141)
    outcomes, _ = analysed(tmp_path, *in_order(40), numbered(41, train, 140), copy)
    assert outcomes[-1] == "duplicate"


def test_a_copy_of_a_frame_that_was_lost_behind_the_capture_is_no_late_original(tmp_path):
    late = [nak(40, 32 * 30, 32), numbered(41, made.data(32 * 30), 130)]
    again = numbered(42, made.data(32 * 30), 140)
    outcomes, flow = analysed(tmp_path, *in_order(40), *late, again)
    assert outcomes[-2:] == ["duplicate", "resent"]
    assert flow["reordered_frames"] == 0


def test_retransmissions_without_captured_naks_have_no_loss_amplification(tmp_path):
    """Only one direction was captured: what was lost behind it is not known."""
    again = [numbered(40 + index, made.data(32 * index), 140 + index) for index in range(9)]
    outcomes, flow = analysed(tmp_path, *in_order(40), *again)
    assert outcomes[-9:] == ["resent"] * 9
    assert flow["loss_amplification"] is None


def test_a_late_original_that_was_requested_was_not_lost(tmp_path):
    packets = in_order(40)
    late = packets.pop(30)._replace(time_ns=made.START_NS + 41 * 20_000)
    repair = numbered(42, made.data(32 * 30), 140)
    outcomes, flow = analysed(tmp_path, *packets, nak(40, 32 * 30, 32), late, repair)
    assert outcomes[-2:] == ["reordered", "resent"]
    assert (flow["reordered_frames"], flow["loss_amplification"]) == (1, None)


def test_frames_of_one_datagram_that_arrive_separately_are_originals(tmp_path):
    """A middlebox that delays one of the frames splits the datagram: all have its number."""
    packets = in_order(40)
    first, last = (numbered(at, made.data(32 * at), 140) for at in (40, 42))
    late = numbered(60, made.data(32 * 41), 140)
    outcomes, _ = analysed(tmp_path, *packets, first, last, nak(45, 32 * 41, 32), late, late)
    assert outcomes[-3:] == ["first", "reordered", "duplicate"]


def test_new_bytes_that_a_repair_overtook_are_reordered(tmp_path):
    packets = in_order(40)
    del packets[30]
    repair = numbered(41, made.data(32 * 30), 141)
    overtaken = numbered(42, made.data(32 * 40), 140)
    outcomes, flow = analysed(tmp_path, *packets, nak(40, 32 * 30, 32), repair, overtaken)
    assert outcomes[-2:] == ["resent", "reordered"]
    assert (flow["reordered_extent_max"], flow["reordered_ns_max"]) == (1, 20_000)


def test_a_gap_that_was_requested_and_filled_by_a_new_frame_is_repaired(tmp_path):
    """This happens where a capture begins in the middle of a repair."""
    begin = [made.packet(made.START_NS - 1_000, made.setup()), *in_order(1)]
    (tmp_path / "made.pcap").write_bytes(
        made.pcap([*begin, nak(1, 32, 32), numbered(2, made.data(32), 101)])
    )
    (gap,) = analyze([str(tmp_path / "made.pcap")]).gaps.to_pylist()
    assert (gap["position"], gap["outcome"]) == (32, "repaired")


def copied(packet, *, after):
    return packet._replace(time_ns=packet.time_ns + after)


def test_copies_are_not_counted_in_extents(tmp_path):
    """RFC 4737 counts packets without their copies, as two vantage points do."""
    packets = in_order(40)
    late = packets.pop(30)._replace(time_ns=made.START_NS + 34 * 20_000 + 5_000)
    copies = [copied(each, after=1_000) for each in packets[30:34]]
    packets_in_order = sorted([*packets, *copies, late], key=lambda each: each.time_ns)
    outcomes, flow = analysed(tmp_path, *packets_in_order)
    assert outcomes.count("duplicate") == 4
    assert flow["reordered_frames"] == 1
    assert flow["reordered_extent_max"] == 4


def test_a_copy_of_a_repair_is_not_counted_in_extents(tmp_path):
    packets = in_order(40)
    del packets[30]
    repair = numbered(41, made.data(32 * 30), 141)
    overtaken = numbered(42, made.data(32 * 40), 140)
    again = copied(repair, after=1_000)
    outcomes, flow = analysed(tmp_path, *packets, nak(40, 32 * 30, 32), repair, again, overtaken)
    assert outcomes[-3:] == ["resent", "duplicate", "reordered"]
    assert (flow["reordered_extent_max"], flow["reordered_ns_max"]) == (1, 20_000)


@pytest.mark.full(keep=3)
@pytest.mark.parametrize("seed", SEEDS)
def test_one_point_and_two_count_the_same_extents(tmp_path, seed):
    near, far = repaired_link.captures(repaired_link.run(seed))
    one = frame_rows(tmp_path, "one", far=far)
    both = [
        each
        for each in frame_rows(tmp_path, "both", near=near, far=far)
        if each["vantage_point"] == "far"
    ]
    extents = [
        (mine["extent_frames"], theirs["extent_frames"])
        for mine, theirs in zip(one, both, strict=True)
        if mine["outcome"] == theirs["outcome"] == "reordered"
    ]
    assert extents
    assert [mine for mine, _ in extents] == [theirs for _, theirs in extents]


def test_a_loss_that_a_heartbeat_shows_counts_from_the_next_frame_on(tmp_path):
    packets = in_order(40)
    late = packets.pop(39)._replace(time_ns=made.START_NS + 45 * 20_000)
    heartbeat = numbered(41, made.heartbeat(32 * 40), 141)
    behind = [numbered(at, made.data(32 * (at - 2)), 100 + at) for at in (42, 43)]
    outcomes, flow = analysed(tmp_path, *packets, heartbeat, *behind, late)
    assert outcomes[-1] == "reordered"
    assert flow["reordered_extent_max"] == 2
