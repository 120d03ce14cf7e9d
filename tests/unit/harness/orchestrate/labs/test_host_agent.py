"""The agent of a container, here an ordinary process that gets its requests through a link."""

import os
import signal
import socket
import stat
import subprocess
import sys
import time
from pathlib import Path

import pytest

from windtunnel.harness.orchestrate.lab import LabError
from windtunnel.harness.orchestrate.labs import agent_link, host_agent

ROOT = Path(__file__).resolve().parents[5]
PLACE = "a"
WAIT_S = 20.0
FOREVER = [sys.executable, "-c", "import time; print('here', flush=True); time.sleep(600)"]


def until(condition, what: str) -> None:
    deadline_s = time.monotonic() + WAIT_S
    while not condition():
        assert time.monotonic() < deadline_s, f"timed out: {what}"
        time.sleep(0.01)


def is_alive(pid: int) -> bool:
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except (FileNotFoundError, ProcessLookupError):
        return False
    return state not in "ZX"


@pytest.fixture
def control(tmp_path):
    # The path is longer than that of a socket may be.
    folder = tmp_path.joinpath(*["a-folder-with-a-long-name"] * 5)
    folder.mkdir(parents=True)
    return folder


@pytest.fixture
def agent(control):
    process = subprocess.Popen(
        [sys.executable, "-m", host_agent.__name__, PLACE],
        env={**os.environ, "PYTHONPATH": str(ROOT), host_agent.CONTROL_VARIABLE: str(control)},
        stdout=subprocess.DEVNULL,
    )
    yield process
    process.kill()
    process.wait()


@pytest.fixture
def link(agent, control):
    link = agent_link.connect(control, PLACE, WAIT_S)
    yield link
    link.close()


def spawn(link, argv, log: Path, env=None):
    return link.spawn(
        f"{PLACE}/{log.stem}", argv, env=env or {}, log=log, log_in_container=str(log)
    )


def test_runs_a_process_with_its_variables_and_log(link, tmp_path):
    log = tmp_path / "logs" / "greeting.log"
    program = "import os, sys; print(os.environ['WHO']); print('!', file=sys.stderr); sys.exit(3)"
    process = spawn(link, [sys.executable, "-c", program], log, {"WHO": "host"})
    assert process.wait(WAIT_S) == 3
    assert process.poll() == 3
    assert sorted(log.read_text().split()) == ["!", "host"]
    assert "host" in process.tail()


def test_reports_which_signal_ended_a_process(link, tmp_path):
    process = spawn(link, FOREVER, tmp_path / "log")
    assert process.poll() is None
    process.terminate()
    assert process.wait(WAIT_S) == -signal.SIGTERM
    process.terminate()


def test_kills_a_process_with_its_children(link, tmp_path):
    log = tmp_path / "log"
    process = spawn(link, ["sh", "-c", "sleep 600 & echo $!; wait"], log)
    until(lambda: log.exists() and log.read_text().strip(), "the child's id")
    child = int(log.read_text())
    process.kill()
    assert process.poll() == -signal.SIGKILL
    until(lambda: not is_alive(child), "the child's end")


def test_waits_no_longer_than_requested(link, tmp_path):
    process = spawn(link, FOREVER, tmp_path / "log")
    assert process.wait(0.02) is None


def test_the_death_of_the_harness_ends_its_processes(agent, control, tmp_path):
    link = agent_link.connect(control, PLACE, WAIT_S)
    process = spawn(link, FOREVER, tmp_path / "log")
    pid = process._pid
    assert is_alive(pid)
    link.close()
    until(lambda: not is_alive(pid), "the process's end")
    again = agent_link.connect(control, PLACE, WAIT_S)
    with pytest.raises(LabError, match="was not started by this agent"):
        again.request("poll", pid=pid)
    again.close()


def test_the_end_of_the_agent_ends_its_processes(agent, link, tmp_path):
    process = spawn(link, FOREVER, tmp_path / "log")
    agent.terminate()
    assert agent.wait(WAIT_S) == 0
    until(lambda: not is_alive(process._pid), "the process's end")
    with pytest.raises(LabError, match="agent in a"):
        process.poll()


