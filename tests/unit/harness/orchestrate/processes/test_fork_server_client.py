"""A forked program behaves like a started one: its arguments, its environment, and its end."""

import json
import os
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

import numba
import pytest

from windtunnel.harness.installation import ROOT as REPOSITORY
from windtunnel.harness.middlebox.engine import prf
from windtunnel.harness.orchestrate.lab import LabError
from windtunnel.harness.orchestrate.labs.namespaces import environment
from windtunnel.harness.orchestrate.processes import fork_server, fork_server_client

PROGRAM = "tests.stand_ins.forked_program"
WAIT_S = 30.0


@pytest.fixture(scope="module")
def server():
    """One fork server for all tests, which has imported a module that the program does not need."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(
            fork_server_client.FORK_SERVERS, PROGRAM, ("windtunnel.harness.middlebox.engine.prf",)
        )
        patch.setattr(fork_server_client, "HARNESS_PROGRAMS", (PROGRAM,))
        patch.setattr(fork_server_client, "_servers", {})
        created = fork_server_client._server_of(PROGRAM, environment(), REPOSITORY)
        yield created
        created.close()


@pytest.fixture
def start(server, tmp_path):
    created = []

    def spawn(*words: str, env: dict[str, str] | None = None) -> fork_server_client.ForkedProcess:
        argv = [sys.executable, "-m", PROGRAM, *words]
        assert fork_server_client.can_fork(argv, {})
        log = tmp_path / f"{len(created)}.log"
        common = {"PATH": os.environ["PATH"], "PYTHONUNBUFFERED": "1"}
        created.append(
            fork_server_client.spawn(
                words[0], argv, common=common, env=env or {}, cwd=tmp_path, log=log, network=None
            )
        )
        return created[-1]

    yield spawn
    for each in created:
        each.kill()


def until(condition) -> None:
    deadline_s = time.monotonic() + WAIT_S
    while not condition():
        assert time.monotonic() < deadline_s
        time.sleep(0.01)


def is_alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] not in "ZX"
    except (FileNotFoundError, ProcessLookupError):
        return False


def test_it_is_the_main_module_with_the_given_folder_and_environment(start, tmp_path):
    process = start("tell", env={"AERON_DIR": "/x"})
    assert process.wait(WAIT_S) == 0
    first, second = process.log.read_text().splitlines()
    file = REPOSITORY / "tests" / "stand_ins" / "forked_program.py"
    variables = ["AERON_DIR", "PATH", "PYTHONUNBUFFERED"]
    assert first == f"__main__ {file} {tmp_path} {variables}"
    assert second == "to stderr"
    assert process.tail(1) == "to stderr"


@pytest.mark.parametrize(
    ("words", "code", "last"),
    [
        (("exit", "0"), 0, ""),
        (("exit", "127"), 127, ""),
        (("say", "no such thing"), 1, "no such thing"),
        (("raise",), 1, "ValueError: of the program's own"),
        (("abort",), -signal.SIGABRT, ""),
        (("at-exit",), 0, "left in order"),
    ],
)
def test_it_ends_as_an_interpreter_does(start, words, code, last):
    process = start(*words)
    assert process.wait(WAIT_S) == code
    assert process.poll() == code
    assert process.tail(1) == last


def test_it_waits_for_its_threads(start):
    process = start("at-exit")
    assert process.wait(WAIT_S) == 0
    assert process.tail(2).splitlines() == ["thread has ended", "left in order"]


def test_it_is_asked_to_end_and_is_killed_with_its_children(start):
    waiting = start("wait")
    until(lambda: waiting.tail())
    assert waiting.poll() is None
    assert waiting.wait(0.01) is None
    waiting.terminate()
    assert waiting.wait(WAIT_S) == -signal.SIGTERM
    waiting.terminate()
    parent = start("family")
    until(lambda: parent.tail())
    child = int(parent.tail())
    parent.kill()
    assert parent.wait(WAIT_S) == -signal.SIGKILL
    until(lambda: not is_alive(child))


def test_a_program_that_cannot_be_forked_has_a_reason(server, tmp_path):
    argv = [sys.executable, "-m", PROGRAM, "tell"]
    process = fork_server_client.spawn(
        "x", argv, common={}, env={}, cwd=tmp_path, log=tmp_path / "x.log", network=tmp_path
    )
    assert process.wait(WAIT_S) == 125
    assert str(tmp_path) in process.tail(1)


def test_a_response_that_was_not_read_is_skipped(server, start):
    stale = {"operation": "load_kernels", "id": -1}
    server._socket.send(json.dumps(stale).encode())
    assert start("exit", "5").wait(WAIT_S) == 5


def test_a_reused_process_id_has_the_end_of_its_latest_process(monkeypatch):
    """Process ids are reused within hours: the end of a killed process must not be reported for
    its successor.
    """
    statuses = iter([signal.SIGKILL, 5 << 8])
    monkeypatch.setattr(os, "fork", lambda: 4711)
    monkeypatch.setattr(os, "setpgid", lambda pid, group: None)
    monkeypatch.setattr(os, "waitpid", lambda pid, options: (pid, next(statuses)))
    monkeypatch.setattr(fork_server.process_group, "has_ended", lambda pid: True)
    monkeypatch.setattr(fork_server.process_group, "kill", lambda pid: None)
    own_socket, child_socket = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    with own_socket, child_socket:
        for number, request in enumerate(2 * ["spawn", "poll", "poll"]):
            own_socket.send(json.dumps({"operation": request, "pid": 4711, "id": number}).encode())
        own_socket.shutdown(socket.SHUT_WR)
        assert fork_server.ForkServerProcess(child_socket, ()).serve() is None
        answers = [json.loads(own_socket.recv(fork_server.MESSAGE_BYTES_MAX)) for _ in range(6)]
    assert [each.get("code") for each in answers] == [
        None,
        -signal.SIGKILL,
        -signal.SIGKILL,
        None,
        5,
        5,
    ]


def test_cached_kernels_are_loaded_once_for_all_programs(server):
    prf.draw(1, 2, 3, 4, 5)
    count = server.exchange({"operation": "load_kernels"})["count"]
    assert (count > 0) != bool(numba.config.DISABLE_JIT)


def test_other_programs_and_other_interpreters_are_not_forked():
    assert not fork_server_client.can_fork(["tcpdump", "-i", "eth0"], {})
    assert not fork_server_client.can_fork(
        ["/usr/bin/python3", "-m", "windtunnel.driver", "--dir", "/x"], {}
    )
    assert not fork_server_client.can_fork(
        [sys.executable, "-m", "windtunnel.harness.bench.c_driver"], {}
    )
    assert not fork_server_client.can_fork([sys.executable, "-m"], {})


HARNESS = f"""
import sys, time
from pathlib import Path
from windtunnel.harness.orchestrate.processes import fork_server_client
from windtunnel.harness.orchestrate.labs.namespaces import environment
fork_server_client.FORK_SERVERS[{PROGRAM!r}] = ()
fork_server_client.HARNESS_PROGRAMS = ({PROGRAM!r},)
folder = Path(sys.argv[1])
argv = [sys.executable, "-m", {PROGRAM!r}, "wait"]
child = fork_server_client.spawn("x", argv, common=environment(), env={{}}, cwd=Path.cwd(),
                     log=folder / "log", network=None)
