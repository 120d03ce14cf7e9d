"""Flow control strategies of senders with several receivers, as specified in the channel.

    fc=max                   the largest limit of all receivers, the default of a group
    fc=min,g:/2              the smallest limit of all receivers, once there are two
    fc=tagged,g:7/2,t:2s     the smallest limit of receivers whose status messages carry tag 7

A sender with one destination uses its only receiver's limit. This parser is independent of the
driver's. Source: Aeron's media driver, flow control strategies.
"""

import re
from dataclasses import dataclass

from windtunnel.harness.scenario.schema.units import DURATION_NS_MAX, format_duration, shown

RECEIVER_TIMEOUT_NS = 5_000_000_000
"""Default time without a status message after which a sender ignores a receiver."""

_TIME = re.compile(r"(\d{1,18})(ns|us|ms|s)", re.ASCII)
_GROUP = re.compile(r"(-?\d{1,18})?(?:/(\d{1,9}))?", re.ASCII)
_WINDOWS = re.compile(r"\d{1,9}", re.ASCII)
_NANOSECONDS = {"ns": 1, "us": 1_000, "ms": 1_000_000, "s": 1_000_000_000}


@dataclass(frozen=True)
class FlowControl:
    """A flow control strategy and its options."""

    strategy: str
    group_tag: int | None = None
    group_min: int = 0
    timeout_ns: int = RECEIVER_TIMEOUT_NS
    answered_windows: int | None = None
    """Maximum number of receiver windows that a NAK can request, or None for the driver's default.
    """


def parse_flow_control(text: str) -> FlowControl:
    """Parse the value of the channel parameter `fc`. Raises ValueError if the value is invalid."""
    strategy, *options = text.split(",")
    if strategy not in ("max", "min", "tagged"):
        raise ValueError(f"fc={shown(text)}: expected max, min or tagged, found {shown(strategy)}")
    tag, least, timeout_ns, windows = None, 0, RECEIVER_TIMEOUT_NS, None
    for option in options:
        name, _, value = option.partition(":")
        if name == "t" and (found := _TIME.fullmatch(value)):
            timeout_ns = int(found[1]) * _NANOSECONDS[found[2]]
            if timeout_ns > DURATION_NS_MAX:
                most = format_duration(DURATION_NS_MAX)
                raise ValueError(f"fc={shown(text)}: expected t to be at most {most}")
        elif name == "g" and (group := _GROUP.fullmatch(value)) and value:
            tag = int(group[1]) if group[1] else None
            least = int(group[2] or 0)
        elif name == "rrwm" and _WINDOWS.fullmatch(value) and int(value):
            windows = int(value)
        else:
            raise ValueError(
                f"fc={shown(text)}: expected t:TIME, g:TAG/COUNT or rrwm:N (at most 18 digits in "
                f"TIME and TAG, 9 in COUNT and N), found {shown(option)}"
            )
    if strategy == "tagged" and tag is None:
        raise ValueError(f"fc={shown(text)}: expected a group tag, as in g:7")
    return FlowControl(strategy, tag, least, timeout_ns, windows)
