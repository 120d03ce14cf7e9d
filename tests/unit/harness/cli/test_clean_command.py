"""The output and the exit codes of `windtunnel clean`."""

from pathlib import Path

import pytest

from windtunnel.harness.cli import exit_code
from windtunnel.harness.cli.root import main
from windtunnel.harness.orchestrate.lab import LabError
from windtunnel.harness.orchestrate.labs import containers
from windtunnel.harness.orchestrate.teardown import clean
from windtunnel.harness.uml import boot


def run(out: Path) -> int:
    return main(["clean", "--out", str(out)])


@pytest.fixture
def machine(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> pytest.MonkeyPatch:
    """A machine without left-overs, and functions that add left-overs."""
    monkeypatch.setattr(clean, "remove_leftovers", lambda _: [])
    monkeypatch.setattr(containers, "remove_leftovers", list)
    monkeypatch.setattr(boot, "remove_leftovers", list)
    return monkeypatch


def test_failures_are_printed_after_everything_else_was_removed(
    machine: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    def fail(_: Path) -> list[str]:
        raise clean.NotAllRemoved(["namespace wt-x-a"], ["y: busy", "z: busy"])

    machine.setattr(clean, "remove_leftovers", fail)
    machine.setattr(boot, "remove_leftovers", lambda: ["folder f"])
    assert run(tmp_path) == exit_code.HARNESS
    output = capsys.readouterr()
    assert output.out.splitlines() == ["removed namespace wt-x-a", "removed folder f"]
    assert output.err.splitlines() == ["Error: not removed: y: busy", "Error: not removed: z: busy"]


def test_failing_containers_do_not_hide_what_was_removed(
    machine: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    def refuse() -> list[str]:
        raise LabError("the engine refuses")

    machine.setattr(clean, "remove_leftovers", lambda _: ["namespace wt-x-a"])
    machine.setattr(containers, "remove_leftovers", refuse)
    assert run(tmp_path) == exit_code.HARNESS
    printed = capsys.readouterr()
    assert printed.out == "removed namespace wt-x-a\n"
    assert printed.err == "Error: not removed: the engine refuses\n"


@pytest.mark.parametrize("error", [LabError("busy"), boot.BootError("busy"), OSError("busy")])
def test_folders_of_kernels_that_stay_are_a_failure(
    machine: pytest.MonkeyPatch,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    error: Exception,
) -> None:
    def fail() -> list[str]:
        raise error

    machine.setattr(clean, "remove_leftovers", lambda _: ["namespace wt-x-a"])
    machine.setattr(boot, "remove_leftovers", fail)
    assert run(tmp_path) == exit_code.HARNESS
    output = capsys.readouterr()
    assert output.out == "removed namespace wt-x-a\n"
    assert output.err == "Error: not removed: busy\n"


def test_nothing_left_over_is_success(
    machine: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(tmp_path) == exit_code.OK
    assert capsys.readouterr().out == "nothing to remove\n"


def test_names_of_removed_files_are_printed_without_control_characters(
    machine: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    def fail(_: Path) -> list[str]:
        raise clean.NotAllRemoved(["unreadable record \x1b[2J.json"], ["\x9b31m: busy"])

    machine.setattr(clean, "remove_leftovers", fail)
    assert run(tmp_path) == exit_code.HARNESS
    printed = capsys.readouterr()
    assert printed.out == "removed unreadable record \\x1b[2J.json\n"
    assert printed.err == "Error: not removed: \\x9b31m: busy\n"
