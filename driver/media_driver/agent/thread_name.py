"""Names of the agents' threads, as `top -H` and profilers show them.

They are those of the C driver of Aeron 1.53, of which Linux shows 15 characters.
"""

import ctypes

from windtunnel.driver.media_driver.context import Context
from windtunnel.driver.media_driver.settings.process import CLASSIC, NEW

_SET_NAME = 15
"""The option of prctl(2)."""
_NAMES = {
    CLASSIC: {
        "conductor": "conductor",
        "sender": "sender",
        "receiver": "receiver",
        "shared-network": "[sender, receiver]",
        "shared": "[conductor, sender, receiver]",
    },
    NEW: {
        "conductor": "aeron-md-cnd",
        "sender": "aeron-md-snd",
        "receiver": "aeron-md-rcv",
        "shared-network": "aeron-md-net",
        "shared": "aeron-md-shd",
    },
}


def name_thread(context: Context, thread: str) -> None:
    """Name the calling thread, if prctl is available."""
    prctl = getattr(ctypes.CDLL(None), "prctl", None)
    if prctl is not None:
        prctl(_SET_NAME, _NAMES[context.thread_naming][thread].encode(), 0, 0, 0)
