"""A suite whose progress nobody reads any more: it ends, and this is no failure of the lab."""

from pathlib import Path

import pytest

from tests.unit.harness.orchestrate.suite.test_matrix import answer, question
from tests.unit.harness.orchestrate.suite.test_runner import Bench
from windtunnel.harness.orchestrate.suite.matrix import run_matrix

__all__ = ["question"]


def fail(*_: object) -> None:
    raise BrokenPipeError(32, "Broken pipe")


def test_a_closed_pipe_ends_a_suite_as_such(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(BrokenPipeError):
        Bench(tmp_path, monkeypatch).run(on_event=fail)


def test_a_closed_pipe_ends_a_matrix_as_such(question, monkeypatch) -> None:
    answer(monkeypatch, lambda spec: "PASS")
    with pytest.raises(BrokenPipeError):
        run_matrix(question, on_cell=fail)
