"""Syntax of fc=."""

import contextlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from windtunnel.driver.base.errors import ConfigurationError
from windtunnel.driver.channel import flow_control_parameters
from windtunnel.driver.channel.flow_control_parameters import FlowControlParameters


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("max", ("max",)),
        ("min", ("min",)),
        ("max,rrwm:8", ("max", None, None, None, 8)),
        ("min,t:5s", ("min", 5_000_000_000)),
        ("min,g:/3", ("min", None, None, 3)),
        ("tagged,g:-7", ("tagged", None, -7)),
        ("tagged,g:123/2,t:10ms,rrwm:1", ("tagged", 10_000_000, 123, 2, 1)),
    ],
)
def test_reads(text, found):
    assert flow_control_parameters.parse(text) == FlowControlParameters(*found)


@pytest.mark.parametrize(
    "text",
    ["", "MAX", "best", "max,t:5s", "max,g:1", "min,", "min,t", "min,t:", "min,t:x", "min,g:/",
     "min,g:/-1", "min,g:x", "tagged,g:1/2/3", "min,rrwm:0", "min,zzz:1"],
)  # fmt: skip
def test_refuses(text):
    with pytest.raises(ConfigurationError, match=r"^fc"):
        flow_control_parameters.parse(text)


@given(st.lists(st.sampled_from(["max", "min", "tagged", ",", ":", "g", "t", "/", "1", "é"])))
def test_any_text_is_parameters_or_an_error(pieces):
    text = "".join(pieces)
    with contextlib.suppress(ConfigurationError):
        found = flow_control_parameters.parse(text)
        assert text.startswith(found.strategy)
