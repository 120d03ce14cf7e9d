"""The simulator of a run is forked from a fork server, and ends with its lab."""

import os
import signal
import sys

import pytest

from windtunnel.harness.orchestrate.cancel import Cancellation, Cancelled
from windtunnel.harness.orchestrate.labs.simulated import SimulatedLab
from windtunnel.harness.orchestrate.processes.fork_server_client import ForkedProcess, ForkServer
from windtunnel.harness.orchestrate.processes.process import LocalProcess
from windtunnel.harness.orchestrate.subjects.subject import simulator_command
from windtunnel.harness.topology import model as topology

WAIT_S = 60.0
INVALID_ARGUMENT = 2


@pytest.fixture
def lab(tmp_path):
    # Another lab with the same id may exist at the same time.
    made = SimulatedLab(topology.build(str(tmp_path), ("a", "b"), ("a", "b")), tmp_path / "records")
    made.up()
    yield made
    made.down()


def test_the_simulator_is_forked_and_behaves_like_a_process_of_its_own(lab, tmp_path):
    words = simulator_command(
        sys.executable, case="/missing/case.json", out="/missing", memory="/missing", sabotage=""
    )
    running = lab.spawn("mid", words, env={"AERON_DIR": "/x"}, log=tmp_path / "simulator.log")
    assert isinstance(running, ForkedProcess)
    assert running.wait(WAIT_S) == INVALID_ARGUMENT
    assert "--case /missing/case.json" in running.tail()


def test_a_simulator_whose_interpreter_needs_variables_is_started(lab, tmp_path):
    words = [sys.executable, "-m", "windtunnel.harness.simulator", "--help"]
    running = lab.spawn("mid", words, env={"NUMBA_X": "1"}, log=tmp_path / "simulator.log")
    assert isinstance(running, LocalProcess)
    assert running.wait(WAIT_S) == 0


def test_the_simulator_ends_with_its_lab(lab, tmp_path):
    words = [sys.executable, "-m", "windtunnel.harness.simulator", "swarm"]
    words += ["--seeds", "1000000", "--memory", str(tmp_path)]
    running = lab.spawn("mid", words, log=tmp_path / "simulator.log")
    assert running.wait(0.2) is None
    lab.down()
    assert running.wait(WAIT_S) == -9


@pytest.mark.parametrize("moment", ["before", "after"])
def test_a_signal_during_the_start_leaves_no_simulator(lab, tmp_path, monkeypatch, moment):
    """The fork server may have started the simulator when the signal arrives."""
    started = []

    def exchange(server, request, exchange=ForkServer.exchange):
        if moment == "before":
            os.kill(os.getpid(), signal.SIGINT)
        found = exchange(server, request)
        if request["operation"] == "spawn":
            started.append(found["pid"])
        if moment == "after":
            os.kill(os.getpid(), signal.SIGINT)
        return found

    words = [sys.executable, "-m", "windtunnel.harness.simulator", "swarm"]
    words += ["--seeds", "1000000", "--memory", str(tmp_path)]
    monkeypatch.setattr(ForkServer, "exchange", exchange)
    with Cancellation(), pytest.raises(Cancelled):
        lab.spawn("mid", words, log=tmp_path / "simulator.log")
    monkeypatch.undo()
    assert len(started) == 1
    lab.down()
    with pytest.raises(ProcessLookupError):
        os.kill(started[0], 0)
