"""Impairments of a link and rewritten ports on virtual time: applied, counted, and survived."""

import pytest

from tests.sim.simulated import SCENARIOS, run

NETEM = sorted(f"netem/{path.stem}" for path in (SCENARIOS / "netem").glob("*.yaml"))
CHANGED_PORT = "path/source-port-change"
# A machine's first run compiles every kernel of the simulator.
pytestmark = pytest.mark.timeout(400)


@pytest.mark.parametrize("name", [*NETEM, CHANGED_PORT])
def test_scenario_passes(name, tmp_path):
    result = run(SCENARIOS / f"{name}.yaml", tmp_path)
    assert result.outcome == "PASS", result.reason
