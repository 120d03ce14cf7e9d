"""The end of the process that simulates drivers: the attributed fault, and the reason."""

import signal
import sys
import uuid
from collections import namedtuple
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path

import pytest

from tests.unit.harness.artifact.run.simulator_state import content
from windtunnel.harness.artifact.run.manifest import Manifest, ProcessExit
from windtunnel.harness.artifact.run.simulator_turn import FILE
from windtunnel.harness.artifact.run.verdict import read_verdict
from windtunnel.harness.artifact.run_dir import RunDir
from windtunnel.harness.orchestrate.cancel import Cancellation
from windtunnel.harness.orchestrate.processes.process import HelperProcess
from windtunnel.harness.orchestrate.run import (
    one_run,
    simulation,
    simulator_crash,
    simulator_session,
)
from windtunnel.harness.orchestrate.run.one_run import begin_isolated, execute_run
from windtunnel.harness.orchestrate.run.payload import file_payload
from windtunnel.harness.orchestrate.run.run_spec import RunSpec
from windtunnel.harness.orchestrate.run.simulator_crash import CRASHES, crashed_driver
from windtunnel.harness.orchestrate.run.simulator_session import SimulatorSession
from windtunnel.harness.orchestrate.subjects.peers import pair
from windtunnel.harness.scenario.loader import load_scenario

SCENARIO = Path(__file__).parents[5] / "scenarios/exam/loss.yaml"
SEED = 4711
ENDLESS = "the conductor of the driver on host a did not end its turn"


A, B = range(2)
"""Indexes of the hosts."""
NONE, CONDUCTOR, SENDER, RECEIVER, DUTY_CYCLE, CLIENT = range(6)
AT_NS = 12_300_000


def ending(number: int, state: bytes, memory: str) -> list[str]:
    """Return the command line of a process that stores a turn and ends by a signal."""
    text = f"""
import os
from pathlib import Path
if {state!r}:
    Path({memory!r}, {FILE!r}).write_bytes({state!r})
print('last', flush=True)
os.kill(os.getpid(), {number})
"""
    return [sys.executable, "-c", text]


def endless_driver_command(folder: RunDir) -> list[str]:
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


def make_spec(folder: Path, publisher: str = "ours", subscriber: str = "ours") -> RunSpec:
    """Return a run whose folder is `run` in a folder. Its id is unique, like its memory directory,
    since tests run in parallel.
    """
    source = folder / "payload"
    source.write_bytes(bytes(range(256)) * 64)
    return RunSpec(
        run_id=uuid.uuid4().hex,
        scenario=load_scenario(SCENARIO),
        scenario_file=SCENARIO,
        seed=SEED,
        payload=file_payload(folder / "store", source),
        folder=RunDir(folder / "run"),
        fidelity="sim",
        command=(),
        tested=pair(publisher, subscriber, "sim", folder),
        sabotage="",
        runs=folder,
    )


def in_session(monkeypatch, command):
    """Start the process of a session with another command line, a function of its memory folder."""
    monkeypatch.setattr(
        simulator_session,
        "HelperProcess",
        lambda argv, **options: HelperProcess(command(argv[argv.index("--memory") + 1]), **options),
    )


@pytest.fixture(params=["isolated", "session"])
def judged(request, monkeypatch, tmp_path):
    """Return a function that runs a case in a process that a signal ends, and judges the run."""

    def run(number: int, state: bytes = b"", **drivers: str):
        spec = make_spec(tmp_path, **drivers)

        def command(memory: str) -> list[str]:
            return ending(number, state, memory) if number else endless_driver_command(spec.folder)

        monkeypatch.setattr(
            simulation, "simulator_command", lambda *_, memory, **__: command(memory)
        )
        in_session(monkeypatch, command)
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


@pytest.mark.parametrize("number", sorted(CRASHES))
def test_a_crash_in_the_turn_of_a_driver_is_its_fault(judged, number):
    folder, result = judged(number, content(B, RECEIVER, AT_NS))
    assert result.outcome == "FAIL", result.reason
    assert "a/driver" not in result.reason
    crash = f"was terminated by signal {int(number)} ({number.name}) in its receiver at 12.3 ms of"
    assert f"b/driver {crash} virtual time" in result.reason
    manifest, verdict = Manifest.read(folder.manifest), read_verdict(folder.verdict)
    assert verdict["at_fault"] == "driver"
    assert not manifest.errors
    assert manifest.stopped == (
        f"b/driver was ended by {number.name} in its receiver at 12.3 ms of virtual time; "
        f"the seed is {SEED}"
    )
    (driver,) = [each for each in manifest.processes if each.role == "driver"]
    assert (driver.name, driver.exit_code, driver.asked) == ("b/driver", -number, False)
    assert (driver.virtual_ns, driver.part) == (AT_NS, "receiver")


