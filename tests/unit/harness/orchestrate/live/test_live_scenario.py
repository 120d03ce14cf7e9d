"""The scenario of a lab that a program controls."""

from typing import Any

import pytest

from windtunnel.harness.orchestrate.live.live_scenario import (
    OptionError,
    document_of,
    live_scenario,
    require_application,
    require_impairments,
)

OPTIONS: dict[str, Any] = {
    "name": "lab",
    "hosts": ["a", "b"],
    "links": [{"between": ["a", "b"], "impairments": {"both": {"loss": "2%", "delay": "20ms"}}}],
    "observe": [
        {"id": "x", "stream": 1, "from": "a", "to": "b", "channel": "aeron:udp?endpoint=${b}:1"}
    ],
    "seed": 9,
}


def test_a_lab_is_a_scenario_without_applications() -> None:
    scenario = live_scenario(OPTIONS)
    assert scenario.applications == ()
    assert scenario.seeds.root == 9
    assert scenario.fidelity == ("netns",)
    assert scenario.network.all_links[0].impairments["both"].delay is not None
    assert [each.stream_id for each in scenario.observe] == [1]
    settings = {"a": {"AERON_MTU_LENGTH": "1408"}}
    assert live_scenario({**OPTIONS, "drivers": settings}).drivers == settings
    assert "applications" not in document_of(OPTIONS)
    assert live_scenario({**OPTIONS, "fidelity": "compose"}).fidelity == ("compose",)


@pytest.mark.parametrize(
    ("changed", "text"),
    [
        ({"hosts": ["a", "b!"]}, "network.hosts"),
        ({"hosts": ["a"]}, "network.hosts"),
        ({"links": [{"between": ["a", "c"]}]}, "found 'c'"),
        ({"links": [{"between": ["a", "b"], "impairments": {"both": {"loss": "200%"}}}]}, "loss"),
        (
            {"links": [{"between": ["a", "b"], "impairments": {"both": {"lose": "2%"}}}]},
            "unknown key",
        ),
        ({"observe": [{"id": "x", "stream": "one"}]}, "observe"),
        ({"name": "A B"}, "name"),
        ({"seed": -1}, "seeds.root"),
        ({"drivers": {"c": {}}}, "drivers.c: expected a host of the network"),
        ({"drivers": {"a": {"AERON_MTU": 1}}}, "drivers.a.AERON_MTU: expected a driver's setting"),
        ({"drivers": {"a": {"AERON_DRIVER_TIMEOUT": "5s"}}}, "this setting is a timeout"),
        ({"about": object()}, "expected plain values"),
    ],
)
def test_wrong_options_are_named_without_a_line(changed: dict[str, Any], text: str) -> None:
    with pytest.raises(OptionError, match=text) as caught:
        live_scenario(OPTIONS | changed)
    assert not str(caught.value).startswith("lab:")


def test_impairments_are_checked_as_in_a_file() -> None:
    found = require_impairments(("x", "y"), {"delay": {"mean": "5ms", "jitter": "1ms"}})
    assert found.network.all_links[0].impairments["both"].delay is not None
    with pytest.raises(OptionError, match="jitter"):
        require_impairments(("x", "y"), {"delay": {"mean": "5ms", "jitter": "9ms"}})


def test_applications_are_checked_as_in_a_file() -> None:
    table = {"id": "feed", "on": "a", "command": ["true", "${b}"]}
    assert require_application(["a", "b"], table).command == ("true", "${b}")
    for wrong, text in (
        ({"on": "c"}, "found 'c'"),
        ({"command": "true"}, "a list of words"),
        ({"command": ["${c}"]}, "expected a host or directory"),
        ({"id": "Feed!"}, "id"),
    ):
        with pytest.raises(OptionError, match=text):
            require_application(["a", "b"], table | wrong)
