"""The privileges that network namespaces need, and how an ordinary user acquires them.

    command --acquire--> unshare --user --net --mount --> this module --> the same command again
                         all capabilities, same user       with a private /run

Root has these privileges. Any other user has them in a user namespace, if the kernel allows user
namespaces. The command then executes itself again in such a namespace, with all capabilities, but
only for networks in the namespace. It keeps its user id, because programs such as tcpdump drop
privileges when they run as root. This module never prompts for a password and never changes the
system.
"""

from __future__ import annotations

import ctypes
import os
import shutil
import sys
from pathlib import Path

from windtunnel.harness.orchestrate.lab import LabError

REENTERED = "WINDTUNNEL_USER_NAMESPACE"
"""Environment variable that prevents a process from executing itself again repeatedly."""

CAP_NET_ADMIN = 12
CAP_NET_RAW = 13
CAP_SYS_ADMIN = 21

RUN_FOLDER = b"/run"
"""Folder in which `ip netns` keeps namespaces. A private folder is mounted over it."""

_SWITCHES = (
    ("/proc/sys/user/max_user_namespaces", "0", "sysctl user.max_user_namespaces is 0"),
    (
        "/proc/sys/kernel/unprivileged_userns_clone",
        "0",
        "sysctl kernel.unprivileged_userns_clone is 0",
    ),
    (
        "/proc/sys/kernel/apparmor_restrict_unprivileged_userns",
        "1",
        "sysctl kernel.apparmor_restrict_unprivileged_userns is 1",
    ),
)


def effective_capabilities() -> int:
    """Return the capability bits of this process."""
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith("CapEff:"):
            return int(line.split()[1], 16)
    return 0


def missing() -> list[str]:
    """Return the names of the capabilities that a lab needs but this process lacks."""
    have = effective_capabilities()
    needed = {
        "CAP_NET_ADMIN": CAP_NET_ADMIN,
        "CAP_NET_RAW": CAP_NET_RAW,
        "CAP_SYS_ADMIN": CAP_SYS_ADMIN,
    }
    return [name for name, bit in needed.items() if not have >> bit & 1]


def obstacles() -> list[str]:
    """Return the reasons why an ordinary user cannot create user namespaces on this machine."""
    found = [
        text
        for path, bad, text in _SWITCHES
        if Path(path).exists() and Path(path).read_text().strip() == bad
    ]
    if shutil.which("unshare") is None:
        found.append("the program 'unshare' (package util-linux) is not installed")
    return found


def require() -> None:
    """Raise LabError with the missing capabilities if this process cannot create namespaces."""
    lacking = missing()
    if lacking:
        reasons = obstacles() or ["it was not started in a user namespace"]
        raise LabError(
            f"network namespaces need {', '.join(lacking)}, which this process lacks "
            f"({'; '.join(reasons)}): run as root, or use --fidelity compose"
        )


def acquire() -> None:
    """Execute this process again in a user namespace, unless it can already create namespaces.

    Does not return if it executes the process again. Must be called before threads, files or
    displays exist.
    """
    if not missing():
        return
    if os.environ.get(REENTERED) or obstacles():
        require()
    sys.stdout.flush()
    sys.stderr.flush()
    command = ["unshare", "--user", "--map-current-user", "--keep-caps", "--net", "--mount", "--"]
    command += [sys.executable, "-m", __name__, *sys.orig_argv]
    os.execvpe(command[0], command, {**os.environ, REENTERED: "1"})


def enter(argv: list[str]) -> None:
    """Prepare the namespaces of this process for labs, then replace the process with a command."""
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.mount(b"windtunnel", RUN_FOLDER, b"tmpfs", 0, b"mode=755") != 0:
        reason = os.strerror(ctypes.get_errno())
        sys.exit(f"windtunnel: a private /run cannot be mounted in a user namespace: {reason}")
    os.execvp(argv[0], argv)


if __name__ == "__main__":
    enter(sys.argv[1:])
