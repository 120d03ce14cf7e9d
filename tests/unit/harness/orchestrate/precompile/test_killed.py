"""Programs that compile kernels end with the harness, and leave no folder behind."""

import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from windtunnel.harness.orchestrate.precompile import precompile

WITHIN_S = 60
SLEEP = ("timeit", "-n", "1", "import time; time.sleep(600)")
COMPILE = f"""
import sys
from pathlib import Path
from windtunnel.harness.orchestrate.precompile import precompile
precompile.PROGRAMS["netns"] = ({SLEEP!r}, {SLEEP!r})
precompile.compile_all(Path(sys.argv[1]))
"""


def until(condition: Callable[[], object], what: str) -> None:
    deadline_s = time.monotonic() + WITHIN_S
    while not condition():
        assert time.monotonic() < deadline_s, f"waited {WITHIN_S} s for {what}"
        time.sleep(0.02)


def children(pid: int) -> list[int]:
    tasks = Path(f"/proc/{pid}/task").glob("*/children")
    return [int(each) for task in tasks for each in task.read_text().split()]


def is_alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except (FileNotFoundError, ProcessLookupError):
        return False


def has_started(pid: int) -> bool:
    words = Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")
    return b"timeit" in words and b"setpriv" not in words


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM, signal.SIGINT])
@pytest.mark.skipif(shutil.which("setpriv") is None, reason="setpriv is not installed")
def test_the_programs_end_when_the_harness_is_asked_to_end(
    number: signal.Signals, tmp_path: Path
) -> None:
    """The signal is for this process alone: a terminal would send it to all of them."""
    harness = subprocess.Popen([sys.executable, "-c", COMPILE, tmp_path], stderr=subprocess.DEVNULL)
    try:
        until(lambda: len(children(harness.pid)) == 2, "the programs")
        programs = children(harness.pid)
        until(lambda: all(map(has_started, programs)), "the start of the programs")
        harness.send_signal(number)
        assert harness.wait(WITHIN_S) == -number
    finally:
        harness.kill()
        harness.wait()
    until(lambda: not any(map(is_alive, programs)), "the end of the programs")


@pytest.mark.full(keep=3)
@pytest.mark.parametrize(
    "program", sorted({*precompile.OF_PROCESSES, *precompile.OF_SIMULATOR}), ids=str
)
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP])
def test_a_program_that_is_asked_to_end_removes_its_folder(
    number: signal.Signals, program: tuple[str, ...], tmp_path: Path
) -> None:
    environment = {**os.environ, "TMPDIR": str(tmp_path)}
    started = subprocess.Popen(
        [sys.executable, "-m", *program],
        env=environment,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
    )
    try:
        until(lambda: list(tmp_path.glob("windtunnel-warm-up-*")), "the folder")
        started.send_signal(number)
        assert started.communicate(timeout=WITHIN_S) == (None, b"")
        assert started.returncode == 128 + number
    finally:
        started.kill()
        started.wait()
    assert list(tmp_path.glob("windtunnel-warm-up-*")) == []
