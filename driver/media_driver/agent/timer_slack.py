"""How late the system may wake a thread that sleeps: as little as it can.

Linux lets a sleep last fifty microseconds longer than asked, to wake several threads at once. An
agent that parks for one microsecond would be away for fifty, and so would each message that needs
it. Source: Linux prctl(2).
"""

import ctypes

_SET_TIMER_SLACK, _GET_TIMER_SLACK = 29, 30
SLACK_NS = 1
"""The least there is; 0 would mean the system's default."""


def wake_on_time() -> None:
    """Have the calling thread woken when its sleep is over; a system that cannot stays as it is."""
    prctl = getattr(ctypes.CDLL(None), "prctl", None)
    if prctl is not None:
        prctl(_SET_TIMER_SLACK, ctypes.c_ulong(SLACK_NS), 0, 0, 0)


def slack_ns() -> int:
    """How late the calling thread may be woken."""
    return int(ctypes.CDLL(None).prctl(_GET_TIMER_SLACK, 0, 0, 0, 0))
