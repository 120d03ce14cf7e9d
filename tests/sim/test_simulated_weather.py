"""The weather of a link and changed ports on virtual time: delivered, counted, and survived."""

import pytest

from tests.sim.simulated import SCENARIOS, run

NETEM = sorted(path.stem for path in (SCENARIOS / "netem").glob("*.yaml"))
# A machine's first run compiles every kernel of the simulator.
pytestmark = pytest.mark.timeout(400)


@pytest.mark.parametrize("name", NETEM)
def test_weather_befalls_as_many_as_asked_and_streams_survive(name, tmp_path):
    result = run(SCENARIOS / "netem" / f"{name}.yaml", tmp_path)
    assert result.outcome == "PASS", result.reason


def test_changed_source_port_is_survived(tmp_path):
    result = run(SCENARIOS / "path" / "source-port-change.yaml", tmp_path)
    assert result.outcome == "PASS", result.reason
