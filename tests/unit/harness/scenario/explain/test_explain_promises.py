"""`explain` names the receivers for which a sender does not wait."""

import pytest

from tests.unit.harness.scenario.test_scenario_loader import GOOD
from windtunnel.harness.scenario.explain.explain import explain
from windtunnel.harness.scenario.loader import parse_scenario
from windtunnel.harness.scenario.resolved.case import Payload
from windtunnel.harness.scenario.resolved.resolution import resolve

GROUP = (
    GOOD.replace("hosts: [a, b]", "hosts: [a, b, c]")
    .replace(
        "link: {between: [a, b], backend: relay}",
        "links: [{between: [a, b]}, {between: [a, c]}]",
    )
    .replace("to: b", "to: [b, c]")
    .replace("endpoint=${b}:24325|term", "control-mode=dynamic|control=${a}:24324%s|term")
    .replace(
        "endpoint=${b}:24325",
        "endpoint=${self}:24325|control=${a}:24324|control-mode=dynamic",
    )
)


@pytest.mark.parametrize(
    ("flow_control", "line"),
    [
        ("|fc=max", "fc=max"),
        ("", "fc=max"),
        ("|fc=min", "fc=min with a group of 0"),
        ("|fc=min,g:/2", ""),
    ],
)
def test_receivers_that_a_sender_does_not_wait_for_are_named(flow_control, line):
    text = GROUP.replace("%s", flow_control).replace("link: a->b", 'link: "a->b"')
    case = resolve(
        parse_scenario(text, "made.yaml"), seed=1, fidelity="netns",
        addresses={"a": "10.64.0.3", "b": "10.64.0.19", "c": "10.64.0.35"},
        payload=Payload(path="payload.bin", sha256="0" * 64, length_bytes=1),
    )  # fmt: skip
    lines = [each.strip() for each in explain(case).splitlines() if "may miss the start" in each]
    more = "does not wait for this receiver: use fc=min,g:/2, or name the receiver in `partial`"
    text = f"may miss the start: {line} {more}"
    wanted = [f"{host} {text}" for host in ("b", "c")] if line else []
    assert lines == wanted