def test_a_crash_in_the_duty_cycle_of_a_real_driver_is_its_fault(judged):
    pytest.importorskip("pyaeron")
    state = content(A, DUTY_CYCLE, AT_NS)
    _, result = judged(signal.SIGSEGV, state, publisher="pyaeron")
    assert result.outcome == "FAIL", result.reason
    assert "a/driver was terminated by signal 11 (SIGSEGV) in its duty cycle" in result.reason


ELSEWHERE = {
    "no host": (content(A, NONE, AT_NS), "no host's code was running at 12.3 ms"),
    "client": (content(B, CLIENT, AT_NS), "a client on host b was running at 12.3 ms"),
    "truncated": (content(B, RECEIVER, AT_NS)[:-1], "it is not known whose code"),
    "nonsensical": (content(2, RECEIVER, AT_NS), "it is not known whose code"),
}


@pytest.mark.parametrize("where", ELSEWHERE)
def test_a_crash_elsewhere_is_the_harness_fault(judged, where):
    state, text = ELSEWHERE[where]
    folder, result = judged(signal.SIGSEGV, state)
    assert result.outcome == "HARNESS", result.reason
    assert text in result.reason
    assert all(each.role != "driver" for each in Manifest.read(folder.manifest).processes)


def test_a_crash_outside_of_real_drivers_is_the_harness_fault(judged):
    pytest.importorskip("pyaeron")
    _, result = judged(signal.SIGSEGV, content(A, NONE, AT_NS), publisher="pyaeron")
    assert result.outcome == "HARNESS", result.reason


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM])
def test_a_signal_from_outside_is_the_harness_fault(judged, number):
    _, result = judged(number, content(B, RECEIVER, AT_NS))
    assert result.outcome == "HARNESS", result.reason


@pytest.mark.parametrize(("number", "is_blamed"), [(signal.SIGBUS, False), (signal.SIGSEGV, True)])
def test_exhausted_memory_explains_only_a_bus_error(monkeypatch, tmp_path, number, is_blamed):
    usage = namedtuple("usage", "free")(simulator_crash.MEMORY_RESERVE_BYTES - 1)
    monkeypatch.setattr(simulator_crash.shutil, "disk_usage", lambda path: usage)
    (tmp_path / FILE).write_bytes(content(B, RECEIVER, AT_NS))
    driver, text = crashed_driver(-number, tmp_path, ["a", "b"], "", "")
    assert bool(driver) == is_blamed
    assert ("is exhausted" in text) != is_blamed


def test_the_turn_of_an_earlier_run_is_not_read(monkeypatch, tmp_path):
    """All runs of a session have the same memory directory."""
    endings = [(signal.SIGKILL, content(B, RECEIVER, AT_NS)), (signal.SIGSEGV, b"")]
    in_session(monkeypatch, lambda memory: ending(*endings.pop(0), memory))
    spec, found = make_spec(tmp_path), []
    with Cancellation() as cancellation, SimulatorSession(spec) as session:
        for name in ("first", "second"):
            again = replace(spec, folder=RunDir(tmp_path / name))
            execute_run(again, lambda **_: None, cancellation, found.append, session.begin)
    assert [each.outcome for each in found] == ["HARNESS", "HARNESS"]
    assert "it is not known whose code was running" in found[1].reason


def test_an_endless_turn_is_the_fault_of_the_driver_that_the_simulator_names(judged):
    folder, result = judged(0)
    assert result.outcome == "FAIL", result.reason
    assert not Manifest.read(folder.manifest).errors
    assert "a/driver" in result.reason
    assert ENDLESS in result.reason


def test_a_run_that_cannot_be_judged_for_want_of_memory_does_not_end_the_suite(judged, monkeypatch):
    def judge(_):
        raise MemoryError

    monkeypatch.setattr(one_run, "judge", judge)
    folder, result = judged(signal.SIGKILL)
    assert result.outcome == "HARNESS"
    assert result.reason == (
        "the run could not be judged: not enough memory; "
        f"`windtunnel judge {folder.path}` judges it"
    )
