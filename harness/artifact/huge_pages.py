"""Keeps huge pages out of processes that must not pause.

numpy requests huge pages for each array from 4 MiB. The first access to one zeroes 2 MiB, which
took 5 to 10 ms on a virtual machine: the relay, whose tables are reserved but not allocated,
forwarded nothing meanwhile.
"""

import ctypes

_SET_THP_DISABLE = 41
"""The option of prctl(2)."""


def avoid_huge_pages() -> None:
    """Let this process, and those that it starts, have small pages only, if prctl is available."""
    prctl = getattr(ctypes.CDLL(None), "prctl", None)
    if prctl is not None:
        prctl(_SET_THP_DISABLE, 1, 0, 0, 0)
