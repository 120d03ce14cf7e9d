"""The signals that end a program which compiles kernels."""

import atexit
import os
import signal
from types import FrameType


def end_on_signals() -> None:
    """Let SIGINT, SIGTERM and SIGHUP end this process silently, after its temporary folders were
    removed.

    An exception would do so, too, unless it is raised in a callback of the compiler, where it is
    lost.
    """
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, _end)


def _end(number: int, frame: FrameType | None) -> None:
    atexit._run_exitfuncs()
    os._exit(128 + number)
