"""The strategies of `fc=`, and invalid values."""

import pytest

from windtunnel.harness.scenario.schema.flow_control import FlowControl, parse_flow_control


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("max", FlowControl("max")),
        ("max,rrwm:4", FlowControl("max", answered_windows=4)),
        ("min,g:/2", FlowControl("min", None, 2)),
        ("tagged,g:-7/2,t:100ms", FlowControl("tagged", -7, 2, 100_000_000)),
    ],
)
def test_reads_a_strategy(text, expected):
    assert parse_flow_control(text) == expected


@pytest.mark.parametrize(
    "text",
    ["fast", "min,g:", "min,g:/x", "min,t:5", "tagged", "tagged,g:/2", "min,x:1", "max,rrwm:0"],
)
def test_refuses_an_invalid_strategy(text):
    with pytest.raises(ValueError, match="fc="):
        parse_flow_control(text)
