"""A matrix runs each scenario with each pair and keeps the worst outcome of each cell."""

from dataclasses import replace

import pytest

from tests.unit.harness.orchestrate.suite.test_runner import SCENARIO
from windtunnel.harness.artifact.run.matrix import Matrix, MatrixCell
from windtunnel.harness.artifact.run.suite import Suite, SuiteRun
from windtunnel.harness.artifact.suite_dir import MatrixDir
from windtunnel.harness.orchestrate.labs import labs
from windtunnel.harness.orchestrate.run.one_run import RunResult
from windtunnel.harness.orchestrate.run.payload import Payload
from windtunnel.harness.orchestrate.subjects.peers import PeerError
from windtunnel.harness.orchestrate.subjects.subject import OURS, Pair
from windtunnel.harness.orchestrate.suite import matrix, pool
from windtunnel.harness.orchestrate.suite.matrix import (
    MatrixSpec,
    folder_name,
    run_matrix,
    update_outcome,
)


@pytest.fixture
def question(tmp_path, monkeypatch) -> MatrixSpec:
    monkeypatch.setattr(labs, "require", lambda *_: None)
    stored = tmp_path / "payload"
    stored.write_bytes(b"payload")
    monkeypatch.setattr(matrix, "payload_of", lambda store, file: Payload(stored, "0" * 64, 7, ""))
    files = []
    for name in ("one", "two"):
        files.append(tmp_path / f"{name}.yaml")
        files[-1].write_text(SCENARIO.replace("name: small", f"name: {name}"))
    return MatrixSpec(files, ["ours"], ["ours", "java"], seeds=2, out=tmp_path / "runs")


def answer(monkeypatch, outcome_of) -> list:
    """Replace the runner by a function of the order. Returns the list of orders."""
    seen = []

    def execute_runs(specs, *, jobs, on_event, on_result, cancellation) -> None:
        seen.extend(specs)
        for index, spec in enumerate(specs):
            on_result(index, RunResult(outcome_of(spec), f"because of {spec.seed}", 1, 2))

    monkeypatch.setattr(pool, "execute_runs", execute_runs)
    return seen


def test_every_pair_runs_every_scenario_with_every_seed(question, monkeypatch):
    monkeypatch.delenv("AERON_ALL_JAR", raising=False)
    specs = answer(monkeypatch, lambda spec: "PASS")
    result = run_matrix(question)
    requested = [(o.scenario.name, o.tested.name, o.seed) for o in specs]
    assert requested == [
        (scenario, pair, seed)
        for scenario in ("one", "two")
        for pair in ("ours to ours", "ours to java")
        for seed in (7, 8)
    ]
    assert len({spec.folder.path for spec in specs}) == len(specs)
    assert len({spec.run_id for spec in specs}) == len(specs)
    document = Matrix.read(MatrixDir(result.matrix_dir).document)
    assert document == result.document
    assert document.exit_code == 0
    assert [peer.name for peer in document.peers] == ["ours", "java"]
    assert "AERON_ALL_JAR is not set" in document.peers[1].missing
    for cell in document.cells:
        assert (cell.pass_count, cell.planned_count, len(cell.runs)) == (2, 2, 2)
    suite = Suite.read(MatrixDir(result.matrix_dir).suite("ours-to-java").document)
    assert (suite.publisher, suite.subscriber, len(suite.runs)) == ("ours", "java", 4)


def test_the_outcome_of_a_cell_is_its_worst_run_and_that_of_the_matrix_its_worst_cell(
    question, monkeypatch
):
    def outcome_of(spec) -> str:
        if spec.tested.subscriber.name == "java":
            return "UNSUPPORTED"
        return "INCONCLUSIVE" if (spec.scenario.name, spec.seed) == ("two", 8) else "PASS"

    answer(monkeypatch, outcome_of)
    reported_cells = []
    result = run_matrix(question, on_cell=lambda *reported: reported_cells.append(reported[1:]))
    assert reported_cells == [(1, 4), (2, 4), (3, 4), (4, 4)]
    first, second, third, _ = result.document.cells
    assert (first.outcome, first.pass_count) == ("PASS", 2)
    assert (second.outcome, second.pass_count) == ("UNSUPPORTED", 0)
    assert (third.outcome, third.pass_count, third.reason) == ("INCONCLUSIVE", 1, "because of 8")
    assert result.document.exit_code == 2


def test_a_peer_that_is_named_twice_is_run_once(question, monkeypatch):
    specs = answer(monkeypatch, lambda spec: "PASS")
    run_matrix(replace(question, subscribers=["aeron-c", "pyaeron"]))
    assert {spec.tested.name for spec in specs} == {"ours to pyaeron"}
    assert len(specs) == 4


def test_an_unknown_name_is_refused_before_anything_is_written(question):
    with pytest.raises(PeerError):
        run_matrix(replace(question, publishers=["ours", "nobody"]))
    assert not question.out.exists()


def test_a_cell_that_was_cancelled_reports_so():
    cell = MatrixCell("one", "ours", "ours", "s", planned_count=3)
    cell.runs = [SuiteRun("f", "one", 1, "CANCELLED", "cancelled", 1, 2)]
    update_outcome(cell)
    assert (cell.outcome, cell.pass_count) == ("CANCELLED", 0)
    cell.runs.append(SuiteRun("g", "one", 2, "FAIL", "wrong byte", 1, 2))
    update_outcome(cell)
    assert (cell.outcome, cell.reason) == ("FAIL", "wrong byte")


def test_folders_of_pairs_are_readable_and_differ():
    left, right = (replace(OURS, name=f"aeronmd:/{each}/bin/my driver") for each in "xy")
    assert folder_name(Pair(OURS, OURS)) == "ours-to-ours"
    names = {folder_name(Pair(OURS, left)), folder_name(Pair(OURS, right))}
    assert len(names) == 2
    assert all(name.startswith("ours-to-my-driver-") for name in names)
