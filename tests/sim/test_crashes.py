"""A crash of the simulator in the turn of a driver is the driver's failure, and
otherwise the harness's.

Nothing is compiled for these tests. The usual kernels get an array at an address that nothing is
mapped to, or call a driver there, as soon as virtual time has reached SPOILED_MS.
"""

import sys
import uuid

import pytest

from tests.sim.test_endless_turn import SCENARIO as SHORT
from windtunnel.harness.artifact.run.manifest import Manifest
from windtunnel.harness.artifact.run.verdict import read_verdict
from windtunnel.harness.artifact.run_dir import RunDir
from windtunnel.harness.orchestrate.cancel import Cancellation
from windtunnel.harness.orchestrate.run import simulation
from windtunnel.harness.orchestrate.run.one_run import execute_run
from windtunnel.harness.orchestrate.run.payload import file_payload
from windtunnel.harness.orchestrate.run.run_spec import RunSpec
from windtunnel.harness.orchestrate.subjects.subject import OURS_WITH_OURS
from windtunnel.harness.scenario.loader import load_scenario

SPOILED_MS = 5
SCENARIO = SHORT.replace("name: endless", "name: crashing").replace("bytes: 4KiB", "bytes: 1MiB")
# With an event, the kernel for many hosts runs.
EVENTS = """
events:
  - {id: rest, whom: {host: b, process: driver}, when: {published: 1000KiB}, act: {pause: 1ms}}
"""
PRELUDE = f"""
import ctypes, sys
import numpy as np
from windtunnel.driver.client.aeron import Aeron
from windtunnel.driver.media_driver.conductor.conductor import Conductor
from windtunnel.harness.simulator.applications.subscriber import Subscriber
from windtunnel.harness.simulator.world.many_hosts import NATIVE, WAKES
from windtunnel.harness.simulator.world.turns import ManyHosts, TwoHosts
from windtunnel.harness.simulator.world.virtual_time import NS_PER_MS, START_NS
from windtunnel.harness.simulator.world.world import SimulatedWorld

UNMAPPED = 4096

def crash(*arguments):
    ctypes.string_at(UNMAPPED)

def spoiled(state, name):
    array = getattr(state, name)
    memory = (ctypes.c_char * array.nbytes).from_address(UNMAPPED)
    made = np.frombuffer(memory, dtype=array.dtype).reshape(array.shape).view(type(array))
    return state._replace(**{{name: made}})

def spoil_agent(world, agent):
    host = world.hosts[1]
    host.agents = host.agents._replace(**{{agent: spoiled(getattr(host.agents, agent), "agent")}})
    if isinstance(world._turns, TwoHosts):
        world._turns._world = world._turns._world._replace(right=host.agents)

def spoil_middlebox(world):
    between = world.between._replace(wires=spoiled(world.between.wires, "ends"))
    if isinstance(world._turns, TwoHosts):
        world._turns._world = world._turns._world._replace(between=between)
    else:
        world._turns._between = between

def spoil_duty_cycle(world):
    world._turns._sleepers[1, NATIVE] = UNMAPPED
    world._turns._sleepers[1, WAKES] = 0

advance = SimulatedWorld.advance

def advance_and_spoil(world, until_ns):
    if world.now_ns >= START_NS + {SPOILED_MS} * NS_PER_MS:
        SimulatedWorld.advance = advance
        plant(world)
    return advance(world, min(until_ns, START_NS + {SPOILED_MS} * NS_PER_MS))

SimulatedWorld.advance = advance_and_spoil

"""
MAIN = """
from windtunnel.harness.simulator.__main__ import main
sys.exit(main(sys.argv[1:]))
"""
PLANTED = {
    "conductor": 'def plant(world): spoil_agent(world, "conductor")',
    "sender": 'def plant(world): spoil_agent(world, "sender")',
    "receiver": 'def plant(world): spoil_agent(world, "receiver")',
    "duty cycle": "def plant(world): spoil_duty_cycle(world)",
    "conductor in Python": "def plant(world): Conductor.do_work = crash",
    "middlebox": "def plant(world): spoil_middlebox(world)",
    "client": "def plant(world): Aeron.invoke = crash",
    "application": "def plant(world): Subscriber.step = crash",
}


