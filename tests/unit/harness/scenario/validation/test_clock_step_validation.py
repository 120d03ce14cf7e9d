"""Steps of a host's clock: valid and invalid files, the resolved case, and its explanation."""

import pytest

from tests.unit.harness.scenario.applications.sample import resolved
from tests.unit.harness.scenario.test_scenario_loader import GOOD, faults_of
from windtunnel.harness.scenario.explain.explain import explain
from windtunnel.harness.scenario.resolved.case import Case

SECOND = 10**9


def text_of(step="8s", whom="host: a", fidelity="sim", more=""):
    event = f"{{id: ntp, whom: {{{whom}}}, when: {{after: 1s}}, act: {{step_clock: {step}}}}}"
    text = GOOD.replace("fidelity: [netns]", f"fidelity: [{fidelity}]")
    return text.replace("expect:", f"events: [{event}]\n{more}expect:")


@pytest.mark.parametrize(
    ("step", "step_ns", "text"),
    [
        ("8s", 8 * SECOND, "forward by 8s"),
        ("-60min", -3600 * SECOND, "back by 60min"),
        ("-1ns", -1, "back by 1ns"),
        ("9999ms", 9_999_000_000, "forward by 9999ms"),
    ],
)
def test_the_step_is_in_the_case(tmp_path, step, step_ns, text):
    case = resolved(text_of(step))
    (found,) = case.events
    assert (found.action, found.host, found.step_ns, found.lasts_ns) == (
        *("step_clock", "a"),
        *(step_ns, 0),
    )
    assert "driver" in found.roles
    assert f"ntp: the clock of a stepped {text}, 1s after the first message\n" in explain(case)
    case.write(tmp_path / "case.json")
    assert Case.read(tmp_path / "case.json") == case


@pytest.mark.parametrize(
    ("options", "fault"),
    [
        ({"step": "0s"}, "act.step_clock: expected a step forward, or back with a minus sign"),
        ({"step": "10s"}, "act.step_clock: expected less than 10s, found 10s: drivers and clients"),
        (
            {"step": "4s", "more": "timeouts: {client_liveness: 4s}\n"},
            "expected less than 4s, found 4s",
        ),
        ({"step": "2s", "more": "timeouts: {driver: 2s}\n"}, "expected less than 2s, found 2s"),
        ({"step": "5"}, "events[0].act.step_clock"),
        ({"step": "-5"}, "such as 5ms or -5ms, found -5"),
        ({"step": "+5s"}, "such as 5ms or -5ms, found '+5s': write it without the plus sign"),
        ({"step": "--5s"}, "events[0].act.step_clock"),
        ({"step": "-8d"}, "events[0].act.step_clock"),
        ({"whom": "host: c"}, "events[0].whom.host: expected one of the hosts a, b"),
        ({"whom": "link: a->b"}, "events[0].whom.link: all processes of a host share its clock"),
        ({"whom": "host: a, process: driver"}, "events[0].whom.process: all processes of a host"),
        (
            {"fidelity": "netns, compose"},
            "act.step_clock: Linux namespaces share one realtime clock: "
            "expected `fidelity: [sim]`, found netns, compose",
        ),
    ],
)
def test_locates_an_error(options, fault):
    found = faults_of(text_of(**options))
    assert any(fault in each for each in found), found
