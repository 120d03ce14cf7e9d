"""Timer slack of a thread: the time by which the Linux kernel may delay the thread's wakeups.

The default on Linux is 50 us, which lets the kernel combine wakeups. An agent that parks for 1 us
would sleep for 50 us and delay every message by that time. Source: Linux prctl(2).
"""

import ctypes

_SET_TIMER_SLACK, _GET_TIMER_SLACK = 29, 30
SLACK_NS = 1
"""The minimum timer slack in nanoseconds. A slack of 0 would select the system's default."""


def minimize_timer_slack() -> None:
    """Set the timer slack of the calling thread to the minimum, if prctl is available."""
    prctl = getattr(ctypes.CDLL(None), "prctl", None)
    if prctl is not None:
        prctl(_SET_TIMER_SLACK, ctypes.c_ulong(SLACK_NS), 0, 0, 0)


def slack_ns() -> int:
    """Return the timer slack of the calling thread in nanoseconds."""
    return int(ctypes.CDLL(None).prctl(_GET_TIMER_SLACK, 0, 0, 0, 0))
