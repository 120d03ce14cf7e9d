"""Signals to the process group of a child, sent before the child is reaped.

The id of a dead child is not reused until the parent has reaped it. Afterwards the kernel may
assign it to any process, and a machine that starts many processes wraps around within seconds. So
the remaining processes of a group are killed before the child is reaped, never later.
"""

import contextlib
import os
import signal


def kill(pid: int) -> None:
    """Kill the group of a child of this process or of a fork server that is not reaped yet."""
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(pid, signal.SIGKILL)


def has_ended(pid: int) -> bool:
    """Return whether a child of this process has ended, without reaping it."""
    try:
        return os.waitid(os.P_PID, pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is not None
    except ChildProcessError:
        return False
