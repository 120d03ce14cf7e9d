"""An endless turn or an exception of a driver, client or archive ends the run or trial as its
failure. So does a driver that sends without end.
"""

import os
import re
import signal
import subprocess
import sys

import pytest

from tests.sim.simulated import ADDRESSES, REPOSITORY, payload_in
from windtunnel.harness.artifact.run.simulation import Simulation
from windtunnel.harness.artifact.run_dir import RunDir
from windtunnel.harness.scenario.loader import load_scenario
from windtunnel.harness.scenario.resolved.resolution import resolve
from windtunnel.harness.simulator.run_case import SUBJECT_FAILED
from windtunnel.harness.simulator.stuck_program import STUCK

SCENARIO = """
schema: windtunnel/1
name: endless
about: A short stream.
seeds: {root: 3}
fidelity: [sim]
network: {hosts: [a, b], link: {between: [a, b]}}
traffic:
  - id: stream
    stream: 1001
    from: a
    to: b
    publication: exclusive
    channel: "aeron:udp?endpoint=${b}:24325|term-length=64k|mtu=1408"
    receive: "aeron:udp?endpoint=${b}:24325"
    content: {bytes: 4KiB, message: {from: 100B, to: 100B}}
expect: [delivered_once]
budget: {wall: 60s}
"""
RECORDED = SCENARIO.replace("    to: b\n", "    to: b\n    recorded: b\n")
RECORDED += "archives: [{host: b, segment: 64KiB}]\n"
PRELUDE = """
import sys
from windtunnel.harness.simulator import datagram_limit, turn_watch
turn_watch.TurnWatch.__init__.__kwdefaults__.update(limit_s=0.5, poll_s=0.05)
from windtunnel.driver.archive.recording.recorder import Recorder
from windtunnel.driver.archive.server.archive import Archive
from windtunnel.driver.client.aeron import Aeron
from windtunnel.driver.media_driver.conductor.conductor import Conductor
from windtunnel.harness.simulator.applications.subscriber import Subscriber
from windtunnel.harness.simulator.swarm.trial import Trial
from windtunnel.harness.simulator.world import turn

def failing(*arguments, **more):
    return [][len(arguments)]

def endless(*arguments):
    while True:
        pass

def plant(planted, owner, name):
    file = getattr(owner, name).__code__.co_filename
    setattr(owner, name, type(plant)(planted.__code__.replace(co_filename=file), globals()))

"""
RUN = """
from windtunnel.harness.simulator.__main__ import main
sys.exit(main(sys.argv[1:]))
"""
TRIAL = """
from pathlib import Path
from windtunnel.harness.simulator.swarm.swarm import run_trial
run_trial(0, Path(sys.argv[1]), frames=20)
"""
# Kernels run as Python code, so that a loop can be planted into an agent.
PLANTED = {
    "conductor": "Conductor.do_work = endless",
    "sender": "turn.sender.do_work = endless",
    "receiver": "turn.receiver.do_work = endless",
    "client": "Aeron.invoke = endless",
    "harness": "Subscriber.step = endless",
    "trial": "Trial._begin = endless",
    "start": "plant(failing, Conductor, '__init__')",
    "failing conductor": "plant(failing, Conductor, 'do_work')",
    "failing archive": "plant(failing, Recorder, 'do_work')",
    "failing close": "plant(failing, Recorder, 'close')",
    "failing client": "plant(failing, Aeron, 'async_add_exclusive_publication')",
    "archive": "plant(endless, Archive, 'invoke')",
    "datagrams": """
vars(datagram_limit).update(DATAGRAMS=2, DATAGRAMS_PER_S=0, DATAGRAMS_PER_MESSAGE=0)
""",
}


def execute(command):
    return subprocess.run(
        command,
        cwd=REPOSITORY,
        env={**os.environ, "NUMBA_DISABLE_JIT": "1"},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )


def simulate(where, folder, scenario=SCENARIO):
    file, run_dir = folder / "endless.yaml", RunDir(folder / "run")
    file.write_text(scenario)
    run_dir.make()
    case = resolve(
        load_scenario(file),
        seed=3,
        fidelity="sim",
        addresses=ADDRESSES,
        payload=payload_in(run_dir),
    )
    case.write(run_dir.case)
    done = execute(
        [
            *(sys.executable, "-c", PRELUDE + PLANTED[where] + RUN, "run"),
            *("--case", str(run_dir.case), "--out", str(run_dir.path)),
            *("--memory", str(folder / "memory")),
        ]
    )
    return done, Simulation.read(run_dir.simulation)


