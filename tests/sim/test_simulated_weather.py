"""Impairments of a link and rewritten ports on virtual time: applied, counted, and survived."""

import pytest

from tests.sim.simulated import SCENARIOS, run_all

NETEM = sorted(f"netem/{path.stem}" for path in (SCENARIOS / "netem").glob("*.yaml"))
CHANGED_PORT = "path/source-port-change"
# A machine's first run compiles every kernel of the simulator.
pytestmark = pytest.mark.timeout(400)


@pytest.fixture(scope="module")
def results(tmp_path_factory):
    return run_all([*NETEM, CHANGED_PORT], tmp_path_factory.mktemp("runs"))


@pytest.mark.parametrize("name", NETEM)
def test_weather_befalls_as_many_as_asked_and_streams_survive(name, results):
    assert results[name].outcome == "PASS", results[name].reason


def test_changed_source_port_is_survived(results):
    assert results[CHANGED_PORT].outcome == "PASS", results[CHANGED_PORT].reason
