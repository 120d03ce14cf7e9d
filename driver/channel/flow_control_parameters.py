"""Parses the flow control parameter `fc=`, which selects the receivers that limit a sender.

    fc=<max|min|tagged>[,t:<duration>][,g:<tag>[/<min size>]|,g:/<min size>][,rrwm:<n>]

This module checks only the syntax and the ranges. The sender implements the strategies. The only
option of `max` is `rrwm`. Source: spec 4.4, Aeron 1.53.
"""

from typing import NamedTuple

from windtunnel.driver.base.arith import I32_MAX
from windtunnel.driver.base.errors import ConfigurationError
from windtunnel.driver.channel import uri_param, uri_value

MAX = "max"
MIN = "min"
TAGGED = "tagged"


class FlowControlParameters(NamedTuple):
    """A flow control strategy and its options. None selects the driver's default."""

    strategy: str
    receiver_timeout_ns: int | None = None
    group_tag: int | None = None
    group_min_size: int | None = None
    retransmit_window_multiple: int | None = None


def parse(text: str) -> FlowControlParameters:
    """Parse the value of `fc=`. Raises ConfigurationError if the value is invalid."""
    strategy, *options = text.split(",")
    if strategy not in (MAX, MIN, TAGGED):
        raise _error(text, f"expected max, min or tagged, found '{strategy}'")
    timeout_ns = tag = min_size = multiple = None
    for option in options:
        name, mark, value = option.partition(":")
        if not mark or not value:
            raise _error(text, f"expected name:value, found '{option}'")
        if name == "rrwm":
            multiple = uri_value.parse_int32(_key("rrwm"), value, 1)
        elif strategy != MAX and name == "t":
            timeout_ns = uri_value.parse_duration_ns(_key("t"), value)
        elif strategy != MAX and name == "g":
            tag_text, _, size_text = value.partition("/")
            tag = uri_value.parse_int64(_key("g"), tag_text) if tag_text else None
            if "/" in value:
                min_size = uri_value.parse_int32(_key("g"), size_text, 0, I32_MAX)
        else:
            raise _error(text, f"'{strategy}' has no option '{name}'")
    return FlowControlParameters(strategy, timeout_ns, tag, min_size, multiple)


def _key(option: str) -> str:
    return f"{uri_param.FLOW_CONTROL} {option}"


def _error(text: str, reason: str) -> ConfigurationError:
    return ConfigurationError(f"{uri_param.FLOW_CONTROL}={text}: {reason}")
