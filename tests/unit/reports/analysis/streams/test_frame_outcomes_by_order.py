"""One capture tells every frame's fate where its packets are numbered in the order of sending."""

import pyarrow.parquet as pq
import pytest

from tests.stand_ins import made_capture as made
from tests.stand_ins import repaired_link
from windtunnel.reports.analysis.analyze import analyze
from windtunnel.reports.analysis.options import AnalysisOptions

SEEDS = range(8)


def fates(folder, name, **captures):
    for point, content in captures.items():
        (folder / f"{point}.pcap").write_bytes(content)
    paths = [str(folder / f"{point}.pcap") for point in captures]
    analyze(paths, options=AnalysisOptions(outcomes_dir=folder / name))
    rows = pq.read_table(folder / name).to_pylist()
    return [each for each in rows if each["record_at"] is not None]


def came_in_order(link):
    return sorted(link.came, key=lambda each: each.time_ns)


@pytest.mark.full(keep=8)
@pytest.mark.parametrize("batch", [1, 4, 8])
@pytest.mark.parametrize("seed", SEEDS)
def test_one_capture_tells_all_fates(tmp_path, seed, batch):
    link = repaired_link.run(seed)
    _, far = repaired_link.captures(link, batch=batch)
    told = [each["fate"] for each in fates(tmp_path, "one", far=far)]
    expected = [each.fate for each in came_in_order(link) for _ in range(batch)]
    assert {"resent", "late", "reordered", "duplicate", "first"} <= set(expected)
    assert told == expected


@pytest.mark.full(keep=3)
@pytest.mark.parametrize("seed", SEEDS)
def test_numbers_tell_two_captures_which_passage_is_which_arrival(tmp_path, seed):
    link = repaired_link.run(seed)
    near, far = repaired_link.captures(link)
    told = fates(tmp_path, "both", near=near, far=far)
    came = [each for each in told if each["vantage_point"] == "far"]
    expected = [(each.sent.attempt, each.is_copy) for each in came_in_order(link)]
    assert [(each["attempt"], each["fate"] == "duplicate") for each in came] == expected


def test_without_numbers_some_fates_cannot_be_told(tmp_path):
    """That the numbers are what tells: else the tests above would tell nothing."""
    links = [repaired_link.run(seed) for seed in SEEDS]
    wrong = 0
    for index, link in enumerate(links):
        _, far = repaired_link.captures(link, has_numbers=False)
        told = [each["fate"] for each in fates(tmp_path, f"one-{index}", far=far)]
        pairs = zip(told, came_in_order(link), strict=True)
        wrong += sum(fate != each.fate for fate, each in pairs)
    assert wrong > 0


def numbered(index, payload, number):
    return made.packet(made.START_NS + index * 20_000, payload, identification=number)


def asked(index, offset, length):
    back = {"source": made.B, "destination": made.A, "ports": (24_325, 40_000)}
    return made.packet(made.START_NS + index * 20_000, made.nak(offset, length), **back)


def told_of(folder, *packets):
    """Fates of frames in order, and the only row of flows."""
    begin = made.packet(made.START_NS - 1_000, made.setup())
    (folder / "made.pcap").write_bytes(made.pcap([begin, *packets]))
    tables = analyze(
        [str(folder / "made.pcap")], options=AnalysisOptions(outcomes_dir=folder / "fates")
    )
    rows = pq.read_table(folder / "fates").to_pylist()
    (flow,) = tables.flows.to_pylist()
    return [each["fate"] for each in rows if each["record_at"] is not None], flow


def in_turn(count):
    return [numbered(index, made.data(32 * index), 100 + index) for index in range(count)]


def test_a_train_of_datagrams_captured_as_one_packet_ends_the_trust_in_numbers(tmp_path):
    """It has as many numbers as datagrams: a copy of its second one would look like new."""
    train = b"".join(made.data(32 * index) for index in range(40, 40 + 48))
    copy = numbered(42, made.data(32 * 50), 141)
    fates, _ = told_of(tmp_path, *in_turn(40), numbered(41, train, 140), copy)
    assert fates[-1] == "duplicate"


def test_a_copy_of_what_was_lost_behind_the_capture_is_no_late_original(tmp_path):
    late = [asked(40, 32 * 30, 32), numbered(41, made.data(32 * 30), 130)]
    again = numbered(42, made.data(32 * 30), 140)
    fates, flow = told_of(tmp_path, *in_turn(40), *late, again)
    assert fates[-2:] == ["duplicate", "resent"]
    assert flow["reordered_frames"] == 0


def test_what_nobody_here_asked_for_amplifies_nothing(tmp_path):
    """One direction alone was captured: what was lost behind it is not known."""
    again = [numbered(40 + index, made.data(32 * index), 140 + index) for index in range(9)]
    fates, flow = told_of(tmp_path, *in_turn(40), *again)
    assert fates[-9:] == ["resent"] * 9
    assert flow["loss_amplification"] is None


