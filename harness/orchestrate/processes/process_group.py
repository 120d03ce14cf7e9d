"""Signals to a child's process group, sent before the child is reaped.

The id of a dead child is not reused until the parent has reaped the child. Afterwards the kernel
may assign the id to any process, and on a machine that starts many processes, ids wrap around
within seconds. The remaining processes of a group are therefore killed before the child is reaped.
"""

import contextlib
import os
import signal


def kill(pid: int) -> None:
    """Kill the process group of a child that this process, or a fork server, has not reaped yet."""
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(pid, signal.SIGKILL)


def has_ended(pid: int) -> bool:
    """Return whether a child of this process has ended, without reaping it."""
    try:
        return os.waitid(os.P_PID, pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is not None
    except ChildProcessError:
        return False
