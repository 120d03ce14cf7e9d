"""Every scenario of the repository loads, has a header, and expects checks that exist."""

import re
from functools import cache
from pathlib import Path

import pytest

from windtunnel.driver.logbuffer.frame import HEADER_LENGTH
from windtunnel.driver.logbuffer.tail import framed_length
from windtunnel.harness.scenario.loader import load_scenario
from windtunnel.harness.scenario.resolved.case import Payload
from windtunnel.harness.scenario.resolved.resolution import resolve
from windtunnel.harness.scenario.schema.channel import WINDOW_BYTES, parse_channel
from windtunnel.harness.verdict.registry import CHECKS

FOLDER = Path(__file__).resolve().parents[2] / "scenarios"
FILES = sorted(FOLDER.rglob("*.yaml"))
MAIN = {"loss/reliable-2pct", "loss/unreliable-2pct", "reorder/reliable-swap-and-hold"}
PAYLOAD = Payload(path="payload.bin", sha256="0" * 64, length_bytes=1)


loaded = cache(load_scenario)
"""Several tests load each file."""


@cache
def case_of(file):
    scenario = loaded(file)
    addresses = {name: f"10.64.0.{3 + 16 * at}" for at, name in enumerate(scenario.network.hosts)}
    return resolve(scenario, seed=1, fidelity="netns", addresses=addresses, payload=PAYLOAD)


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)
def test_has_a_header_with_intent_criteria_and_limits(file):
    header = file.read_text().partition("schema:")[0]
    for part in ("# Intent", "# Criteria", "# Not covered"):
        assert part in header


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)
def test_resolves(file):
    assert case_of(file).name == str(file.relative_to(FOLDER).with_suffix(""))


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)
def test_expects_only_checks_that_exist(file):
    asked = {check.name for check in case_of(file).expect}
    assert asked
    assert asked <= set(CHECKS)


def test_every_check_is_expected_by_some_scenario():
    assert {check.name for file in FILES for check in case_of(file).expect} == set(CHECKS)


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)
def test_readme_names_every_act_and_type_used(file):
    readme = (FOLDER / "README.md").read_text()
    case = case_of(file)
    words = {fault.action for fault in case.faults}
    words |= {name for fault in case.faults for name in fault.frame_types}
    assert [word for word in words if not re.search(rf"`{word}\b", readme)] == []


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)
def test_padding_does_not_move_a_sender_beyond_the_reach_of_a_stalled_reader(file):
    """A status message from more than half a term behind the sender is refused, as Aeron does."""
    case = case_of(file)
    stops = any(event.stops_processes for event in case.events)
    for traffic in case.traffic if stops else ():
        window = min(traffic.receiver_window_bytes or WINDOW_BYTES, traffic.term_length // 2)
        padding = framed_length(traffic.longest_bytes, traffic.mtu - HEADER_LENGTH)
        assert window + padding < traffic.term_length // 2, traffic.id


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)
def test_a_sender_that_waits_for_a_joined_reader_continues_within_the_budget(file):
    """It may wait for the receiver timeout. In simulations, no reader joins at that instant."""
    scenario = loaded(file)
    for traffic in scenario.traffic if set(scenario.fidelity) != {"sim"} else ():
        control = parse_channel(traffic.channel).flow_control
        if control.strategy != "max":
            assert control.timeout_ns <= scenario.budget.wall_ns // 2, traffic.id


def test_the_main_scenarios_exist():
    assert {loaded(file).name for file in FILES} >= MAIN


@pytest.mark.parametrize("name", sorted(MAIN))
def test_main_scenarios_cover_both_term_lengths_and_the_wrap(name):
    small, large = case_of(FOLDER / f"{name}.yaml").traffic
    assert (small.term_length, large.term_length) == (1 << 16, 1 << 20)
    assert (small.publication, large.publication) == ("exclusive", "concurrent")
    assert min(small.total_bytes, large.total_bytes) >= 64 << 20
    assert (small.shortest_bytes, small.longest_bytes) == (1, small.term_length // 8)
    assert (large.shortest_bytes, large.longest_bytes) == (1, large.term_length // 8)
    assert small.initial_term_id < 0
    assert large.initial_term_id + large.total_bytes // large.term_length > 2**31


def test_unreliable_windows_cannot_be_overrun():
    for traffic in case_of(FOLDER / "loss/unreliable-2pct.yaml").traffic:
        whole, rest = divmod(traffic.longest_bytes, traffic.mtu - 32)
        framed = whole * traffic.mtu + (rest + 32 + 31) // 32 * 32
        assert not traffic.reliable
        assert traffic.receiver_window_bytes + framed < traffic.term_length // 2
