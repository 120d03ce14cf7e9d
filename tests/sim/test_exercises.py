"""Scenarios that only exercise code pass: rare features, and parameters at their limits."""

import pytest

from tests.sim.real_runs import real_runs
from tests.sim.simulated import SCENARIOS, run

# A machine's first run compiles every kernel of the simulator.
pytestmark = pytest.mark.timeout(400)
FOLDER = SCENARIOS / "coverage"
NAMES = ["freed-streams", "local-streams", "parameters", "remote-streams", "scripted-peers"]


@pytest.mark.full(keep=2)
@pytest.mark.parametrize("name", NAMES)
def test_coverage_scenario_passes(name, tmp_path):
    result = run(FOLDER / f"{name}.yaml", tmp_path)
    assert result.outcome == "PASS", result.reason


@pytest.mark.full
@pytest.mark.parametrize("name", NAMES)
def test_coverage_scenario_passes_with_the_real_driver(name, tmp_path):
    with real_runs(tmp_path) as run_with_real:
        result, _ = run_with_real(FOLDER / f"{name}.yaml")
    assert result.outcome == "PASS", result.reason
