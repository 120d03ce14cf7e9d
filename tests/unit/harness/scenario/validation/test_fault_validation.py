"""Readdressed feedback is refused if it is lost or adds a destination, and all else is accepted."""

import pytest

from tests.unit.harness.scenario.test_scenario_loader import GOOD, faults_of
from windtunnel.harness.scenario.loader import parse_scenario

DYNAMIC = GOOD.replace("?endpoint=${b}:24325|term", "?control-mode=dynamic|control=${a}:1|term")
GROUP = GOOD.replace("${b}:24325", "224.20.30.39:24325|interface=${self}")


def readdressed(link: str, types: str, text: str = GOOD) -> str:
    """Return a scenario whose second rule changes the source port of these frames."""
    rule = "where: {link: both}, what: {type: [SM, DATA]}, act: {hold: {share: 1%, for: 5ms}}"
    assert rule in text
    changed_rule = f"where: {{link: {link}}}, what: {{type: {types}}}"
    return text.replace(rule, f"{changed_rule}, act: {{readdress: {{source_port: 40001}}}}")


@pytest.mark.parametrize(
    ("link", "types", "named"),
    [
        ("b->a", "SM", "SM"),
        ("both", "[SM, NAK]", "SM, NAK"),
        ("both", "ANY", "SM, NAK, RTTM, ERR, RSP_SETUP"),
    ],
)
def test_refuses_feedback_to_a_connected_socket(link, types, named):
    (found,) = faults_of(readdressed(link, types))
    expected = f"faults[1].act.readdress: {named} of one on b->a would be lost: Aeron connects"
    assert expected in found


def test_refuses_feedback_that_adds_a_destination():
    (found,) = faults_of(readdressed("b->a", "SM", DYNAMIC))
    assert "SM of one on b->a would add a destination, to which everything is sent again" in found


@pytest.mark.parametrize(
    ("link", "types", "text"),
    [
        ("a->b", "ANY", GOOD),
        ("both", "DATA", GOOD),
        ("b->a", "SM", GROUP),
        ("a->b", "ANY", DYNAMIC),
    ],
)
def test_accepts_what_arrives(link, types, text):
    assert parse_scenario(readdressed(link, types, text), "made.yaml").faults[1].act.readdress
