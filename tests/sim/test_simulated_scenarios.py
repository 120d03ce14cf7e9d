"""The scenario files on virtual time: sound streams pass, each sabotage is found."""

import pytest

from tests.sim.simulated import run, shortened

RELIABLE, UNRELIABLE = "loss/reliable-2pct", "loss/unreliable-2pct"
LENGTH = "8MiB"
# A machine's first run compiles every kernel of the simulator.
pytestmark = pytest.mark.timeout(400)


@pytest.mark.parametrize("name", [RELIABLE, UNRELIABLE, "reorder/reliable-swap-and-hold"])
def test_main_scenario_passes(name, tmp_path):
    result = run(shortened(name, tmp_path, LENGTH), tmp_path)
    assert result.outcome == "PASS", result.reason


@pytest.mark.parametrize(
    ("sabotage", "name", "check"),
    [
        ("skip-message", RELIABLE, "delivered_once"),
        ("flip-byte", RELIABLE, "delivered_once"),
        ("lying-counter", RELIABLE, "naks_and_retransmits_agree"),
        ("nak-when-unreliable", UNRELIABLE, "no_naks"),
    ],
)
def test_sabotage_fails(sabotage, name, check, tmp_path):
    result = run(shortened(name, tmp_path, "2MiB"), tmp_path, sabotage=sabotage)
    assert result.outcome == "FAIL"
    assert result.reason.startswith(check)


def test_real_clock_stamps_are_unsupported(tmp_path):
    scenario = shortened(RELIABLE, tmp_path, "2MiB")
    scenario.write_text(
        scenario.read_text().replace("|nak-delay=10us", "|media-rcv-ts-offset=reserved")
    )
    result = run(scenario, tmp_path)
    assert result.outcome == "UNSUPPORTED"
    assert "media-rcv-ts-offset" in result.reason


def test_scenario_that_is_not_made_for_sim_is_unsupported(tmp_path):
    scenario = shortened(RELIABLE, tmp_path, "2MiB")
    scenario.write_text(scenario.read_text().replace(", sim]", "]"))
    assert run(scenario, tmp_path).outcome == "UNSUPPORTED"


def test_budget_counts_simulated_time(tmp_path):
    scenario = shortened(RELIABLE, tmp_path, "32MiB")
    scenario.write_text(scenario.read_text().replace("wall: 120s", "wall: 10ms"))
    result = run(scenario, tmp_path)
    assert result.outcome == "FAIL"
    assert "simulated time" in result.reason
