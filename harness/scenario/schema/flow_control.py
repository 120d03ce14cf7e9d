"""Whose windows bind a sender with several receivers, as its channel says.

    fc=max                   the widest of all; also the default of a group
    fc=min,g:/2              the narrowest of all, as soon as there are two
    fc=tagged,g:7/2,t:2s     the narrowest of those whose status messages carry tag 7

A sender with one destination heeds that one. Read by the harness itself: what a driver makes of it
is the driver's business. Source: Aeron's media driver, flow control strategies.
"""

import re
from dataclasses import dataclass

RECEIVER_TIMEOUT_NS = 5_000_000_000
"""Without a status message for so long a receiver binds no more; a default."""

_TIME = re.compile(r"(\d+)(ns|us|ms|s)")
_NANOSECONDS = {"ns": 1, "us": 1_000, "ms": 1_000_000, "s": 1_000_000_000}


@dataclass(frozen=True)
class FlowControl:
    """A strategy and what it was told."""

    strategy: str
    group_tag: int | None = None
    group_min: int = 0
    timeout_ns: int = RECEIVER_TIMEOUT_NS
    answered_windows: int | None = None
    "So many of a receiver's windows one NAK may ask for; None for the driver's default."


def parse_flow_control(text: str) -> FlowControl:
    """Read the value of `fc=`; ValueError names what cannot be understood."""
    strategy, *options = text.split(",")
    if strategy not in ("max", "min", "tagged"):
        raise ValueError(f"fc={text}: expected max, min or tagged, found {strategy}")
    tag, least, timeout_ns, windows = None, 0, RECEIVER_TIMEOUT_NS, None
    for option in options:
        name, _, value = option.partition(":")
        if name == "t" and (found := _TIME.fullmatch(value)):
            timeout_ns = int(found[1]) * _NANOSECONDS[found[2]]
        elif name == "g" and (group := re.fullmatch(r"(-?\d+)?(?:/(\d+))?", value)) and value:
            tag = int(group[1]) if group[1] else None
            least = int(group[2] or 0)
        elif name == "rrwm" and value.isdecimal() and int(value):
            windows = int(value)
        else:
            raise ValueError(f"fc={text}: expected t:TIME, g:TAG/COUNT or rrwm:N, found {option}")
    if strategy == "tagged" and tag is None:
        raise ValueError(f"fc={text}: expected the group's tag, as in g:7")
    return FlowControl(strategy, tag, least, timeout_ns, windows)
