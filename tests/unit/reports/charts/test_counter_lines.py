"""Counter samples become lines of positions over time."""

from dataclasses import replace
from pathlib import Path

import numpy as np

from windtunnel.harness.artifact.host.counter_sample import (
    COUNTER_SAMPLE,
    CounterFacts,
    write_counters,
)
from windtunnel.harness.artifact.records import write_records
from windtunnel.harness.artifact.run_dir import HostDir
from windtunnel.reports.charts.counter_lines import (
    Line,
    difference,
    distances,
    sampling_interval_ns,
    stream_lines,
    value_at,
    with_plateaus,
)

STREAM = 1001
SND_POS = 2
SUB_POS = 4


def line(name: str, *points: tuple[int, int]) -> Line:
    times, values = zip(*points, strict=True)
    return Line(name, np.array(times, dtype=np.int64), np.array(values, dtype=np.int64))


def counter(
    counter_id: int, registration_id: int, stream_id: int, type_id: int, channel: str = ""
) -> CounterFacts:
    key = registration_id.to_bytes(8, "little") + bytes(4)
    key += stream_id.to_bytes(4, "little", signed=True)
    key += len(channel).to_bytes(4, "little") + channel.encode().ljust(92, b"\0")
    return CounterFacts(counter_id, type_id, registration_id, 1, 0, "snd-pos", key.hex(), 0)


def make_host(folder: Path, counters: list[CounterFacts], rows: list[tuple[int, ...]]) -> HostDir:
    host = HostDir(folder)
    write_records(host.counter_samples, np.array(rows, dtype=COUNTER_SAMPLE))
    write_counters(host.counters, counters)
    return host


def test_a_reused_counter_id_is_another_counter(tmp_path: Path) -> None:
    host = make_host(
        tmp_path,
        [counter(7, 100, STREAM, SND_POS), counter(7, 200, 1002, SND_POS)],
        [(1, 7, SND_POS, 100, 32), (2, 7, SND_POS, 200, 64), (3, 7, SND_POS, 100, 96)],
    )
    (samples_line,) = stream_lines(host, STREAM, None, {SND_POS: "snd-pos"})
    assert samples_line.time_ns.tolist() == [1, 2, 3]
    assert samples_line.value.tolist() == [32, 32, 96]


def test_a_publication_to_another_port_has_counters_of_its_own(tmp_path: Path) -> None:
    """A replay of a log whose publication has several destinations."""
    live = counter(7, 100, STREAM, SND_POS, "aeron:udp?control-mode=manual|alias=log")
    replay = counter(8, 200, STREAM, SND_POS, "aeron:udp?endpoint=10.0.0.3:9003|alias=replay")
    rows = [(1, 7, SND_POS, 100, 32), (2, 8, SND_POS, 200, 64)]
    host = make_host(tmp_path, [live, replay], rows)

    def values(port: int | None) -> list[list[int]]:
        found = stream_lines(host, STREAM, None, {SND_POS: "snd-pos"}, port)
        return [each.value.tolist() for each in found]

    assert values(9002) == [[32]]
    assert values(9003) == [[64]]
    assert values(None) == [[32, 32, 64]]


def test_of_several_subscriptions_of_an_image_the_position_of_the_slowest_is_drawn(
    tmp_path: Path,
) -> None:
    one, two, later = (
        replace(counter(at, at, STREAM, SUB_POS), reference_id=image)
        for at, image in ((7, 1), (8, 1), (9, 2))
    )
    rows = [
        (1, 7, SUB_POS, 7, 32), (2, 7, SUB_POS, 7, 64), (2, 8, SUB_POS, 8, 0),
        (3, 7, SUB_POS, 7, 96), (3, 8, SUB_POS, 8, 64), (4, 8, SUB_POS, 8, 128),
        (5, 9, SUB_POS, 9, 160),
    ]  # fmt: skip
    host = make_host(tmp_path, [one, two, later], rows)
    (found,) = stream_lines(host, STREAM, None, {SUB_POS: "sub-pos"})
    assert found.time_ns.tolist() == [1, 2, 3, 4, 5]
    assert found.value.tolist() == [32, 0, 64, 96, 160]


def test_negative_stream_ids_are_found(tmp_path: Path) -> None:
    host = make_host(tmp_path, [counter(7, 100, -4, SND_POS)], [(1, 7, SND_POS, 100, 32)])
    assert len(stream_lines(host, -4, None, {SND_POS: "snd-pos"})) == 1
    assert stream_lines(host, 4, None, {SND_POS: "snd-pos"}) == []


def test_without_files_there_are_no_lines(tmp_path: Path) -> None:
    assert stream_lines(HostDir(tmp_path), STREAM, None, {SND_POS: "snd-pos"}) == []


def test_after_a_pause_a_value_holds_until_the_previous_sample() -> None:
    plateaus = with_plateaus(line("x", (10, 0), (15, 64), (100, 96)), interval_ns=5)
    assert plateaus.time_ns.tolist() == [10, 15, 95, 100]
    assert plateaus.value.tolist() == [0, 64, 64, 96]


def test_slightly_late_samples_are_no_pause() -> None:
    plateaus = with_plateaus(line("x", (10, 0), (16, 64), (23, 96)), interval_ns=5)
    assert plateaus.time_ns.tolist() == [10, 16, 23]


def test_the_sampling_interval_ignores_pauses() -> None:
    times = [0, 5, 5, 10, 500, 505, 510, 900, 1000, 1100]
    samples = np.zeros(len(times), dtype=COUNTER_SAMPLE)
    samples["time_ns"] = times
    assert sampling_interval_ns(samples) == 5
    assert sampling_interval_ns(samples[:2]) == 0


def test_values_between_points_are_interpolated() -> None:
    ramp = line("x", (10, 0), (20, 100))
    assert value_at(ramp, np.array([5, 10, 15, 20, 99])).tolist() == [0, 0, 50, 100, 100]


def test_positions_beyond_the_precision_of_nanosecond_floats_stay_exact() -> None:
    epoch_ns = 1_700_000_000_000_000_000
    ramp = line("x", (epoch_ns, 2**40), (epoch_ns + 10, 2**40 + 320))
    assert value_at(ramp, np.array([epoch_ns + 1])).tolist() == [2**40 + 32]


def test_a_distance_has_a_point_where_either_line_has_one() -> None:
    upper = line("rcv-hwm", (10, 100), (30, 300))
    lower = line("rcv-pos", (20, 50), (40, 300))
    gap = difference("gap", upper, lower)
    assert gap.time_ns.tolist() == [20, 30, 40]
    assert gap.value.tolist() == [150, 125, 0]


def test_a_distance_is_never_negative() -> None:
    """A receiver polled later than the sender may seem to have more than was sent."""
    sent, received = line("snd-pos", (10, 0), (20, 100)), line("rcv-pos", (10, 0), (12, 80))
    assert difference("in flight", sent, received).value.tolist() == [0, 0, 20]


def test_only_distances_of_existing_lines_are_computed() -> None:
    lines = [line("rcv-hwm", (0, 9)), line("rcv-pos", (0, 4))]
    assert [(each.name, each.value.tolist()) for each in distances(lines)] == [("gap", [5])]
