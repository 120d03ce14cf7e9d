"""The launcher of applications: their privileges, log and signals, and left-over processes."""

import contextlib
import io
import os
import random
import resource
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from unittest.mock import Mock

import pytest

from windtunnel.harness.orchestrate.applications import launcher
from windtunnel.harness.orchestrate.applications.start import blocked
from windtunnel.harness.orchestrate.labs import privileges

pytestmark = [
    pytest.mark.netns,
    pytest.mark.skipif(bool(privileges.missing()), reason="needs root"),
]
LIMIT = 20_000
WITHIN_S = 20.0


class Launched:
    """A launcher with a shell command, and its log."""

    def __init__(self, folder: Path, *command: str) -> None:
        self.log, self.folder = folder / "log", folder / "its"
        words = [sys.executable, "-I", "-S", launcher.__file__, self.log, LIMIT, self.folder]
        with blocked(launcher.FORWARDED):
            self.running = subprocess.Popen(
                [*map(str, words), *command], stdout=subprocess.PIPE, text=True
            )

    def until(self, text: str) -> None:
        deadline_s = time.monotonic() + WITHIN_S
        while not self.log.exists() or text not in self.log.read_text():
            assert time.monotonic() < deadline_s, self.log.read_text()
            time.sleep(0.01)

    def end(self) -> tuple[int, str, str]:
        """Return the exit code, the launcher's output, and the log."""
        output, _ = self.running.communicate(timeout=WITHIN_S)
        return self.running.returncode, output, self.log.read_text() if self.log.exists() else ""


@pytest.fixture
def launch(tmp_path):
    started = []

    def launch(*command):
        started.append(Launched(tmp_path, *command))
        return started[-1]

    yield launch
    for each in started:
        each.running.kill()
        each.running.wait()
        each.running.stdout.close()


def processes(text: str) -> list[str]:
    """Return the processes of this machine whose command lines contain a text."""
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                line = (entry / "cmdline").read_bytes()
            except OSError:
                continue
            if text.encode() in line:
                found.append(entry.name)
    return found


def test_has_the_exit_code_of_the_application_and_keeps_its_log(launch, tmp_path):
    code, output, log = launch("sh", "-c", "pwd; echo err >&2; exit 7").end()
    assert (code, output, log) == (7, "", f"{tmp_path}/its\nerr\n")


def test_ends_by_the_same_signal_as_the_application(launch):
    assert launch("sh", "-c", "kill -TERM $$").end()[0] == -signal.SIGTERM


def test_the_application_has_no_capabilities_and_cannot_gain_any(launch):
    _, _, log = launch("grep", "-E", "Cap|NoNewPrivs", "/proc/self/status").end()
    values = dict(line.split(":\t") for line in log.splitlines())
    assert values.pop("NoNewPrivs") == "1"
    assert len(values) == 5
    assert {int(each, 16) for each in values.values()} == {0}


def test_the_application_sees_only_its_own_processes(launch):
    _, _, log = launch("sh", "-c", "echo /proc/[0-9]*").end()
    assert log.split() == ["/proc/1", "/proc/2"]


@pytest.mark.parametrize(
    ("command", "text"),
    [
        ("no-such-program", " on the PATH"),
        ("./no-such-program", " in its working folder"),
        ("/no/such/program", ""),
    ],
)
def test_a_missing_program_is_named(launch, command, text):
    code, output, log = launch(command).end()
    assert (code, log) == (launcher.FAILED_EXIT_CODE, "")
    assert output == f"{launcher.CANNOT_START}: there is no program {command!r}{text}\n"


def test_a_log_that_becomes_too_long_ends_the_application(launch):
    code, output, log = launch("yes").end()
    assert (code, len(log)) == (launcher.FAILED_EXIT_CODE, LIMIT)
    assert output == f"{launcher.LOG_TOO_LONG}: the log exceeds {LIMIT} bytes\n"


def test_a_log_may_have_exactly_the_limit(launch):
    code, output, log = launch("head", "-c", str(LIMIT), "/dev/zero").end()
    assert (code, output, len(log)) == (0, "", LIMIT)


def test_a_log_that_cannot_be_written_ends_the_application(launch, tmp_path):
    (tmp_path / "log").symlink_to("/dev/full")
    started = launch("sh", "-c", "echo one; sleep 1000")
    output, _ = started.running.communicate(timeout=WITHIN_S)
    assert started.running.returncode == launcher.FAILED_EXIT_CODE
    assert output == f"{launcher.LOG_LOST}: the log cannot be written: No space left on device\n"


def test_a_partial_write_is_continued_and_its_error_is_reported(launch):
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    try:
        # A write that crosses the limit is partial, like one that fills the disk.
        resource.setrlimit(resource.RLIMIT_FSIZE, (1000, before[1]))
        launched = launch("head", "-c", "1500", "/dev/zero")
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
    code, output, log = launched.end()
    assert (code, len(log)) == (launcher.FAILED_EXIT_CODE, 1000)
    assert output == f"{launcher.LOG_LOST}: the log cannot be written: File too large\n"


def test_all_bytes_are_written(tmp_path):
    class Slow(io.FileIO):
        def write(self, data):
            return super().write(bytes(data)[:3])

    with Slow(tmp_path / "file", "w") as file:
        launcher.write_whole(file, b"1234567")
    assert (tmp_path / "file").read_bytes() == b"1234567"
    with pytest.raises(OSError, match="no byte was written"):
        launcher.write_whole(Mock(write=lambda data: 0), b"1")


