"""Paces: their values in the case, their durations, and invalid ones."""

import pytest

from tests.unit.harness.scenario.test_scenario_loader import GOOD
from windtunnel.harness.scenario.explain.explain import explain
from windtunnel.harness.scenario.loader import ScenarioError, parse_scenario
from windtunnel.harness.scenario.resolved.case import Payload
from windtunnel.harness.scenario.resolved.resolution import resolve
from windtunnel.harness.scenario.schema.pace import UNLIMITED, PaceCase
from windtunnel.harness.scenario.schema.units import format_byte_rate, parse_byte_rate

CONTENT = "content: {bytes: 1MiB, message: {from: 1B, to: max}}"


def scenario_of(content="", consume=""):
    text = GOOD.replace(CONTENT, f"content: {{bytes: 1MiB{content}}}{consume}")
    return parse_scenario(text, "made.yaml")


def case_of(**written):
    return resolve(
        scenario_of(**written),
        seed=1,
        fidelity="netns",
        addresses={"a": "10.64.0.3", "b": "10.64.0.19"},
        payload=Payload(path="payload.bin", sha256="0" * 64, length_bytes=1),
    )


def fault_of(**written):
    with pytest.raises(ScenarioError) as raised:
        scenario_of(**written)
    (fault,) = raised.value.errors
    return fault


def test_the_pace_is_unlimited_by_default():
    (traffic,) = case_of().traffic
    assert (traffic.pace, traffic.consume, traffic.close_after_ns) == (UNLIMITED, UNLIMITED, 0)
    assert UNLIMITED.is_unlimited
    assert UNLIMITED.least_ns(1 << 40) == 0


def test_paces_are_in_the_case():
    (traffic,) = case_of(
        content=", pace: {rate: 20MiB/s, rests: {every: 64KiB, for: 150ms}}, close_after: 500ms",
        consume="\n    consume: {rests: {every: 1KiB, for: 1ms}}",
    ).traffic
    assert traffic.pace == PaceCase(
        bytes_per_s=20 << 20, rest_every_bytes=64 << 10, rest_ns=150_000_000
    )
    assert traffic.consume == PaceCase(rest_every_bytes=1 << 10, rest_ns=1_000_000)
    assert traffic.close_after_ns == 500_000_000


def test_explain_names_pace_and_pauses():
    text = explain(
        case_of(
            content=", pace: {rate: 20MiB/s}, close_after: 500ms",
            consume="\n    consume: {rate: 1MiB/s, rests: {every: 512KiB, for: 150ms}}",
        )
    )
    assert "publishes at most 20MiB/s\n" in text
    assert "closes 500ms after its last message" in text
    assert "consumes at most 1MiB/s, a pause of 150ms every 512KiB" in text
    assert "publishes" not in explain(case_of())


@pytest.mark.parametrize(
    ("pace", "total", "least_ms"),
    [
        (PaceCase(bytes_per_s=1000), 500, 500),
        (PaceCase(rest_every_bytes=100, rest_ns=10_000_000), 100, 0),
        (PaceCase(rest_every_bytes=100, rest_ns=10_000_000), 101, 10),
        (PaceCase(bytes_per_s=1000, rest_every_bytes=100, rest_ns=10_000_000), 500, 540),
    ],
)
def test_there_is_no_pause_after_the_last_byte(pace, total, least_ms):
    assert pace.least_ns(total) == least_ms * 1_000_000


@pytest.mark.parametrize(
    ("consume", "expected"),
    [
        ("{}", "expected at least one of rate, rests"),
        ("{rate: 20Mbit/s}", "expected a rate with a unit (B/s, KiB/s, MiB/s, GiB/s)"),
        ("{rate: 0B/s}", "at least 1"),
        ("{rests: {every: 1MiB, for: 1s}}", "expected less than the content"),
        ("{rests: {every: 1KiB, for: 0ms}}", "more than 0"),
        ("{rests: {every: 1KiB}}", "this key is missing"),
        ("{rests: {every: 1KiB, for: 20ms}}", "budget.wall (20s), found at least 20460ms"),
        ("{rate: 50KiB/s}", "budget.wall (20s), found at least 20480ms"),
    ],
)
def test_a_pace_that_cannot_be_kept_is_refused(consume, expected):
    fault = fault_of(consume=f"\n    consume: {consume}")
    assert "traffic[0].consume" in fault
    assert expected in fault


def test_a_publisher_that_stays_open_too_long_is_refused():
    assert "found at least 20s" in fault_of(content=", close_after: 20s")
    scenario_of(content=", close_after: 19s")


def test_rates_of_bytes_have_units():
    assert parse_byte_rate("20MiB/s") == 20 << 20
    assert format_byte_rate(20 << 20) == "20MiB/s"
    with pytest.raises(ValueError, match="B/s"):
        parse_byte_rate("20")
