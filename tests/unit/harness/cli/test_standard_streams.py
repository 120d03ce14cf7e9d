"""Commands whose standard streams are closed, full or no longer read."""

import subprocess
import sys
from pathlib import Path

import pytest

from tests.golden.reader import load
from windtunnel.harness.cli import exit_code

WINDTUNNEL = f"{sys.executable} -m windtunnel.harness"
ARCHIVE_DAMAGED = 2
COMMANDS = ("list", "list --json", "--help", "archive run --settings", "swarm --seeds 2 --json")
FAILURES = (
    ("frob", exit_code.USAGE),
    ("judge none", exit_code.USAGE),
    ("archive describe --dir none", 1),
    ("archive frob", exit_code.USAGE),
)


def ended(command: str, streams: str, folder: Path) -> subprocess.CompletedProcess[str]:
    """Execute a command in a folder, with redirections as in a shell."""
    return subprocess.run(
        ["bash", "-c", f"{WINDTUNNEL} {command} {streams}; exit ${{PIPESTATUS[0]}}"],
        cwd=folder,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )


@pytest.mark.full(keep=2)
@pytest.mark.parametrize("command", COMMANDS)
def test_a_full_stdout_is_named_and_is_no_verdict(command: str, tmp_path: Path) -> None:
    """Python's exit code of an exception is 1, which means FAIL, or a violation."""
    done = ended(command, ">/dev/full", tmp_path)
    code = ARCHIVE_DAMAGED if command.startswith("archive") else exit_code.HARNESS
    assert done.returncode == code
    name = "[Errno 28]" if command.startswith("swarm") else "stdout:"
    assert done.stderr.endswith(f"{name} No space left on device\n")
    assert len(done.stderr.splitlines()) == 1


@pytest.mark.full(keep=2)
@pytest.mark.parametrize("streams", [">&-", "2>&-", "<&- >&- 2>&-", "2>/dev/full"])
@pytest.mark.parametrize("command", COMMANDS)
def test_a_stream_that_nobody_reads_changes_no_exit_code(
    command: str, streams: str, tmp_path: Path
) -> None:
    done = ended(command, streams, tmp_path)
    assert done.returncode == exit_code.OK
    assert done.stderr == ""


@pytest.mark.full(keep=2)
@pytest.mark.parametrize(("command", "code"), FAILURES)
@pytest.mark.parametrize("streams", ["2>/dev/full", "2> >(true)"])
def test_an_error_without_a_place_for_its_message_has_its_exit_code(
    command: str, code: int, streams: str, tmp_path: Path
) -> None:
    assert ended(command, streams, tmp_path).returncode == code


def test_a_closed_pipe_ends_each_command_silently(tmp_path: Path) -> None:
    for command in ("list", "swarm --seeds 3 --json"):
        done = ended(command, "| true", tmp_path)
        assert (done.returncode, done.stderr) == (exit_code.BROKEN_PIPE, ""), command


def test_a_full_stdout_is_no_damage_of_a_log_buffer(tmp_path: Path) -> None:
    (tmp_path / "5.logbuffer").write_bytes(load("loss-unreliable", "image-5.logbuffer"))
    for options in ("", "--json"):
        done = ended(f"logbuffer 5.logbuffer {options}", ">/dev/full", tmp_path)
        text = "windtunnel: stdout: No space left on device\n"
        assert (done.returncode, done.stderr) == (exit_code.HARNESS, text)
