"""Processes are started, watched and ended, children and all."""

import io
import os
import signal
import sys
import time
from pathlib import Path

import pytest

from windtunnel.harness.orchestrate.lab import LabError
from windtunnel.harness.orchestrate.processes import process, process_group
from windtunnel.harness.orchestrate.processes.process import LocalProcess

WAIT_S = 20.0


@pytest.fixture
def start(tmp_path):
    started = []

    def begin(script: str) -> LocalProcess:
        running = LocalProcess(
            f"a/{len(started)}",
            ["sh", "-c", script],
            env=os.environ,
            cwd=tmp_path,
            log=tmp_path / f"{len(started)}.log",
        )
        started.append(running)
        return running

    yield begin
    for running in started:
        running.kill()


def wait_for(condition) -> None:
    deadline_s = time.monotonic() + WAIT_S
    while not condition():
        assert time.monotonic() < deadline_s
        time.sleep(0.01)


def is_alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except (FileNotFoundError, ProcessLookupError):
        return False


def test_run_returns_what_the_command_printed():
    assert process.run(["cat"], stdin="some text") == b"some text"


def test_run_quotes_the_error_of_a_command_that_fails():
    with pytest.raises(LabError, match=r"exit code 3: no such thing"):
        process.run(["sh", "-c", "echo no such thing >&2; exit 3"])


def test_run_names_a_program_that_is_not_installed():
    with pytest.raises(LabError, match="'no-such-program' is not installed"):
        process.run(["no-such-program"])


def test_run_gives_up_on_a_command_that_hangs():
    with pytest.raises(LabError, match=r"did not end within 0\.2 s"):
        process.run(["sleep", "60"], timeout_s=0.2)


def test_output_and_errors_go_to_the_log_and_the_exit_code_is_kept(start, tmp_path):
    running = start("echo one; echo two >&2; exit 7")
    assert running.wait(WAIT_S) == 7
    assert running.poll() == 7
    assert (tmp_path / "0.log").read_text() == "one\ntwo\n"
    assert running.tail(1) == "two"


def test_a_process_that_lives_has_no_exit_code(start):
    running = start("sleep 60")
    assert running.poll() is None
    assert running.wait(0.05) is None


def test_terminate_sends_sigterm_which_is_the_exit_code(start):
    running = start("exec sleep 60")
    running.terminate()
    assert running.wait(WAIT_S) == -signal.SIGTERM


def test_kill_ends_the_children_too(start):
    running = start("trap '' TERM; sleep 60 & echo $!; wait; sleep 60")
    wait_for(lambda: running.tail(1).isdigit())
    child = int(running.tail(1))
    running.kill()
    assert running.poll() == -signal.SIGKILL
    wait_for(lambda: not is_alive(child))


def test_each_process_leads_a_session_of_its_own(start):
    running = start("exec sleep 60")
    assert os.getsid(running.pid) == running.pid


def test_a_program_that_cannot_be_started_is_named(tmp_path):
    with pytest.raises(LabError, match="b/driver cannot be started"):
        LocalProcess("b/driver", ["/no/such"], env={}, cwd=tmp_path, log=tmp_path / "log")


def test_tail_skips_empty_lines_and_reads_only_the_end(tmp_path):
    log = tmp_path / "log"
    log.write_text("first\n" + "x" * (2 * process.TAIL_BYTES) + "\n\nlast but one\n\nlast\n\n")
    assert process.tail_of(log, 2) == "last but one\nlast"
    assert "first" not in process.tail_of(log, 100)
    assert process.tail_of(tmp_path / "no such log") == ""


def test_a_released_watchdog_receives_the_text(tmp_path):
    script = "import sys; open('seen', 'w').write(sys.stdin.read())"
    watchdog = process.CleanupWatchdog([sys.executable, "-c", script], env=os.environ, cwd=tmp_path)
    watchdog.release(b"done\n")
    assert (tmp_path / "seen").read_text() == "done\n"


def test_the_group_of_a_process_that_was_reaped_is_left_alone(start, monkeypatch):
    """Its id may have been reused by then: a run once killed a process of a parallel run."""
    killed = []
    monkeypatch.setattr(process_group.os, "killpg", lambda pid, number: killed.append(pid))
    running = start("exit 3")
    wait_for(lambda: process_group.has_ended(running.pid))
    assert running.poll() == 3
    assert killed == [running.pid]
    running.kill()
    running.kill()
    assert killed == [running.pid]
    assert running.poll() == 3


def test_children_of_a_process_end_with_it(start, tmp_path):
    running = start("sleep 600 & echo $! > child; exit 0")
    assert running.wait(WAIT_S) == 0
    child = int((tmp_path / "child").read_text())
    wait_for(lambda: not is_alive(child))


def test_waiting_for_an_end_reaps_like_polling(start, tmp_path):
    running = start("until [ -e go ]; do sleep 0.01; done; exit 5")
    assert running.wait(0.0) is None
    (tmp_path / "go").touch()
    assert running.wait(WAIT_S) == 5
    assert running.wait(WAIT_S) == 5


@pytest.mark.parametrize("end", ["terminate", "kill", "send_signal"])
def test_children_of_an_ended_process_end_whatever_is_called(start, tmp_path, end):
    running = start("sleep 600 & echo $! > child; exit 0")
    wait_for(lambda: process_group.has_ended(running.pid))
    child = int((tmp_path / "child").read_text())
    if end == "send_signal":
        running.send_signal(signal.SIGUSR1)
    else:
        getattr(running, end)()
    running.kill()
    wait_for(lambda: not is_alive(child))


def test_a_child_that_was_reaped_elsewhere_has_ended(start):
    running = start("exit 0")
    os.waitpid(running.pid, 0)
    assert running.poll() == 0
    running.kill()


def test_a_command_in_the_foreground_writes_to_the_stderr_of_the_process(capfd, monkeypatch):
    # A stream without a descriptor, as in a test or a notebook.
    monkeypatch.setattr("sys.stderr", io.StringIO())
    argv = ["sh", "-c", "echo text; exit 3"]
    assert process.run_together([argv], env=os.environ, stdout_to_stderr=True) == [3]
    assert capfd.readouterr() == ("", "text\n")