@pytest.fixture
def run(monkeypatch, tmp_path):
    """Return a function that runs the scenario in a simulator with a planted crash, and judges."""

    def judged(planted: str, events: str = ""):
        command = simulation.simulator_command
        monkeypatch.setattr(
            simulation,
            "simulator_command",
            lambda *argv, **options: [
                *(sys.executable, "-c", PRELUDE + PLANTED[planted] + MAIN),
                *command(*argv, **options)[3:],
            ],
        )
        file, source = tmp_path / "crashing.yaml", tmp_path / "payload"
        file.write_text(SCENARIO + events)
        source.write_bytes(bytes(range(251)) * 1000)
        spec = RunSpec(
            run_id=uuid.uuid4().hex,
            scenario=load_scenario(file),
            scenario_file=file,
            seed=3,
            payload=file_payload(tmp_path / "store", source),
            folder=RunDir(tmp_path / "run"),
            fidelity="sim",
            command=(),
            tested=OURS_WITH_OURS,
            sabotage="",
            runs=tmp_path,
        )
        found = []
        with Cancellation() as cancellation:
            execute_run(spec, lambda **_: None, cancellation, found.append)
        return found[0], Manifest.read(spec.folder.manifest), read_verdict(spec.folder.verdict)

    return judged


def assert_driver_failed(judged, host: str, part: str):
    result, manifest, verdict = judged
    assert result.outcome == "FAIL", result.reason
    (driver,) = [each for each in manifest.processes if each.role == "driver"]
    assert (driver.name, driver.part, driver.exit_code) == (f"{host}/driver", part, -11)
    assert SPOILED_MS * 1_000_000 <= driver.virtual_ns < 5 * SPOILED_MS * 1_000_000
    assert f"{host}/driver was terminated by signal 11 (SIGSEGV) in its {part} at " in result.reason
    assert verdict["at_fault"] == "driver"


KERNELS = {"two hosts": "", "many hosts": EVENTS}


def cases(names, quick):
    """Return each name with each kernel. All but the quick ones run in full mode only."""
    pairs = [(name, kernel) for name in names for kernel in KERNELS]
    full = pytest.mark.full
    return [pytest.param(*each, marks=[] if each in quick else full) for each in pairs]


@pytest.mark.parametrize(
    ("agent", "kernel"),
    cases(
        ("conductor", "sender", "receiver"),
        quick=[("receiver", "two hosts"), ("sender", "many hosts")],
    ),
)
def test_a_crash_of_an_agent_is_its_drivers_failure(run, agent, kernel):
    assert_driver_failed(run(agent, KERNELS[kernel]), "b", agent)


def test_a_crash_in_the_duty_cycle_of_a_real_driver_is_its_failure(run):
    assert_driver_failed(run("duty cycle", EVENTS), "b", "duty cycle")


def test_a_crash_in_the_conductors_python_code_is_its_drivers_failure(run):
    assert_driver_failed(run("conductor in Python"), "a", "conductor")


ELSEWHERE = {
    "middlebox": "no host's code was running",
    "client": "a client on host a was running",
    "application": "no host's code was running",
}


@pytest.mark.parametrize(("where", "kernel"), cases(ELSEWHERE, quick=[("middlebox", "two hosts")]))
def test_a_crash_elsewhere_is_the_harness_failure(run, where, kernel):
    result, manifest, verdict = run(where, KERNELS[kernel])
    assert result.outcome == "HARNESS", result.reason
    assert "mid/simulator was ended by signal 11" in result.reason
    assert ELSEWHERE[where] in result.reason
    assert all(each.role != "driver" for each in manifest.processes)
    assert verdict["at_fault"] == "windtunnel"
