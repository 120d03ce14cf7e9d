"""The command group: its start-up, and the message and exit code of each kind of error."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import click
import pytest

from windtunnel.harness.cli import exit_code, root
from windtunnel.harness.scenario.schema.model import SEED_MAX

HEAVY = ("numba", "numpy", "pydantic", "scapy", "rich", "docker", "yaml", "plotly")
LIST_LOADED = f"""
import sys
from windtunnel.harness.__main__ import main
code = main({{arguments}})
print([name for name in {HEAVY} if name in sys.modules], file=sys.stderr)
sys.exit(code)
"""


def loaded_by(*arguments: str) -> subprocess.CompletedProcess[str]:
    script = LIST_LOADED.format(arguments=list(arguments))
    return subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=False
    )


@pytest.mark.full(keep=3)
@pytest.mark.parametrize(
    "arguments",
    [
        ("--help",),
        ("run", "--help"),
        ("stat", "--help"),
        ("logbuffer", "--help"),
        ("driver-info", "--help"),
        ("--version",),
        ("frob",),
        (),
    ],
    ids=str,
)
def test_starts_without_heavy_imports(arguments: tuple[str, ...]) -> None:
    done = loaded_by(*arguments)
    assert done.stderr.splitlines()[-1] == "[]"


def test_detects_a_heavy_import() -> None:
    assert "pydantic" in loaded_by("explain", "loss/reliable-2pct").stderr.splitlines()[-1]


@pytest.mark.parametrize(
    "command",
    ["run", "explain", "swarm", "exam", "envelope", "matrix", "calibrate", "lab up"],
)
def test_a_seed_above_the_maximum_is_a_usage_error(
    command: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """It would otherwise be reduced, so that the run had another seed than the given one."""
    assert root.main([*command.split(), "--seed", str(SEED_MAX + 1)]) == exit_code.USAGE
    assert f"not in the range 0<=x<={SEED_MAX}" in capsys.readouterr().err


@pytest.mark.parametrize(
    "words",
    [
        ("run", "--junit"), ("run", "--markdown"), ("matrix", "--junit"),
        ("compare", ".", "--report"), ("bench", "--json"), ("from-capture", "x.pcap", "--out"),
        ("new",),
    ],
)  # fmt: skip
def test_a_file_in_a_folder_that_does_not_exist_is_a_usage_error(
    words: tuple[str, ...], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = tmp_path / "none"
    assert root.main([*words, str(folder / "x.yaml")]) == exit_code.USAGE
    err = capsys.readouterr().err
    assert f"expected an existing folder, found no folder {folder}" in err
    assert not folder.exists()


@pytest.mark.parametrize("command", ["run", "matrix"])
@pytest.mark.parametrize(
    ("name", "found"),
    [
        ("folder", ", found a folder"), ("none", ", found no such file"),
        ("empty", " with at least one byte, found an empty file"),
        ("pipe", ", found no regular file"),
    ],
)  # fmt: skip
def test_a_payload_that_is_not_a_file_or_empty_is_a_usage_error(
    command: str, name: str, found: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "folder").mkdir()
    (tmp_path / "empty").touch()
    os.mkfifo(tmp_path / "pipe")
    path = tmp_path / name
    assert root.main([command, "--payload", str(path)]) == exit_code.USAGE
    assert f"'--payload': {path}: expected a file to send{found}" in capsys.readouterr().err


def test_help_names_every_command_and_exit_code(capsys: pytest.CaptureFixture[str]) -> None:
    assert root.main(["--help"]) == 0
    output = capsys.readouterr().out
    for name in ("run", "list", "explain", "judge", "report", "decisions", "doctor", "clean"):
        assert f"\n  {name} " in output
    for name in ("stat", "streams", "backlog", "loss", "errors", "logbuffer", "driver-info"):
        assert f"\n  {name} " in output
    assert "2 INCONCLUSIVE" in output


def test_no_command_shows_the_help(capsys: pytest.CaptureFixture[str]) -> None:
    assert root.main([]) == 0
    assert "Commands:" in capsys.readouterr().out


@pytest.mark.parametrize(
    "arguments",
    [
        ["frob"],
        ["run", "--frob"],
        ["run", "no/such-scenario"],
        ["run", "--seed", "seven"],
        ["run", "--seeds", "0"],
        ["run", "--seeds", "100001"],
        ["matrix", "--seeds", "99999999999"],
        ["exam", "--seeds", "99999999999"],
        ["run", "--fidelity", "vm"],
        ["stat", "--interval", "nan"],
        ["swarm", "--minutes", "nan", "--seeds", "1"],
        ["run", "--payload", "/nowhere/at/all"],
        ["judge", "/nowhere/at/all"],
        ["judge"],
    ],
    ids=" ".join,
)
def test_wrong_command_line_is_one_line_and_64(
    arguments: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert root.main(arguments) == exit_code.USAGE
    output = capsys.readouterr()
    assert output.out == ""
    assert output.err.startswith("windtunnel: ")
    assert output.err.count("\n") == 1


def fake(monkeypatch: pytest.MonkeyPatch, error: BaseException) -> None:
    @click.command("fake")
    def command() -> None:
        raise error

    monkeypatch.setitem(root.windtunnel.commands, "fake", command)


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (KeyboardInterrupt(), exit_code.INTERRUPTED),
        (BrokenPipeError(), exit_code.BROKEN_PIPE),
        (OSError(28, "No space left on device", "runs/x"), exit_code.HARNESS),
    ],
    ids=["interrupt", "broken pipe", "disk full"],
)
def test_expected_errors_show_no_traceback(
    error: BaseException,
    code: int,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
) -> None:
    fake(monkeypatch, error)
    monkeypatch.setattr("os.dup2", lambda *_: None)
    assert root.main(["fake"]) == code
    assert "Traceback" not in capfd.readouterr().err


def test_disk_full_names_the_file(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    fake(monkeypatch, OSError(28, "No space left on device", "runs/x"))
    root.main(["fake"])
    assert capsys.readouterr().err == "windtunnel: runs/x: No space left on device\n"


@pytest.mark.parametrize("error", [MemoryError(), MemoryError("cannot allocate 5 GiB")])
def test_too_little_memory_is_no_defect(
    error: MemoryError, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    fake(monkeypatch, error)
    assert root.main(["fake"]) == exit_code.HARNESS
    reason = f": {error}" if str(error) else ""
    assert capsys.readouterr().err == f"windtunnel: not enough memory (see `ulimit -v`){reason}\n"


def test_a_current_directory_that_was_removed_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    gone = tmp_path / "gone"
    gone.mkdir()
    monkeypatch.chdir(gone)
    gone.rmdir()
    with pytest.raises(FileNotFoundError) as raised:
        Path.cwd()
    fake(monkeypatch, raised.value)
    assert root.main(["fake"]) == exit_code.HARNESS
    assert "windtunnel: the current directory does not exist any more" in capsys.readouterr().err


def test_a_defect_has_another_exit_code_than_a_fail(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    fake(monkeypatch, ZeroDivisionError("oops"))
    assert root.main(["fake"]) == exit_code.HARNESS
    assert "ZeroDivisionError: oops" in capsys.readouterr().err


def test_a_closed_pipe_is_not_a_fail() -> None:
    reader, writer = os.pipe()
    os.close(reader)
    command = [sys.executable, "-m", "windtunnel.harness", "list", "--json"]
    done = subprocess.run(command, stdout=writer, stderr=subprocess.PIPE, text=True, check=False)
    os.close(writer)
    assert done.returncode == exit_code.BROKEN_PIPE
    assert done.stderr == ""


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
def test_a_signal_ends_each_command_after_its_cleanup(
    number: signal.Signals, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """`calibrate`, for example, left its folder and its programs."""
    cleaned = []

    def work(*_: object, **__: object) -> int:
        try:
            os.kill(os.getpid(), number)
            return exit_code.OK
        finally:
            cleaned.append(number)

    before = signal.signal(number, lambda *_: None)
    monkeypatch.setattr(root.windtunnel, "main", work)
    try:
        assert root.main([]) == 128 + number
    finally:
        signal.signal(number, before)
    assert cleaned == [number]
    assert capsys.readouterr().err == f"windtunnel: cancelled by {number.name}\n"