def test_stops_on_request(agent, control):
    agent_link.connect(control, PLACE, WAIT_S).close()
    agent_link.stop_all(control)
    assert agent.wait(WAIT_S) == 0


def test_runs_short_commands(link):
    assert link.run(["printf", "x y"]) == b"x y"
    with pytest.raises(LabError, match=r"`sh -c exit 4` in a failed with exit code 4"):
        link.run(["sh", "-c", "exit 4"])


def test_the_output_of_a_command_is_not_in_a_file_that_can_be_foreseen(link, monkeypatch):
    monkeypatch.setattr(agent_link.time, "monotonic_ns", lambda: 5)
    assert [link.run(["printf", text]) for text in "xy"] == [b"x", b"y"]


def test_reads_files_of_the_container(link):
    assert b"Udp:" in link.read("/proc/net/snmp")
    with pytest.raises(LabError, match="No such file"):
        link.read("/nowhere")


def test_replaces_a_directory(link, tmp_path):
    folder = tmp_path / "memory"
    for _ in range(2):
        link.request("empty_directory", path=str(folder))
        assert list(folder.iterdir()) == []
        assert stat.S_IMODE(folder.stat().st_mode) == 0o770
        (folder / "left-over").touch()


@pytest.mark.parametrize(
    ("request_", "complaint"),
    [
        ({"operation": "fly"}, "fly"),
        ({"operation": "poll"}, "pid"),
        ({"operation": "poll", "pid": 1}, "was not started by this agent"),
        (
            {"operation": "spawn", "argv": ["/no/such"], "env": {}, "log": "/dev/null"},
            "No such file",
        ),
        ({"operation": "spawn", "argv": 5, "env": {}, "log": "/dev/null"}, "int"),
    ],
)
def test_rejects_invalid_requests_and_continues(link, request_, complaint):
    with pytest.raises(LabError, match=complaint):
        link.request(**request_)
    assert link.run(["true"]) == b""


def test_closes_a_connection_that_sends_garbage_and_accepts_the_next(agent, control):
    agent_link.connect(control, PLACE, WAIT_S).close()
    with socket.socket(socket.AF_UNIX) as rubbish:
        address, handle = host_agent.socket_address(control, PLACE)
        rubbish.connect(address)
        os.close(handle)
        rubbish.sendall(b"\xff" * 4)
        assert rubbish.recv(1) == b""
    link = agent_link.connect(control, PLACE, WAIT_S)
    assert link.run(["true"]) == b""
    link.close()


def test_missing_agent_is_an_error_of_the_lab(tmp_path):
    with pytest.raises(LabError, match=r"no agent for a could be reached within 0\.05 s"):
        agent_link.connect(tmp_path, PLACE, 0.05)


ORPHANS = """
import ctypes, signal, sys
from windtunnel.harness.orchestrate.labs.host_agent import Children

ctypes.CDLL(None).prctl(36, 1)  # PR_SET_CHILD_SUBREAPER, as process 1 is
children = Children()
signal.signal(signal.SIGCHLD, children.reap)
for index in range(60):
    pid = children.spawn(["sh", "-c", "sleep 60 & sleep 60 & sleep 60 & exit 0"], {}, sys.argv[1])
    while children.code(pid) is None:
        pass
for index in range(60):
    for each in range(4):
        children.spawn(["sleep", "60"], {}, sys.argv[1])
    children.kill_all()
print("all reaped")
"""


def test_orphans_that_end_while_their_leader_is_reaped_do_not_disturb_it(tmp_path):
    """The signal handler may run in between: it once reaped the child that was being examined."""
    done = subprocess.run(
        [sys.executable, "-c", ORPHANS, str(tmp_path / "log")],
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        timeout=250,
    )
    assert (done.returncode, done.stdout) == (0, "all reaped\n"), done.stderr
