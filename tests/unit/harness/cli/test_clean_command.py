"""What `windtunnel clean` prints, and how it ends."""

from pathlib import Path

import pytest

from windtunnel.harness.cli import exit_code
from windtunnel.harness.cli.root import main
from windtunnel.harness.orchestrate.lab import LabError
from windtunnel.harness.orchestrate.teardown import clean
from windtunnel.harness.uml import boot


def run(out: Path) -> int:
    return main(["clean", "--out", str(out)])


@pytest.fixture
def machine(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> pytest.MonkeyPatch:
    """A machine on which nothing was left over, and the means to change that."""
    monkeypatch.setattr(clean, "remove_left_overs", lambda _: [])
    monkeypatch.setattr(boot, "remove_left_overs", list)
    return monkeypatch


def test_failures_are_printed_after_all_else_was_removed(
    machine: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    def fail(_: Path) -> list[str]:
        raise clean.NotAllRemoved(["namespace wt-x-a"], ["y: busy", "z: busy"])

    machine.setattr(clean, "remove_left_overs", fail)
    machine.setattr(boot, "remove_left_overs", lambda: ["folder f"])
    assert run(tmp_path) == exit_code.HARNESS
    told = capsys.readouterr()
    assert told.out.splitlines() == ["removed namespace wt-x-a", "removed folder f"]
    assert told.err.splitlines() == ["Error: not removed: y: busy", "Error: not removed: z: busy"]


@pytest.mark.parametrize("error", [LabError("busy"), boot.BootError("busy"), OSError("busy")])
def test_folders_of_kernels_that_stay_are_a_failure(
    machine: pytest.MonkeyPatch,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    error: Exception,
) -> None:
    def fail() -> list[str]:
        raise error

    machine.setattr(clean, "remove_left_overs", lambda _: ["namespace wt-x-a"])
    machine.setattr(boot, "remove_left_overs", fail)
    assert run(tmp_path) == exit_code.HARNESS
    told = capsys.readouterr()
    assert told.out == "removed namespace wt-x-a\n"
    assert told.err == "Error: not removed: busy\n"


def test_nothing_left_over_is_success(
    machine: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(tmp_path) == exit_code.OK
    assert capsys.readouterr().out == "nothing was left over\n"
