"""Timer slack of a thread: how much later than requested the kernel may wake it.

The default on Linux is 50 us, so that wakeups can be combined. An agent that parks for 1 us would
sleep for 50 us and delay every message by as much. Source: Linux prctl(2).
"""

import ctypes

_SET_TIMER_SLACK, _GET_TIMER_SLACK = 29, 30
SLACK_NS = 1
"""The minimum; 0 selects the system's default."""


def minimize_timer_slack() -> None:
    """Set the timer slack of the calling thread to the minimum, where prctl is available."""
    prctl = getattr(ctypes.CDLL(None), "prctl", None)
    if prctl is not None:
        prctl(_SET_TIMER_SLACK, ctypes.c_ulong(SLACK_NS), 0, 0, 0)


def slack_ns() -> int:
    """Return the timer slack of the calling thread."""
    return int(ctypes.CDLL(None).prctl(_GET_TIMER_SLACK, 0, 0, 0, 0))
