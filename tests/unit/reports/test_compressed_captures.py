"""Every reader of run folders reads the same from compressed captures as from plain ones."""

import shutil
from pathlib import Path

import numpy as np
import pytest

from tests.unit.reports.synthetic_suite import RunParameters, make_suite
from windtunnel.harness.artifact.compressed_file import compress_file
from windtunnel.harness.artifact.run_dir import RunDir
from windtunnel.harness.cli.root import main
from windtunnel.harness.dissect.capture.pcap import read_capture
from windtunnel.harness.verdict.core.evidence import Evidence
from windtunnel.reports.charts.chart_document import chart_document
from windtunnel.reports.charts.packing import pack
from windtunnel.reports.charts.series_reader import read_series


@pytest.fixture
def runs(tmp_path: Path) -> tuple[RunDir, RunDir]:
    """Make a run twice: with plain captures, and with compressed ones."""
    (plain,) = make_suite(tmp_path / "plain", RunParameters(frame_count=150)).runs()
    packed = RunDir(tmp_path / "packed" / plain.path.name)
    shutil.copytree(plain.path, packed.path)
    for host in ("a", "b"):
        compress_file(packed.capture(host))
    assert sorted(each.name for each in packed.captures.iterdir()) == ["a.pcap.gz", "b.pcap.gz"]
    return plain, packed


def test_the_judge(runs: tuple[RunDir, RunDir]) -> None:
    for host, frames_min in (("a", 300), ("b", 6)):
        first, second = (Evidence(each.path).capture(host) for each in runs)
        assert len(first.frames) >= frames_min  # type: ignore[union-attr]
        assert np.array_equal(first.frames, second.frames)  # type: ignore[union-attr]


def test_the_chart(runs: tuple[RunDir, RunDir]) -> None:
    first, second = (pack(chart_document(read_series(each), [])) for each in runs)
    assert first == second


def test_the_analysis(runs: tuple[RunDir, RunDir], capsys: pytest.CaptureFixture[str]) -> None:
    texts = []
    for each in runs:
        assert main(["analyze", str(each.path)]) == 0
        texts.append(capsys.readouterr().out.replace(".pcap.gz", ".pcap"))
    assert texts[0] == texts[1]


def test_a_scenario_from_its_captures(runs: tuple[RunDir, RunDir], tmp_path: Path) -> None:
    texts = []
    for index, each in enumerate(runs):
        out = tmp_path / str(index) / "same.yaml"
        out.parent.mkdir()
        assert main(["from-capture", str(each.capture("a")), "--out", str(out)]) == 0
        texts.append(out.read_text().replace(".pcap.gz", ".pcap"))
    assert texts[0].replace("/plain/", "/packed/") == texts[1]


def test_a_damaged_compressed_capture_is_reported_as_a_problem(runs: tuple[RunDir, RunDir]) -> None:
    path = runs[1].capture("a")
    path.write_bytes(path.read_bytes()[:-20])
    found = read_capture(path)
    assert found is not None
    assert found.problem.startswith("cannot be decompressed")