def test_a_late_original_that_was_asked_for_in_vain_was_not_lost(tmp_path):
    packets = in_turn(40)
    late = packets.pop(30)._replace(time_ns=made.START_NS + 41 * 20_000)
    repair = numbered(42, made.data(32 * 30), 140)
    fates, flow = told_of(tmp_path, *packets, asked(40, 32 * 30, 32), late, repair)
    assert fates[-2:] == ["reordered", "resent"]
    assert (flow["reordered_frames"], flow["loss_amplification"]) == (1, None)


def test_frames_of_one_datagram_that_travelled_apart_are_originals(tmp_path):
    """As a middlebox sends them that strikes one of them: all have the datagram's number."""
    packets = in_turn(40)
    first, last = (numbered(at, made.data(32 * at), 140) for at in (40, 42))
    late = numbered(60, made.data(32 * 41), 140)
    fates, _ = told_of(tmp_path, *packets, first, last, asked(45, 32 * 41, 32), late, late)
    assert fates[-3:] == ["first", "reordered", "duplicate"]


def test_new_bytes_that_a_repair_overtook_are_out_of_order(tmp_path):
    packets = in_turn(40)
    del packets[30]
    repair = numbered(41, made.data(32 * 30), 141)
    overtaken = numbered(42, made.data(32 * 40), 140)
    fates, flow = told_of(tmp_path, *packets, asked(40, 32 * 30, 32), repair, overtaken)
    assert fates[-2:] == ["resent", "reordered"]
    assert (flow["reordered_extent_max"], flow["reordered_ns_max"]) == (1, 20_000)


def test_what_was_asked_for_and_came_as_new_was_repaired(tmp_path):
    """As where a capture begins in the middle of a repair."""
    begin = [made.packet(made.START_NS - 1_000, made.setup()), *in_turn(1)]
    (tmp_path / "made.pcap").write_bytes(
        made.pcap([*begin, asked(1, 32, 32), numbered(2, made.data(32), 101)])
    )
    (gap,) = analyze([str(tmp_path / "made.pcap")]).gaps.to_pylist()
    assert (gap["position"], gap["outcome"]) == (32, "repaired")


def copied(packet, *, after):
    return packet._replace(time_ns=packet.time_ns + after)


def test_copies_are_no_places_of_an_order_and_overtake_nothing(tmp_path):
    """RFC 4737 counts packets, whose copies are not looked at; and so do two points."""
    packets = in_turn(40)
    late = packets.pop(30)._replace(time_ns=made.START_NS + 34 * 20_000 + 5_000)
    copies = [copied(each, after=1_000) for each in packets[30:34]]
    came = sorted([*packets, *copies, late], key=lambda each: each.time_ns)
    fates, flow = told_of(tmp_path, *came)
    assert fates.count("duplicate") == 4
    assert flow["reordered_frames"] == 1
    assert flow["reordered_extent_max"] == 4


def test_a_copy_is_no_place_before_new_bytes_either(tmp_path):
    packets = in_turn(40)
    del packets[30]
    repair = numbered(41, made.data(32 * 30), 141)
    overtaken = numbered(42, made.data(32 * 40), 140)
    again = copied(repair, after=1_000)
    fates, flow = told_of(tmp_path, *packets, asked(40, 32 * 30, 32), repair, again, overtaken)
    assert fates[-3:] == ["resent", "duplicate", "reordered"]
    assert (flow["reordered_extent_max"], flow["reordered_ns_max"]) == (1, 20_000)


@pytest.mark.full(keep=3)
@pytest.mark.parametrize("seed", SEEDS)
def test_one_point_and_two_count_the_same_extents(tmp_path, seed):
    near, far = repaired_link.captures(repaired_link.run(seed))
    one = fates(tmp_path, "one", far=far)
    both = [
        each
        for each in fates(tmp_path, "both", near=near, far=far)
        if each["vantage_point"] == "far"
    ]
    extents = [
        (mine["extent_frames"], theirs["extent_frames"])
        for mine, theirs in zip(one, both, strict=True)
        if mine["fate"] == theirs["fate"] == "reordered"
    ]
    assert extents
    assert [mine for mine, _ in extents] == [theirs for _, theirs in extents]


def test_what_a_heartbeat_showed_is_counted_from_the_next_frame_on(tmp_path):
    packets = in_turn(40)
    late = packets.pop(39)._replace(time_ns=made.START_NS + 45 * 20_000)
    heartbeat = numbered(41, made.heartbeat(32 * 40), 141)
    behind = [numbered(at, made.data(32 * (at - 2)), 100 + at) for at in (42, 43)]
    fates, flow = told_of(tmp_path, *packets, heartbeat, *behind, late)
    assert fates[-1] == "reordered"
    assert flow["reordered_extent_max"] == 2