@pytest.mark.parametrize(
    "agent",
    [pytest.param(each, marks=pytest.mark.full) for each in ("conductor", "receiver", "sender")],
)
def test_an_endless_agent_is_its_drivers_failure(agent, tmp_path):
    done, simulation = simulate(agent, tmp_path)
    assert done.returncode == SUBJECT_FAILED, done.stderr
    failed = {each.name: each for each in simulation.exits if each.exit_code}
    assert list(failed) == ["a/driver"]
    text = failed["a/driver"].last_log_line
    assert text.startswith(f"the {agent} of the driver on host a did not end its turn: ")
    assert text in done.stdout
    assert (tmp_path / "run/captures/a.pcap").stat().st_size


@pytest.mark.full
def test_an_endless_archive_is_its_own_failure(tmp_path):
    done, simulation = simulate("archive", tmp_path, RECORDED)
    assert done.returncode == SUBJECT_FAILED, done.stderr
    (failed,) = [each for each in simulation.exits if each.exit_code]
    assert failed.name == "b/archive"


@pytest.mark.full
def test_an_endless_client_is_its_applications_failure(tmp_path):
    done, simulation = simulate("client", tmp_path)
    assert done.returncode == SUBJECT_FAILED, done.stderr
    (failed,) = [each for each in simulation.exits if each.exit_code]
    assert failed.role == "subscriber"
    assert "a client on host b did not end its turn: " in failed.last_log_line


def test_a_driver_that_does_not_start_is_the_drivers_failure(tmp_path):
    done, simulation = simulate("start", tmp_path)
    assert done.returncode == SUBJECT_FAILED, done.stderr
    failed = {each.name: each.last_log_line for each in simulation.exits if each.exit_code}
    assert list(failed) == ["a/driver", "b/driver"]
    assert failed["a/driver"].startswith("raised IndexError at conductor.py:")


@pytest.mark.parametrize(
    ("where", "names", "file"),
    [
        ("failing archive", ["b/archive"], "recorder.py"),
        pytest.param("failing close", ["b/archive"], "recorder.py", marks=pytest.mark.full),
        pytest.param(
            "failing client",
            ["b/recorder-stream", "a/publisher-stream"],
            "registrar.py",
            marks=pytest.mark.full,
        ),
        # The archive runs the driver's duty cycle while it waits for a response.
        pytest.param(
            *("failing conductor", ["a/driver", "b/driver"], "conductor.py"),
            marks=pytest.mark.full,
        ),
    ],
)
def test_an_exception_is_the_failure_of_the_program_that_raised_it(where, names, file, tmp_path):
    done, simulation = simulate(where, tmp_path, RECORDED)
    assert done.returncode == SUBJECT_FAILED, done.stderr
    failed = {each.name: each.last_log_line for each in simulation.exits if each.exit_code}
    assert list(failed) == names
    assert failed[names[0]].startswith(f"raised IndexError at {file}:")
    assert "IndexError: list index out of range" in done.stdout


@pytest.mark.full
def test_more_datagrams_than_the_limit_are_the_drivers_failure(tmp_path):
    done, simulation = simulate("datagrams", tmp_path)
    assert done.returncode == SUBJECT_FAILED, done.stderr
    failed = {each.name: each.last_log_line for each in simulation.exits if each.exit_code}
    assert list(failed) == ["a/driver", "b/driver"]
    text = failed["a/driver"]
    assert text.startswith("the driver on host a sent ")
    sent, limit = (int(re.search(rf"{word} (\d+)", text)[1]) for word in ("sent", "at most"))
    assert sent > limit == 2
    assert (tmp_path / "run/captures/a.pcap").stat().st_size


@pytest.mark.full
def test_an_endless_application_is_the_harness_failure(tmp_path):
    done, simulation = simulate("harness", tmp_path)
    assert done.returncode == STUCK, done.stderr
    assert simulation is None
    assert "the simulator did not end its turn: " in done.stdout


def try_once(where, folder):
    return execute([sys.executable, "-c", PRELUDE + PLANTED[where] + TRIAL, str(folder)])


@pytest.mark.parametrize(
    "part",
    ["sender", *(pytest.param(each, marks=pytest.mark.full) for each in ("client", "conductor"))],
)
def test_an_endless_part_aborts_its_trial(part, tmp_path):
    done = try_once(part, tmp_path)
    assert done.returncode == -signal.SIGABRT, done.stderr
    assert f"{part} o" in done.stdout
    assert "did not end its turn: " in done.stdout


@pytest.mark.full
def test_an_endless_trial_is_the_simulators_failure(tmp_path):
    done = try_once("trial", tmp_path)
    assert done.returncode == STUCK, done.stderr
    assert "the simulator did not end its turn: " in done.stdout