print(child.pid, flush=True)
time.sleep({WAIT_S})
"""


def test_the_death_of_the_harness_ends_all_programs(tmp_path):
    argv = [sys.executable, "-c", HARNESS, str(tmp_path)]
    harness = subprocess.Popen(argv, cwd=REPOSITORY, stdout=subprocess.PIPE, text=True)
    try:
        pid = int(harness.stdout.readline())
        until(lambda: (tmp_path / "log").exists() and "\n" in (tmp_path / "log").read_text())
        assert (tmp_path / "log").read_text() == "waiting\n"
        assert is_alive(pid)
    finally:
        harness.kill()
        harness.communicate()
    until(lambda: not is_alive(pid))


def test_a_fork_server_that_has_died_is_reported_and_replaced(monkeypatch, tmp_path):
    monkeypatch.setitem(fork_server_client.FORK_SERVERS, PROGRAM, ())
    monkeypatch.setattr(fork_server_client, "HARNESS_PROGRAMS", (PROGRAM,))
    monkeypatch.setattr(fork_server_client, "_servers", {})
    first = fork_server_client._server_of(PROGRAM, environment(), REPOSITORY)
    first._process.terminate()
    first._process.end(WAIT_S)
    with pytest.raises(LabError, match="fork server"):
        first.exchange({"operation": "load_kernels"})
    second = fork_server_client._server_of(PROGRAM, environment(), REPOSITORY)
    assert second is not first
    assert second.exchange({"operation": "load_kernels"})["count"] == 0
    first.close()
    second.close()


@pytest.mark.parametrize("name", ["PYTHONPATH", "NUMBA_BOUNDSCHECK", "WINDTUNNEL_KERNEL_CACHE"])
def test_a_program_with_other_import_settings_gets_its_own_interpreter(name):
    argv = [sys.executable, "-m", "windtunnel.driver", "--dir", "/x"]
    assert fork_server_client.can_fork(argv, {"AERON_DIR": "/x"})
    assert not fork_server_client.can_fork(argv, {name: "1"})


def test_a_server_ends_silently_if_the_harness_ends_without_reading_its_answers():
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    started = subprocess.Popen(
        [sys.executable, "-m", fork_server.__name__, str(theirs.fileno())],
        pass_fds=(theirs.fileno(),),
        stderr=subprocess.PIPE,
    )
    theirs.close()
    request = json.dumps({"operation": "load_kernels", "id": 1}).encode()
    ours.send(request)
    assert ours.recv(1_000, socket.MSG_PEEK)
    ours.send(request)
    ours.close()
    assert (started.communicate(timeout=WAIT_S)[1], started.returncode) == (b"", 0)
