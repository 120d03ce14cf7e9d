"""The scenario files on virtual time pass, and each sabotage is detected."""

import pytest

from tests.sim.simulated import SCENARIOS, run, shortened, with_payload
from windtunnel.harness.artifact.host.host_event import read_applied_events
from windtunnel.harness.artifact.run.manifest import Manifest
from windtunnel.harness.orchestrate.suite.runner import run_suite

WITH_TURNS_OF_THEIR_OWN = [
    "many/multicast-one-lossy",
    "host/kill-publisher",
    "host/pause-receiver",
]
MORE_OF_THEM = [
    "many/mdc-min-one-lossy",
    "many/mdc-tagged-cut-off",
    "many/partition-and-heal",
    "many/two-paths-one-worse",
    "host/pause-past-liveness",
    "host/pause-sender",
]
"""Of several hosts, or of hosts that do not go all the time."""
RELIABLE, UNRELIABLE = "loss/reliable-2pct", "loss/unreliable-2pct"
LENGTH = "8MiB"
# A machine's first run compiles every kernel of the simulator.
pytestmark = pytest.mark.timeout(400)


@pytest.mark.full(keep=2)
@pytest.mark.parametrize("name", [RELIABLE, UNRELIABLE, "reorder/reliable-swap-and-hold"])
def test_main_scenario_passes(name, tmp_path):
    result = run(shortened(name, tmp_path, LENGTH), tmp_path)
    assert result.outcome == "PASS", result.reason


@pytest.mark.full(keep=1)
@pytest.mark.parametrize("name", WITH_TURNS_OF_THEIR_OWN)
def test_groups_pauses_and_killed_drivers_pass(name, tmp_path):
    result = run(SCENARIOS / f"{name}.yaml", tmp_path)
    assert result.outcome == "PASS", result.reason


@pytest.mark.full
@pytest.mark.parametrize("name", MORE_OF_THEM)
def test_more_groups_and_pauses_pass(name, tmp_path):
    # All seeds of the scenario.
    for result in run_suite(
        [SCENARIOS / f"{name}.yaml"], fidelity="sim", out=with_payload(tmp_path)
    ).runs:
        assert result.outcome == "PASS", (result.seed, result.reason)


@pytest.mark.full
def test_a_killed_driver_is_recorded(tmp_path):
    result = run(SCENARIOS / "host/kill-driver.yaml", tmp_path)
    assert result.outcome == "PASS", result.reason
    (events,) = tmp_path.glob("runs/*/*/host-events.json")
    (found,) = read_applied_events(events)
    assert (found.id, found.host, found.processes) == ("crash", "b", ["driver"])
    # On virtual time events are exact.
    assert found.ended_ns - found.began_ns == pytest.approx(6 * 10**9, abs=100_000)
    exits = {each.name: each for each in Manifest.read(events.parent / "run.json").processes}
    assert exits["b/driver"].exit_code == -9
    assert exits["b/driver"].asked
    assert "b/driver#2" in exits
    assert (events.parent / "hosts/b/before-1/counters.bin").exists()


@pytest.mark.full(keep=2)
@pytest.mark.parametrize(
    ("sabotage", "name", "check"),
    [
        ("skip-message", RELIABLE, "delivered_once"),
        ("flip-byte", RELIABLE, "delivered_once"),
        ("lying-counter", RELIABLE, "naks_and_retransmits_agree"),
        ("nak-when-unreliable", UNRELIABLE, "no_naks"),
    ],
)
def test_a_sabotaged_run_fails_in_the_intended_check(sabotage, name, check, tmp_path):
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


@pytest.mark.full
def test_budget_counts_simulated_time(tmp_path):
    scenario = shortened(RELIABLE, tmp_path, "32MiB")
    scenario.write_text(scenario.read_text().replace("wall: 120s", "wall: 10ms"))
    result = run(scenario, tmp_path)
    assert result.outcome == "FAIL"
    assert "simulated time" in result.reason