def test_a_problem_is_also_reported_on_a_full_disk(tmp_path):
    with small_disk(tmp_path) as disk:
        words = [sys.executable, "-I", "-S", launcher.__file__, disk / "log", 1 << 30, tmp_path]
        with (disk / "launcher.log").open("ab") as output:
            subprocess.run([*map(str, words), "yes"], stdout=output, timeout=WITHIN_S, check=False)
        assert (disk / "launcher.log").read_text().startswith(f"{launcher.LOG_LOST}: ")


@contextlib.contextmanager
def small_disk(folder: Path) -> Iterator[Path]:
    disk = folder / "disk"
    disk.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=64k", "none", disk], check=True)
    try:
        yield disk
    finally:
        subprocess.run(["umount", disk], check=True)


def test_a_successor_appends_to_the_log(launch):
    assert launch("echo", "one").end()[2] == "one\n"
    assert launch("echo", "two").end()[2] == "one\ntwo\n"


def test_processes_in_other_groups_end_with_the_application(launch):
    mark = f"{os.getpid()}1.5"
    assert launch("sh", "-c", f"setsid sleep {mark} & exit 3").end()[0] == 3
    assert processes(mark) == []


def test_all_processes_end_with_the_launcher(launch):
    mark = f"{os.getpid()}2.5"
    launched = launch("sh", "-c", f"setsid sleep {mark} & echo up; sleep {mark}")
    launched.until("up")
    assert processes(mark)
    launched.running.kill()
    deadline_s = time.monotonic() + WITHIN_S
    while processes(mark):
        assert time.monotonic() < deadline_s
        time.sleep(0.01)


def test_signals_reach_the_application(launch):
    waiting = "trap 'echo got; exit 5' USR1; echo up; while :; do sleep 0.01; done"
    launched = launch("sh", "-c", waiting)
    launched.until("up")
    launched.running.send_signal(signal.SIGUSR1)
    code, _, log = launched.end()
    assert (code, log) == (5, "up\ngot\n")


def test_a_pause_stops_all_processes_until_it_ends(launch):
    mark = f"{os.getpid()}3.5"
    launched = launch("sh", "-c", f"setsid sleep {mark} & echo up; sleep {mark}")
    launched.until("up")
    wait_for_states(mark, "S")
    launched.running.send_signal(launcher.PAUSE)
    wait_for_states(mark, "T")
    launched.running.send_signal(launcher.RESUME)
    wait_for_states(mark, "S")


def wait_for_states(mark: str, state: str) -> None:
    """Wait until the application's three processes have a state. The launcher and its first child
    are not stopped.
    """
    deadline_s = time.monotonic() + WITHIN_S
    while time.monotonic() < deadline_s:
        pids = [each for each in processes(mark) if launcher.__file__ not in command_of(each)]
        if len(pids) == 3 and {state_of(each) for each in pids} == {state}:
            return
        time.sleep(0.01)
    pytest.fail(f"expected 3 processes in state {state}")


def command_of(pid: str) -> str:
    return Path(f"/proc/{pid}/cmdline").read_text()


def state_of(pid: str) -> str:
    return Path(f"/proc/{pid}/stat").read_text().rpartition(") ")[2][0]


@pytest.mark.parametrize("rounds", [500, pytest.param(10_000, marks=pytest.mark.full)])
def test_no_signal_is_lost_or_overtaken_by_the_next(launch, rounds):
    """Signals that follow each other within a few microseconds: a launcher that waits with handlers
    loses about one of 700, because a handler is not called while `waitpid` blocks.
    """
    program = (
        "import os, signal; signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGUSR1})\n"
        "while os.write(1, b'.'): signal.sigwait({signal.SIGUSR1})"
    )
    launched = launch(sys.executable, "-I", "-S", "-c", program)
    launched.until(".")
    gaps = random.Random(1)
    for answers in range(2, rounds + 2):
        for number in (launcher.PAUSE, launcher.RESUME, signal.SIGUSR1):
            launched.running.send_signal(number)
            until_s = time.perf_counter() + gaps.random() * 0.0006
            while time.perf_counter() < until_s:
                pass
        deadline_s = time.monotonic() + WITHIN_S
        while launched.log.stat().st_size < answers:
            assert time.monotonic() < deadline_s, f"no response to request {answers - 1}"
            time.sleep(0.0001)


@pytest.mark.parametrize("number", [signal.SIGTERM, launcher.PAUSE])
def test_a_signal_that_arrives_before_the_launcher_runs_reaches_the_application(launch, number):
    launched = launch("sh", "-c", "trap 'echo asked; exit 7' TERM; sleep 0.1; echo begun")
    launched.running.send_signal(number)
    if number == launcher.PAUSE:
        launched.running.send_signal(launcher.RESUME)
    code, output, log = launched.end()
    assert output == ""
    # A shell that has not set its trap yet is ended by the signal.
    assert (code, log) in ((0, "begun\n"), (7, "asked\n"), (-signal.SIGTERM, ""))
    assert (code == 0) == (number == launcher.PAUSE)


def test_signals_are_blocked_only_within_the_context():
    before = signal.pthread_sigmask(signal.SIG_BLOCK, [])
    with blocked([signal.SIGUSR2]):
        assert signal.SIGUSR2 in signal.pthread_sigmask(signal.SIG_BLOCK, [])
    assert signal.pthread_sigmask(signal.SIG_BLOCK, []) == before
