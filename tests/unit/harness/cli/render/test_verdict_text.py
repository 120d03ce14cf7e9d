"""The JSON line of a run."""

from dataclasses import replace
from pathlib import Path

from tests.unit.harness.artifact.run.test_comparison import FIRST
from tests.unit.reports.synthetic_suite import verdict_document
from windtunnel.harness.artifact.documents import write_document
from windtunnel.harness.artifact.run_dir import RunDir
from windtunnel.harness.cli.render.verdict_text import run_document
from windtunnel.harness.orchestrate.event import RunEvent


def verdict_of(run_dir: Path | None) -> RunEvent:
    return RunEvent("verdict", 0, 1, "made/up", 7, outcome="PASS", text="fine", run_dir=run_dir)


def test_a_run_has_its_folder_and_its_figures_with_rounded_rates(tmp_path: Path) -> None:
    row = replace(FIRST, reached_messages_per_s=0.1 + 0.2)
    write_document(
        RunDir(tmp_path).verdict, verdict_document("PASS") | {"results": [row.as_document()]}
    )
    document = run_document(verdict_of(tmp_path))
    assert document["run_dir"] == str(tmp_path)
    (found,) = document["results"]
    assert (found["reached_messages_per_s"], found["naks"]) == (0.3, row.naks)


def test_a_run_without_a_verdict_has_no_figures(tmp_path: Path) -> None:
    assert run_document(verdict_of(tmp_path))["results"] == []
    RunDir(tmp_path).verdict.write_text("{")
    assert run_document(verdict_of(tmp_path))["results"] == []
    assert run_document(verdict_of(None))["run_dir"] is None
