"""The process group of a child: ended as a whole, and only while its number is surely the child's.

A dead child's number stays its own until the parent has asked how it ended; then the kernel may
give it to anybody, and a machine that starts many processes comes round to it within seconds. So
what a child leaves behind is killed before the child is reaped, never later.
"""

import contextlib
import os
import signal


def kill(pid: int) -> None:
    """Kill a child's group; only for a child that was not reaped, of this process or a zygote's."""
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(pid, signal.SIGKILL)


def has_ended(pid: int) -> bool:
    """Whether a child of this process has ended and waits to be reaped; not reaped by this."""
    try:
        return os.waitid(os.P_PID, pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is not None
    except ChildProcessError:
        return False
