"""The end of the process that simulates drivers: whose fault it is, and what is reported."""

import signal
import sys
from contextlib import nullcontext
from pathlib import Path

import pytest

from windtunnel.harness.artifact.run.manifest import Manifest, ProcessExit
from windtunnel.harness.artifact.run_dir import RunDir
from windtunnel.harness.orchestrate.cancel import Cancellation
from windtunnel.harness.orchestrate.processes.process import HelperProcess
from windtunnel.harness.orchestrate.run import simulation, simulator_session
from windtunnel.harness.orchestrate.run.one_run import begin_isolated, execute_run
from windtunnel.harness.orchestrate.run.payload import file_payload
from windtunnel.harness.orchestrate.run.run_spec import RunSpec
from windtunnel.harness.orchestrate.run.simulator_session import SimulatorSession
from windtunnel.harness.orchestrate.subjects.peers import pair
from windtunnel.harness.scenario.loader import load_scenario

pytest.importorskip("pyaeron")
SCENARIO = Path(__file__).parents[5] / "scenarios/exam/loss.yaml"
SEED = 4711
ENDLESS = "the conductor of the driver on host a did not end its turn"


def ending(number: int) -> list[str]:
    """Return the command line of a process that ends itself with a signal."""
    return [
        sys.executable,
        "-c",
        f"import os; print('last', flush=True); os.kill(os.getpid(), {number})",
    ]


def blaming(folder: RunDir) -> list[str]:
    """Return the command line of a process that ends itself because a driver does not return."""
    found = ProcessExit("a/driver", "driver", 1, False, "simulator.log", ENDLESS)
    text = f"""
from pathlib import Path
from windtunnel.harness.artifact.run.manifest import ProcessExit
from windtunnel.harness.artifact.run.simulation import Simulation
made = Simulation("", 0, 0, 0, exits=[{found!r}])
made.write(Path({str(folder.simulation)!r}))
raise SystemExit(1)
"""
    return [sys.executable, "-c", text]


@pytest.fixture(params=["isolated", "session"])
def judged(request, monkeypatch, tmp_path):
    """Return a function that runs a case in a process that a signal ends, and judges the run."""

    def run(number: int, publisher: str, subscriber: str):
        command = ending(number) if number else blaming(RunDir(tmp_path / "run"))
        monkeypatch.setattr(simulation, "simulator_command", lambda *_, **__: command)
        monkeypatch.setattr(
            simulator_session,
            "HelperProcess",
            lambda argv, **options: HelperProcess(command, **options),
        )
        source = tmp_path / "payload"
        source.write_bytes(bytes(range(256)) * 64)
        spec = RunSpec(
            run_id="run",
            scenario=load_scenario(SCENARIO),
            scenario_file=SCENARIO,
            seed=SEED,
            payload=file_payload(tmp_path / "store", source),
            folder=RunDir(tmp_path / "run"),
            fidelity="sim",
            command=(),
            tested=pair(publisher, subscriber, "sim", tmp_path),
            sabotage="",
            runs=tmp_path,
        )
        is_session = request.param == "session"
        found = []
        with (
            Cancellation() as cancellation,
            SimulatorSession(spec) if is_session else nullcontext() as session,
        ):
            begin = session.begin if is_session else begin_isolated
            execute_run(spec, lambda **_: None, cancellation, found.append, begin)
        return spec.folder, found[0]

    return run


@pytest.mark.parametrize("number", [signal.SIGSEGV, signal.SIGABRT])
def test_a_crash_is_the_real_drivers_fault_and_is_reported_with_its_seed(judged, number):
    folder, result = judged(number, "ours", "pyaeron")
    assert result.outcome == "FAIL", result.reason
    assert "b/driver" in result.reason
    assert f"signal {number}" in result.reason
    assert "a/driver" not in result.reason
    assert f"seed {SEED} was ended by {number.name}" in folder.manifest.read_text()


def test_a_crash_of_several_real_drivers_names_all(judged):
    folder, result = judged(signal.SIGSEGV, "pyaeron", "pyaeron")
    assert result.outcome == "FAIL", result.reason
    assert "real drivers of a, b with seed" in folder.manifest.read_text()


@pytest.mark.parametrize(
    ("number", "publisher"), [(signal.SIGSEGV, "ours"), (signal.SIGKILL, "pyaeron")]
)
def test_another_end_of_the_process_is_the_harness_fault(judged, number, publisher):
    _, result = judged(number, publisher, publisher)
    assert result.outcome == "HARNESS", result.reason


def test_an_endless_turn_is_the_fault_of_the_driver_that_the_simulator_names(judged):
    folder, result = judged(0, "ours", "ours")
    assert result.outcome == "FAIL", result.reason
    assert not Manifest.read(folder.manifest).errors
    assert "a/driver" in result.reason
    assert ENDLESS in result.reason
