"""The packet capture on a host's interface: how to start tcpdump, and what it says at its end.

    tcpdump: listening on eth0, ...                 ready
    <N> packets captured                            at the end, after SIGTERM
    <N> packets received by filter
    <N> packets dropped by kernel
    <N> packets dropped by interface                only if there were any

The kernel hands packets over in blocks, a full one at once and a partial one after a second: a
capture must be left alone for `SETTLE_S` after the last packet, or it misses the end.
"""

from __future__ import annotations

import re

from harness.artifact.host_facts import CaptureFacts

READY = "listening on "
"""Part of the line that says that the capture has begun."""

SETTLE_S = 1.1
BUFFER_KIB = 128 * 1024
"""Kernel buffer: a second of one gigabit."""

_STATISTICS = re.compile(
    r"^(\d+) packets? (captured|received by filter|dropped by kernel|dropped by interface)", re.M
)
REQUIRED = {"captured", "received by filter", "dropped by kernel"}


def command(interface: str, file: str) -> list[str]:
    """Return the command that records all UDP of an interface, both directions, in full length."""
    return [
        "tcpdump",
        *("-i", interface),
        *("-w", file),
        "-n",
        "--time-stamp-precision=nano",
        *("-B", str(BUFFER_KIB)),
        *("-s", "0"),
        *("-Z", "root"),
        "udp",
    ]


def statistics(log: str) -> CaptureFacts | None:
    """Read the closing statistics from what tcpdump printed, or None if it did not get so far.

    A packet that tcpdump's filter received and that it never wrote counts as dropped: it was still
    in the kernel's buffer at the end.
    """
    found = {what: int(count) for count, what in _STATISTICS.findall(log)}
    if not found.keys() >= REQUIRED:
        return None
    captured = found["captured"]
    by_interface = found.get("dropped by interface", 0)
    unread = max(0, found["received by filter"] - captured)
    return CaptureFacts(
        received=captured, dropped_by_kernel=max(found["dropped by kernel"], unread) + by_interface
    )
