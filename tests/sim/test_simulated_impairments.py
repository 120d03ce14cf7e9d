"""Scenarios with link impairments and rewritten ports on virtual time pass."""

import pytest

from tests.sim.simulated import SCENARIOS, run

NAMES = ["netem/corrupt", "netem/loss-four-state"]
ALL = {f"netem/{path.stem}" for path in (SCENARIOS / "netem").glob("*.yaml")}
MORE_NAMES = ["path/source-port-change", *sorted(ALL - set(NAMES))]
# A machine's first run compiles every kernel of the simulator.
pytestmark = pytest.mark.timeout(400)


@pytest.mark.parametrize(
    "name", [*NAMES, *(pytest.param(name, marks=pytest.mark.full) for name in MORE_NAMES)]
)
def test_scenario_passes(name, tmp_path):
    result = run(SCENARIOS / f"{name}.yaml", tmp_path)
    assert result.outcome == "PASS", result.reason
