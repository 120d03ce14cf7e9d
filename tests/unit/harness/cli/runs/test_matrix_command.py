"""`windtunnel matrix`, with the runner replaced: no lab is built here."""

import json
from pathlib import Path
from typing import Any

import pytest

from tests.unit.reports.synthetic_matrix import make_matrix
from windtunnel.harness.artifact.run.matrix import Matrix
from windtunnel.harness.artifact.suite_dir import MatrixDir
from windtunnel.harness.cli import exit_code, scenarios
from windtunnel.harness.cli.render.matrix_display import MatrixDisplay
from windtunnel.harness.cli.root import main
from windtunnel.harness.orchestrate.event import RunEvent
from windtunnel.harness.orchestrate.suite import matrix, pool
from windtunnel.harness.orchestrate.suite.matrix import MatrixResult

BAD = {("matrix/loss", "pyaeron", "ours"): ("PASS", "FAIL")}


@pytest.fixture
def calls(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> dict[str, Any]:
    """The options of the call, whose result is a synthetic matrix with one failed cell."""
    seen: dict[str, Any] = {}

    def run_matrix(question: Any, on_event: Any, on_cell: Any) -> MatrixResult:
        seen.update(vars(question))
        made = make_matrix(BAD)
        made.exit_code = 1
        folder = MatrixDir(tmp_path / made.matrix_id)
        made.write(folder.document)
        on_event(RunEvent("run", 0, 12, "matrix/clean", 7, pair="ours to ours"))
        for count, cell in enumerate(made.cells, 1):
            on_cell(cell, count, len(made.cells))
        return MatrixResult(folder.path, made)

    monkeypatch.setattr(matrix, "run_matrix", run_matrix)
    monkeypatch.setattr("windtunnel.harness.orchestrate.labs.privileges.acquire", lambda: None)
    return seen


def test_prints_a_line_for_each_cell_then_the_page(
    calls: dict[str, Any], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["matrix", "--fidelity", "netns"]) == 1
    *cells, page = capsys.readouterr().out.splitlines()
    assert len(cells) == 8
    assert cells[6].startswith("FAIL          matrix/loss  pyaeron to ours  1/2  because")
    assert "UNSUPPORTED   matrix/loss  ours to java  because" in cells[5]
    assert page == f"page: {tmp_path / 'matrix-made' / 'matrix.html'}"
    assert Path(page.removeprefix("page: ")).is_file()


def test_passes_on_its_options(calls: dict[str, Any], tmp_path: Path) -> None:
    options = ["--publishers", "ours, aeron-c", "--subscribers", "java", "--seeds", "5"]
    options += ["--seed", "3", "--jobs", "4", "--fidelity", "compose", "--out", str(tmp_path)]
    assert main(["matrix", "loss", *options]) == 1
    assert calls["publishers"] == ("ours", "aeron-c")
    assert calls["subscribers"] == ("java",)
    assert (calls["seed"], calls["seeds"], calls["jobs"]) == (3, 5, 4)
    assert (calls["fidelity"], calls["out"]) == ("compose", tmp_path)
    assert {each.parent.name for each in calls["scenarios"]} == {"loss"}


def test_defaults_are_the_folder_of_the_matrix_and_the_jobs_of_the_machine(
    calls: dict[str, Any],
) -> None:
    main(["matrix", "--fidelity", "netns"])
    assert len(calls["scenarios"]) >= 5
    assert {each.parent.name for each in calls["scenarios"]} == {"matrix"}
    assert calls["jobs"] == pool.default_jobs()
    assert calls["publishers"] == calls["subscribers"] == ("ours", "pyaeron")


def test_documents_for_a_ci_system(
    calls: dict[str, Any], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    junit, markdown = tmp_path / "junit.xml", tmp_path / "summary.md"
    markdown.write_text("what was there\n")
    options = ["--junit", str(junit), "--markdown", str(markdown), "--json"]
    assert main(["matrix", "--fidelity", "netns", *options]) == 1
    output = capsys.readouterr()
    assert json.loads(output.out)["schema"] == "windtunnel-matrix/1"
    assert "FAIL          matrix/loss" in output.err
    assert 'failures="1"' in junit.read_text()
    assert markdown.read_text().startswith("what was there\n## ")
    assert Matrix.read(tmp_path / "matrix-made" / "matrix.json") is not None


def test_an_empty_list_of_peers_is_a_usage_error(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["matrix", "--publishers", " , "]) == exit_code.USAGE
    assert "expected at least one peer" in capsys.readouterr().err


def test_an_unknown_peer_is_a_usage_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("windtunnel.harness.orchestrate.labs.privileges.acquire", lambda: None)
    monkeypatch.setattr("windtunnel.harness.orchestrate.labs.labs.require", lambda *_: None)
    out = tmp_path / "runs"
    arguments = ["matrix", "--publishers", "aeron", "--fidelity", "netns", "--out", str(out)]
    assert main(arguments) == exit_code.USAGE
    assert "peer 'aeron': expected one of ours, pyaeron" in capsys.readouterr().err
    assert not out.exists()


def test_the_live_line_counts_cells_runs_and_failures() -> None:
    display = MatrixDisplay(lines_on_stderr=True)
    made = make_matrix(BAD)
    display.on_event(RunEvent("run", 3, 12, "matrix/loss", 8, pair="ours to ours"))
    for count, cell in enumerate(made.cells, 1):
        display.on_cell(cell, count, 8)
    display.on_event(RunEvent("verdict", 3, 12, "matrix/loss", 8, outcome="PASS"))
    assert display.text() == "8/8 cells  1 failing  1/12 runs  matrix/loss, ours to ours, seed 8"


def test_a_folder_selects_all_scenarios_in_it(tmp_path: Path) -> None:
    for name in ("loss/b", "loss/a", "lossy/c"):
        file = tmp_path / f"{name}.yaml"
        file.parent.mkdir(exist_ok=True)
        file.write_text("")
    names = [str(each.relative_to(tmp_path)) for each in scenarios.find_all(("loss",), tmp_path)]
    assert names == ["loss/a.yaml", "loss/b.yaml"]
    assert scenarios.find_all(("loss/",), tmp_path) == scenarios.find_all(("loss",), tmp_path)
