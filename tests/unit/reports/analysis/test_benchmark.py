"""Synthetic traffic has the documented gaps, and a benchmark reports what it measured."""

import pytest

from windtunnel.reports.analysis import benchmark
from windtunnel.reports.analysis.analyze import analyze
from windtunnel.reports.analysis.synthetic_traffic import CYCLE, write_capture


@pytest.mark.parametrize("frame_length", [64, 1024])
def test_synthetic_traffic_has_a_repaired_gap_per_cycle(frame_length, tmp_path):
    path = tmp_path / "made.pcap"
    count = write_capture(path, 20_000, frame_length)
    result = analyze([str(path)])
    assert result.problems == []
    assert result.captures["frames"].to_pylist() == [count]
    cycles = count // (CYCLE + 3)
    (flow,) = result.flows.to_pylist()
    assert flow["high_position"] == flow["rebuilt_position"] == cycles * CYCLE * frame_length
    assert (flow["naks"], flow["resent_frames"]) == (cycles, cycles)
    assert {gap["outcome"] for gap in result.gaps.to_pylist()} == {"repaired"}
    assert result.gaps.num_rows == cycles
    (image,) = result.images.to_pylist()
    assert (image["messages"], image["holes"]) == (cycles * CYCLE, 0)


def test_positions_continue_across_terms(tmp_path):
    path = tmp_path / "made.pcap"
    write_capture(path, 40_000, 1024)
    (stream,) = analyze([str(path)]).streams.to_pylist()
    assert stream["term_rotations"] >= 2
    assert stream["problem"] == ""


def test_a_row_has_rate_and_memory():
    sizes = []
    others = {"other": lambda path: sizes.append(path.stat().st_size)}
    row, other = benchmark.measure(3_000, 64, ("local",), others)
    assert row["engine"] == "local"
    assert row["frames_per_s"] == pytest.approx(row["frames"] / row["wall_s"])
    assert row["memory_mib"] > 50
    assert (other["engine"], other["bytes"]) == ("other", sizes[0])


def test_a_figure_is_the_median_of_all_rounds(monkeypatch):
    times = iter([(3.0, 1.0), (1.0, 2.0), (2.0, 4.0)])
    monkeypatch.setattr(benchmark, "_once", lambda work, usage_of: next(times))
    (row,) = benchmark.measure(3_000, 64, ("local",), {}, rounds=3)
    assert (row["rounds"], row["wall_s"], row["cpu_s"]) == (3, 2.0, 2.0)
    assert row["frames_per_s"] == row["frames"] / 2


def test_other_readers_get_a_shorter_capture(monkeypatch):
    monkeypatch.setattr(benchmark, "OTHERS_FRAMES_MAX", 2_000)
    ours, other = benchmark.measure(6_000, 64, ("local",), {"other": lambda path: None})
    assert 2_000 <= other["frames"] < ours["frames"] / 2
    assert other["bytes"] < ours["bytes"] / 2


def test_a_missing_reader_is_reported():
    def unavailable(path):
        raise benchmark.ReaderUnavailable("tshark is not on PATH")

    rows = benchmark.measure(3_000, 64, (), {"tshark": unavailable})
    assert benchmark.lines(rows) == ["tshark  not measured: tshark is not on PATH"]


def test_ratios_are_relative_to_tshark():
    rows = [
        {"engine": "local", "wall_s": 1.0, "frames_per_s": 1e6, "frames_per_cpu_s": 1e6,
         "memory_mib": 400.0},
        {"engine": "tshark", "wall_s": 25.0, "frames_per_s": 4e4, "frames_per_cpu_s": None,
         "memory_mib": None},
    ]  # fmt: skip
    lines = benchmark.lines(rows)
    assert lines[0].endswith("400 MiB, 25.0 times as fast as tshark")
    assert "times" not in lines[1]
