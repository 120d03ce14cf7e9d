"""A forked program is as one that was started: what it is told, how it ends, and with whom."""

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
def family():
    """One zygote for all tests: it has imported something that the program does not need."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(
            fork_server_client.FORK_SERVERS, PROGRAM, ("windtunnel.harness.middlebox.engine.prf",)
        )
        patch.setattr(fork_server_client, "OURS", (PROGRAM,))
        patch.setattr(fork_server_client, "_families", {})
        made = fork_server_client._family_of(PROGRAM, environment(), REPOSITORY)
        yield made
        made.close()


@pytest.fixture
def start(family, tmp_path):
    made = []

    def spawn(*words: str, env: dict[str, str] | None = None) -> fork_server_client.ForkedProcess:
        argv = [sys.executable, "-m", PROGRAM, *words]
        assert fork_server_client.knows(argv, {})
        log = tmp_path / f"{len(made)}.log"
        usual = {"PATH": os.environ["PATH"], "PYTHONUNBUFFERED": "1"}
        made.append(
            fork_server_client.spawn(
                words[0], argv, usual=usual, env=env or {}, cwd=tmp_path, log=log, network=None
            )
        )
        return made[-1]

    yield spawn
    for each in made:
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


def test_it_is_the_main_module_where_it_was_told_to_be(start, tmp_path):
    told = start("tell", env={"AERON_DIR": "/x"})
    assert told.wait(WAIT_S) == 0
    first, second = told.log.read_text().splitlines()
    file = REPOSITORY / "tests" / "stand_ins" / "forked_program.py"
    variables = ["AERON_DIR", "PATH", "PYTHONUNBUFFERED"]
    assert first == f"__main__ {file} {tmp_path} {variables}"
    assert second == "to stderr"
    assert told.tail(1) == "to stderr"


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


def test_what_cannot_be_made_says_why(family, tmp_path):
    argv = [sys.executable, "-m", PROGRAM, "tell"]
    process = fork_server_client.spawn(
        "x", argv, usual={}, env={}, cwd=tmp_path, log=tmp_path / "x.log", network=tmp_path
    )
    assert process.wait(WAIT_S) == 125
    assert str(tmp_path) in process.tail(1)


def test_an_answer_that_nobody_took_is_passed_over(family, start):
    stale = {"do": "warm", "id": -1}
    family._ours.send(json.dumps(stale).encode())
    assert start("exit", "5").wait(WAIT_S) == 5


def test_a_number_that_the_kernel_gives_again_has_the_end_of_its_last_process(monkeypatch):
    """Within hours of runs the numbers come round: the killed one's end must not be told of it."""
    statuses = iter([signal.SIGKILL, 5 << 8])
    monkeypatch.setattr(os, "fork", lambda: 4711)
    monkeypatch.setattr(os, "setpgid", lambda pid, group: None)
    monkeypatch.setattr(os, "waitpid", lambda pid, options: (pid, next(statuses)))
    monkeypatch.setattr(fork_server.group, "has_ended", lambda pid: True)
    monkeypatch.setattr(fork_server.group, "kill", lambda pid: None)
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    with ours, theirs:
        for number, request in enumerate(2 * ["spawn", "poll", "poll"]):
            ours.send(json.dumps({"do": request, "pid": 4711, "id": number}).encode())
        ours.shutdown(socket.SHUT_WR)
        assert fork_server.ForkServerProcess(theirs, ()).serve() is None
        answers = [json.loads(ours.recv(fork_server.MESSAGE_BYTES_MAX)) for _ in range(6)]
    assert [each.get("code") for each in answers] == [
        None,
        -signal.SIGKILL,
        -signal.SIGKILL,
        None,
        5,
        5,
    ]


def test_kernels_that_were_kept_are_loaded_once_for_all(family):
    prf.draw(1, 2, 3, 4, 5)
    count = family.ask({"do": "warm"})["count"]
    assert (count > 0) != bool(numba.config.DISABLE_JIT)


def test_other_programs_and_other_interpreters_are_not_forked():
    assert not fork_server_client.knows(["tcpdump", "-i", "eth0"], {})
    assert not fork_server_client.knows(
        ["/usr/bin/python3", "-m", "windtunnel.driver", "--dir", "/x"], {}
    )
    assert not fork_server_client.knows(
        [sys.executable, "-m", "windtunnel.harness.bench.c_driver"], {}
    )
    assert not fork_server_client.knows([sys.executable, "-m"], {})


HARNESS = f"""
import sys, time
from pathlib import Path
from windtunnel.harness.orchestrate import nursery
from windtunnel.harness.orchestrate.labs.namespaces import environment
nursery.FAMILIES[{PROGRAM!r}] = ()
nursery.OURS = ({PROGRAM!r},)
folder = Path(sys.argv[1])
argv = [sys.executable, "-m", {PROGRAM!r}, "wait"]
made = nursery.spawn("x", argv, usual=environment(), env={{}}, cwd=folder, log=folder / "log",
                     network=None)
print(made.pid, flush=True)
time.sleep({WAIT_S})
"""


def test_the_death_of_the_harness_ends_them_all(tmp_path):
    argv = [sys.executable, "-c", HARNESS, str(tmp_path)]
    harness = subprocess.Popen(argv, cwd=REPOSITORY, stdout=subprocess.PIPE, text=True)
    pid = int(harness.stdout.readline())
    assert is_alive(pid)
    harness.kill()
    harness.communicate()
    until(lambda: not is_alive(pid))


def test_a_zygote_that_has_died_is_told_and_replaced(monkeypatch, tmp_path):
    monkeypatch.setitem(fork_server_client.FORK_SERVERS, PROGRAM, ())
    monkeypatch.setattr(fork_server_client, "OURS", (PROGRAM,))
    monkeypatch.setattr(fork_server_client, "_families", {})
    first = fork_server_client._family_of(PROGRAM, environment(), REPOSITORY)
    first._process.terminate()
    first._process.end(WAIT_S)
    with pytest.raises(LabError, match="zygote"):
        first.ask({"do": "warm"})
    second = fork_server_client._family_of(PROGRAM, environment(), REPOSITORY)
    assert second is not first
    assert second.ask({"do": "warm"})["count"] == 0
    first.close()
    second.close()


@pytest.mark.parametrize("name", ["PYTHONPATH", "NUMBA_BOUNDSCHECK", "WINDTUNNEL_KERNEL_CACHE"])
def test_a_program_that_imports_otherwise_gets_an_interpreter_of_its_own(name):
    argv = [sys.executable, "-m", "windtunnel.driver", "--dir", "/x"]
    assert fork_server_client.knows(argv, {"AERON_DIR": "/x"})
    assert not fork_server_client.knows(argv, {name: "1"})
