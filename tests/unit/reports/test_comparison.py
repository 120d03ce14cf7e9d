"""Pages compare the runs of a suite with several seeds, or of a matrix, on one time axis."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from tests.unit.harness.artifact.run.test_comparison import FIRST
from tests.unit.reports.synthetic_matrix import make_matrix
from tests.unit.reports.synthetic_suite import RunParameters, make_run, make_suite, verdict_document
from tests.unit.reports.test_matrix_page import write
from windtunnel.harness.artifact.documents import write_document
from windtunnel.harness.artifact.run.manifest import Manifest
from windtunnel.harness.artifact.run.result_row import FOUND_MAX
from windtunnel.harness.artifact.run_dir import RunDir
from windtunnel.harness.artifact.suite_dir import SuiteDir
from windtunnel.reports.charts.chart_document import comparison_document
from windtunnel.reports.charts.series_reader import read_series
from windtunnel.reports.compare_page import write_comparison
from windtunnel.reports.comparison import COLUMNS_MAX, distinct_names
from windtunnel.reports.matrix_page import write_matrix_page
from windtunnel.reports.page import write_suite_report

SMALL = RunParameters(frame_count=200)


def with_results(run: RunDir, row=FIRST) -> None:
    document = verdict_document("PASS") | {"results": [row.as_document()]}
    write_document(run.verdict, document)


def suite_of(folder: Path, count: int) -> SuiteDir:
    """Runs of one scenario that differ in their seeds and in their numbers of NAKs."""
    for seed in range(count):
        run = RunDir(folder / f"mine-s{seed}")
        make_run(run, "mine", replace(SMALL, seed=seed), "PASS")
        with_results(run, replace(FIRST, naks=100 + seed))
    return SuiteDir(folder)


def test_a_suite_with_several_seeds_shows_a_comparison(tmp_path: Path) -> None:
    text = write_suite_report(suite_of(tmp_path / "suite", 3).path).read_text(encoding="utf-8")
    assert "<h2>Comparison of mine</h2>" in text
    assert "100 for 9 gaps (11.1 each)</td>" in text
    assert "102 for 9 gaps (11.3 each) (+2)</td>" in text
    assert 'data-series="series-compared-0"' in text
    assert 'id="series-compared-0"' in text


def test_streams_that_no_scenario_names_are_compared_in_one_table(tmp_path: Path) -> None:
    suite = suite_of(tmp_path / "suite", 2)
    for number, run in enumerate(suite.runs()):
        rows = [
            replace(FIRST, traffic=f"stream-{stream} session {number}", found_stream=stream)
            for stream in range(FOUND_MAX + 1)
        ]
        document = verdict_document("PASS") | {"results": [row.as_document() for row in rows]}
        write_document(run.verdict, document)
    text = write_suite_report(suite.path).read_text(encoding="utf-8")
    compared = text.partition("Comparison of mine")[2].partition('id="run-0"')[0]
    assert compared.count("<table") == 1
    assert compared.count(">10 lost, silent for 80 ms<") == 2 * (FOUND_MAX + 1)
    assert ">1 more stream<" in compared
    shown = text.partition('id="run-0"')[2]
    assert "More streams" in shown
    assert "1 stream: 10 frames lost, 10 sent again, 12 NAKs" in shown


def test_a_session_of_an_observed_stream_of_one_run_only_is_not_drawn(tmp_path: Path) -> None:
    run = RunDir(tmp_path / "one")
    make_run(run, "mine", SMALL, "PASS")
    series = read_series(run)
    for stream in series.streams:
        stream.observed = True
    other = replace(series, streams=[replace(each, traffic_id="x") for each in series.streams])
    assert comparison_document([("one", series), ("two", other)])["streams"] == []
    assert len(comparison_document([("one", series), ("two", series)])["streams"]) == 2


def test_a_suite_of_different_scenarios_shows_none(tmp_path: Path) -> None:
    suite = make_suite(tmp_path / "suite", SMALL, ("PASS", "PASS"))
    for run in suite.runs():
        with_results(run)
    names = {Manifest.read(run.manifest).scenario for run in suite.runs()}
    assert len(names) == 2
    assert "Comparison of" not in write_suite_report(suite.path).read_text(encoding="utf-8")


def test_a_comparison_of_many_runs_states_how_many_it_shows(tmp_path: Path) -> None:
    count = COLUMNS_MAX + 2
    text = write_suite_report(suite_of(tmp_path / "suite", count).path).read_text(encoding="utf-8")
    assert f"The first {COLUMNS_MAX} of {count} runs" in text
    assert f"{99 + COLUMNS_MAX} for 9 gaps" in text
    assert f"{100 + COLUMNS_MAX} for 9 gaps" not in text.partition('id="run-0"')[0]


def test_a_matrix_compares_its_pairs(tmp_path: Path) -> None:
    folder = write(tmp_path / "matrix", make_matrix())
    assert "Figures of" not in write_matrix_page(folder.path).read_text(encoding="utf-8")
    for index, suite in enumerate(("ours-to-ours", "pyaeron-to-ours")):
        run = RunDir(folder.path / suite / "matrix-clean-s7")
        run.path.mkdir(parents=True)
        with_results(run, replace(FIRST, naks=100 + index))
    text = write_matrix_page(folder.path).read_text(encoding="utf-8")
    assert "<h2>Figures of matrix/clean</h2>" in text
    assert "Figures of matrix/loss" not in text
    assert "100 for 9 gaps (11.1 each)</td>" in text
    assert "101 for 9 gaps (11.2 each) (+1)</td>" in text


def test_times_begin_with_the_first_activity_of_each_run(tmp_path: Path) -> None:
    runs = []
    for name, later_ns in (("one", 0), ("two", 5_000_000_000)):
        run = RunDir(tmp_path / name)
        make_run(run, "mine", SMALL, "PASS")
        series = read_series(run)
        for stream in series.streams:
            stream.lines = [replace(each, time_ns=each.time_ns + later_ns) for each in stream.lines]
            stream.marks = [replace(each, time_ns=each.time_ns + later_ns) for each in stream.marks]
            stream.distances = [
                replace(each, time_ns=each.time_ns + later_ns) for each in stream.distances
            ]
        runs.append((name, series))
    document = comparison_document(runs)
    for stream in document["streams"]:
        names = [line["name"] for line in stream["lines"]]
        assert names == ["snd-pos of one", "sub-pos of one", "snd-pos of two", "sub-pos of two"]
        assert [line["colour"] for line in stream["lines"]] == ["run-1", "run-1", "run-2", "run-2"]
        first, second = stream["lines"][1], stream["lines"][3]
        # The same run, 5 s later, has the same line.
        assert np.array_equal(first["t"], second["t"])
        assert np.array_equal(first["v"], second["v"])
        assert first["t"].max() <= document["duration_ms"]
    start_ns, end_ns = runs[0][1].active_ns
    assert document["duration_ms"] == pytest.approx((end_ns - start_ns) / 1e6)


@pytest.mark.parametrize(
    ("paths", "names"),
    [
        (["/r/s1/x", "/r/s1/y"], ["x", "y"]),
        (["/r/s1/x", "/r/s2/x"], ["s1/x", "s2/x"]),
        (["/r/s1/x", "/q/s1/x", "/q/s1/y"], ["r/s1/x", "q/s1/x", "q/s1/y"]),
    ],
)
def test_names_are_as_short_as_they_can_be_while_unique(paths, names) -> None:
    assert distinct_names([Path(each) for each in paths]) == names


def test_a_link_in_place_of_the_page_is_replaced(tmp_path: Path) -> None:
    victim, page = tmp_path / "victim", tmp_path / "compared.html"
    victim.write_text("secret")
    page.symlink_to(victim)
    assert write_comparison(suite_of(tmp_path / "suite", 2).runs(), page) == page
    assert victim.read_text() == "secret"
    assert not page.is_symlink()
