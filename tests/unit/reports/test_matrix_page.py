"""matrix.html needs no other file, and has a cell with a link for each pair and scenario."""

import re
from pathlib import Path

import pytest

from tests.unit.reports.synthetic_matrix import make_matrix
from tests.unit.reports.test_page import read
from windtunnel.harness.artifact.documents import DocumentError
from windtunnel.harness.artifact.run.matrix import Matrix
from windtunnel.harness.artifact.run.suite import Suite
from windtunnel.harness.artifact.suite_dir import MatrixDir
from windtunnel.reports.matrix_page import write_matrix_page

BAD = ("matrix/loss", "pyaeron", "ours")


def write(folder: Path, matrix: Matrix) -> MatrixDir:
    """Write the documents of a matrix and of its suites, without any run folder."""
    made = MatrixDir(folder)
    matrix.write(made.document)
    for name in {cell.suite for cell in matrix.cells}:
        runs = [run for cell in matrix.cells if cell.suite == name for run in cell.runs]
        Suite(name, "netns", [], 1, 2, 0, runs).write(made.suite(name).document)
    return made


@pytest.fixture
def made(tmp_path: Path) -> MatrixDir:
    return write(tmp_path / "matrix", make_matrix({BAD: ("PASS", "FAIL", "PASS")}))


def test_needs_no_file_except_those_it_links_to(made: MatrixDir) -> None:
    text, reader = read(write_matrix_page(made.path))
    assert not re.search(r"@import|url\(|fetch\(|XMLHttpRequest|https?://", text)
    links = [each for each in reader.addresses if not each.startswith(("#", "data:"))]
    assert links
    assert all(each.startswith(("ours-to-ours/", "pyaeron-to-ours/")) for each in links)


def test_has_a_row_per_scenario_and_a_column_per_pair(made: MatrixDir) -> None:
    text, reader = read(write_matrix_page(made.path))
    cells = reader.sections["cells"]
    assert re.findall(r"matrix/\w+", cells) == ["matrix/clean", "matrix/loss"]
    loss = cells.partition("matrix/loss")[2].split()
    assert loss == ["PASS", "2/2", "unsupported", "FAIL", "2/3", "unsupported"]
    assert "<title>FAIL" in text


def test_a_cell_links_to_the_run_that_decided_it(made: MatrixDir) -> None:
    text, _ = read(write_matrix_page(made.path))
    # The pair's suite has two runs of matrix/clean before those of matrix/loss.
    assert 'href="pyaeron-to-ours/report.html#run-3" title="because | of &lt;FAIL&gt;' in text
    report = made.suite("pyaeron-to-ours").report.read_text()
    assert 'id="run-3"' in report
    assert 'href="pyaeron-to-ours/matrix-loss-s8/" title="seed 8: FAIL: because' in text


def test_failures_and_unsupported_cells_have_separate_sections(made: MatrixDir) -> None:
    _, reader = read(write_matrix_page(made.path))
    findings, missing = reader.sections["findings"], reader.sections["missing"]
    assert "pyaeron-to-ours/matrix-loss-s8" in findings
    assert "UNSUPPORTED" not in findings
    assert missing.split()[:5] == ["Not", "supported", "here", "cells", "reason"]
    assert "4 because | of <UNSUPPORTED>" in re.sub(r"\s+", " ", missing)
    assert "AERON_ALL_JAR is not set" in reader.sections["drivers"]


def test_a_matrix_of_passes_has_no_findings(tmp_path: Path) -> None:
    made = write(tmp_path / "matrix", make_matrix())
    _, reader = read(write_matrix_page(made.path))
    assert "findings" not in reader.sections


def test_an_unfinished_matrix_is_drawn(tmp_path: Path) -> None:
    matrix = make_matrix()
    matrix.exit_code = None
    for cell in matrix.cells[3:]:
        cell.runs, cell.outcome, cell.reason = [], "", ""
    text, reader = read(write_matrix_page(write(tmp_path / "matrix", matrix).path))
    assert reader.sections["cells"].count("not run") == 5
    assert "not finished" in text


def test_a_folder_without_a_matrix_is_refused(tmp_path: Path) -> None:
    with pytest.raises(DocumentError, match=r"matrix\.json"):
        write_matrix_page(tmp_path)


def test_a_link_in_place_of_the_page_is_replaced(made: MatrixDir, tmp_path: Path) -> None:
    victim = tmp_path / "victim"
    victim.write_text("secret")
    made.page.symlink_to(victim)
    assert write_matrix_page(made.path) == made.page
    assert victim.read_text() == "secret"
    assert not made.page.is_symlink()
