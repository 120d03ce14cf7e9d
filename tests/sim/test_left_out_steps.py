"""Idle steps are skipped. A run that takes every step has the same bytes."""

import pytest

from tests.sim.simulated import ADDRESSES, SCENARIOS, payload_in
from windtunnel.harness.artifact.run.simulation import Simulation
from windtunnel.harness.artifact.run_dir import RunDir
from windtunnel.harness.scenario.loader import load_scenario
from windtunnel.harness.scenario.resolved.resolution import resolve
from windtunnel.harness.simulator.applications.application_set import ApplicationSet
from windtunnel.harness.simulator.run_case import CaseRun
from windtunnel.harness.simulator.world.virtual_time import AT_ONCE

# A machine's first run compiles every kernel of the simulator.
pytestmark = pytest.mark.timeout(400)


def run_counting(name, folder, monkeypatch, *, takes_every_step):
    """Run a scenario. Returns its result, its run folder and its number of steps."""
    steps, step = [], ApplicationSet.step

    def counted(programs):
        next_ns = step(programs)
        steps.append(next_ns)
        return AT_ONCE if takes_every_step else next_ns

    monkeypatch.setattr(ApplicationSet, "step", counted)
    run_dir = RunDir(folder)
    run_dir.make()
    case = resolve(
        load_scenario(SCENARIOS / f"{name}.yaml"),
        seed=11,
        fidelity="sim",
        addresses=ADDRESSES,
        payload=payload_in(run_dir),
    )
    for host in case.hosts:
        run_dir.host(host.name).path.mkdir()
    assert CaseRun(case, run_dir, folder / "memory", "").run() == 0
    monkeypatch.setattr(ApplicationSet, "step", step)
    return Simulation.read(run_dir.simulation), run_dir, len(steps)


@pytest.mark.parametrize(
    "name",
    [
        pytest.param("host/resting-publisher", marks=pytest.mark.full),
        "host/pause-receiver",
        pytest.param("host/slow-rate", marks=pytest.mark.full),
        pytest.param("host/kill-driver", marks=pytest.mark.full),
        pytest.param("many/multicast-one-lossy", marks=pytest.mark.full),
        pytest.param("exam/loss", marks=pytest.mark.full),
    ],
)
def test_a_run_with_every_step_is_the_same(name, tmp_path, monkeypatch):
    run, folder, count = run_counting(name, tmp_path / "a", monkeypatch, takes_every_step=False)
    every, other, count_of_every = run_counting(
        name, tmp_path / "b", monkeypatch, takes_every_step=True
    )
    assert run == every
    assert count < count_of_every / 2, (count, count_of_every)
    files = [
        each.relative_to(folder.path)
        for pattern in ("captures/*.pcap", "hosts/*/counters.bin", "hosts/*/*.times.bin")
        for each in folder.path.glob(pattern)
    ]
    assert len(files) >= 2 * len(list(folder.path.glob("hosts/*")))
    for each in files:
        assert (folder.path / each).read_bytes() == (other.path / each).read_bytes(), each
