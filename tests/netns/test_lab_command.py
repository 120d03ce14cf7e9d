"""`windtunnel lab` keeps a lab up between commands."""

import json
import os
import shlex
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from windtunnel.harness.artifact.run_dir import RunDir
from windtunnel.harness.orchestrate.labs import privileges

pytestmark = [
    pytest.mark.netns,
    pytest.mark.timeout(300),
    pytest.mark.skipif(bool(privileges.missing()), reason="network namespaces need root"),
]
Command = Callable[..., subprocess.CompletedProcess[str]]
SERVICE = (
    "import socket, sys; link = socket.socket(2, 2); link.bind((sys.argv[1], 5000)); "
    "print('ready', flush=True); print('got', link.recv(99), flush=True)"
)
SEND = "import socket, sys; socket.socket(2, 2).sendto(b'hello', (sys.argv[1], 5000))"


@pytest.fixture
def command(tmp_path: Path) -> Iterator[Command]:
    (tmp_path / "sockets").mkdir()

    def run(
        *arguments: str, code: int = 0, group: Sequence[str] = ("lab",)
    ) -> subprocess.CompletedProcess[str]:
        done = subprocess.run(
            [sys.executable, "-m", "windtunnel.harness", *group, *arguments],
            cwd=tmp_path,
            env={**os.environ, "XDG_RUNTIME_DIR": str(tmp_path / "sockets")},
            capture_output=True,
            text=True,
            timeout=200,
            check=False,
        )
        assert done.returncode == code, done.stdout + done.stderr
        return done

    yield run
    subprocess.run(
        [sys.executable, "-m", "windtunnel.harness", "lab", "down"],
        env={**os.environ, "XDG_RUNTIME_DIR": str(tmp_path / "sockets")},
        capture_output=True,
        timeout=100,
        check=False,
    )


@pytest.mark.parametrize("is_replayed", [False, pytest.param(True, marks=pytest.mark.full)])
def test_a_lab_stays_up_until_it_is_taken_down(
    command: Command, tmp_path: Path, is_replayed: bool
) -> None:
    assert "no lab is up" in command("status", code=1).stderr
    up = json.loads(command("up", "--delay", "5ms", "--seed", "4", "--json").stdout)
    assert set(up["addresses"]) == {"a", "b"}
    assert "lab 'lab' is up already" in command("up", code=3).stderr
    serve = ("--id", "service", "--ready", "ready", "--", sys.executable, "-c", SERVICE, "${b}")
    started = command("start", "b", *serve)
    log = Path(started.stdout.splitlines()[-1].removeprefix("log: "))
    command("partition", "a-b")
    command("start", "a", "--id", "lost", "--", sys.executable, "-c", SEND, "${b}")
    command("heal", "a-b")
    command("impair", "a-b", "--loss", "0.001%", "--to", "a")
    state = json.loads(command("status", "--json").stdout)
    assert [each["impairments"] for each in state["links"]] == [
        {"delay": "5ms"},
        {"delay": "5ms", "loss": "0.001%"},
    ]
    assert "expected a host of the network, found 'c'" in command("start", "c", "x", code=3).stderr
    command("start", "a", "--id", "sent", "--", sys.executable, "-c", SEND, "${b}")
    command("pause", "b")
    command("resume", "b")
    command("start", "a", "--id", "sleeper", "--", "sleep", "60")
    assert command("stop", "sleeper").stdout == "exit code -15\n"
    down = json.loads(command("down", "--json").stdout)
    assert down["outcome"] == "PASS", down["reason"]
    assert Path(down["report"]).is_file()
    assert log.read_text() == "ready\ngot b'hello'\n"
    folder = RunDir(Path(down["run_dir"]))
    assert folder.path.is_relative_to(tmp_path / "runs")
    assert [number for number, _, _ in changes_of(folder)] == [1, 1, 2, 2, 3]
    assert "no lab is up" in command("down", code=1).stderr
    if is_replayed:
        check_replay(command, folder)


def changes_of(folder: RunDir) -> list[tuple[int, dict[str, Any], int]]:
    """The changes of a lab's links: number of the request, impairments, time."""
    found = json.loads(folder.link_changes.read_text())["changes"]
    return [(each["number"], each["impairments"], each["at_ns"]) for each in found]


def check_replay(command: Command, folder: RunDir) -> None:
    """Replay a lab: the programs are requested, and the same events happen at the same times."""
    refusal = command(str(folder.path), code=64, group=("replay",)).stderr
    hint = shlex.split(refusal.partition("if you trust it, add ")[2])
    assert [each.partition("=")[0] for each in hint[1::2]] == ["service", "lost", "sent", "sleeper"]
    done = command(str(folder.path), "--json", *hint, group=("replay",))
    found = json.loads(done.stdout)
    assert (found["outcome"], found["repeated"], found["requests"]) == ("PASS", 10, 10)
    replayed = RunDir(Path(found["run_dir"]))
    first, second = changes_of(folder), changes_of(replayed)
    assert [each[:2] for each in first] == [each[:2] for each in second]
    # The durations of both partitions differ only by the time that a program needs to start.
    lasted_s = [(made[2][2] - made[0][2]) / 1e9 for made in (first, second)]
    assert lasted_s[0] - 0.5 < lasted_s[1] < lasted_s[0] + 2, lasted_s
    events = [json.loads(each.host_events.read_text())["events"] for each in (folder, replayed)]
    assert [[each["action"] for each in made] for made in events] == [["pause"], ["pause"]]
    log = next(replayed.path.glob("hosts/b/application-service.log"))
    assert log.read_text() == "ready\ngot b'hello'\n"
    assert replayed.repro.read_text().startswith(f"windtunnel replay {folder.path} --program ")


def test_an_invalid_lab_is_explained(command: Command) -> None:
    wrong = command("up", "--loss", "lots", code=3)
    assert "windtunnel: loss: expected a share" in wrong.stderr
    assert "no lab is up" in command("status", code=1).stderr


@pytest.mark.full
def test_labs_have_names(command: Command) -> None:
    command("up", "--name", "one", "--hosts", "x,y,z", "--link", "x-y", "--link", "y-z")
    assert "no lab is up" in command("status", code=1).stderr
    assert "link z->y: no impairments" in command("status", "--name", "one").stdout
    command("start", "--name", "one", "x", "true")
    assert command("down", "--name", "one").stdout.startswith("PASS")
