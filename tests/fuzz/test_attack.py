"""A short attack on a driver process, and tests that its checks detect violations."""

import json
import os
import signal

import pytest

from tests.peer.processes import process
from tests.peer.streams import until
from windtunnel.driver.kernels.jit import JIT_DISABLED
from windtunnel.harness.fuzz import __main__ as program
from windtunnel.harness.fuzz.driver_attack import DriverAttack

pytestmark = pytest.mark.skipif(JIT_DISABLED, reason="kernels without the JIT are too slow for it")


def run(tmp_path, *arguments):
    memory, out = tmp_path / "memory", tmp_path / "out"
    words = ["--memory", memory, "--out", out, "--json", *arguments]
    return program.main([arguments[0], *map(str, words[:5]), *map(str, arguments[1:])])


def test_a_short_attack_finds_no_violation(tmp_path, capsys):
    assert run(tmp_path, "attack", "--for-s", 0, "--datagrams", 3_000, "--seed", 20266) == 0
    output = json.loads(capsys.readouterr().out.splitlines()[-1])
    assert output["datagrams"] >= 3_000
    assert output["commands"] > 50
    assert output["writes"] > 0


@pytest.mark.full
def test_a_driver_that_exits_is_found_and_the_finding_is_replayed(tmp_path, capsys, monkeypatch):
    turn = DriverAttack._turn

    def kill_driver(attack):
        if attack.counts.datagrams > 1_000:
            os.kill(attack.host.pid, signal.SIGKILL)
            attack._checked_s = 0
        turn(attack)

    with monkeypatch.context() as patch:
        patch.setattr(DriverAttack, "_turn", kill_driver)
        assert run(tmp_path, "attack", "--for-s", 0, "--datagrams", 3_000) == 1
    output = json.loads(capsys.readouterr().out.splitlines()[-1])
    assert "the driver exited: exit code -9" in output["violation"]
    assert run(tmp_path, "replay", "--finding", output["file"]) == 0
    assert json.loads(capsys.readouterr().out.splitlines()[-1]) == {"violation": None}


def test_a_file_that_is_not_a_finding_is_rejected(tmp_path, capsys):
    path = tmp_path / "finding.json"
    path.write_text("{}")
    assert run(tmp_path, "replay", "--finding", path) == 2
    assert "expected a finding" in capsys.readouterr().err


@pytest.mark.full
def test_the_driver_of_a_killed_attack_ends(tmp_path):
    log = tmp_path / "memory" / "ours" / "driver.log"
    words = ("attack", "--memory", tmp_path / "memory", "--out", tmp_path / "out")
    with process("windtunnel.harness.fuzz", *words) as program_process:
        until(lambda: log.exists() and "driver ready pid=" in log.read_text(), "the driver")
        pid = int(log.read_text().split("driver ready pid=")[1].split()[0])
        program_process.kill()
        program_process.wait()
    until(lambda: not os.path.exists(f"/proc/{pid}"), "the driver to end")
