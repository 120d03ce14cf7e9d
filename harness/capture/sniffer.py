"""The packet capture on a host's interface: how to start tcpdump, and what it says at its end.

    tcpdump: listening on eth0, ...                 ready
    tcpdump: <N> packets captured, <N> packets received by filter, ...      when asked by `ASK`
    <N> packets captured                            at the end, after SIGTERM
    <N> packets received by filter
    <N> packets dropped by kernel
    <N> packets dropped by interface                only if there were any

The kernel hands packets over in blocks, a full one at once and a partial one after a second: a
capture must be left alone after the last packet until it says that it has taken all that its
filter received, or it misses the end. The last packets may lie in two blocks, of which the second
is handed over a second after the first: what still takes packets is left alone.

tcpdump listens to the interface before it gives the kernel its filter. What comes in between counts
as received by filter, whatever it is, and ARP or the like is never taken: no packet was lost. So a
capture is asked once before anything is sent, and what is missing each time is not one of ours.
"""

from __future__ import annotations

import re
import signal

from windtunnel.harness.artifact.host.host_facts import CaptureFacts

READY = "listening on "
"""Part of the line that says that the capture has begun."""

SETTLE_S = 1.1
"""Longer than the kernel keeps a block."""
SETTLES_MAX = 8
"""So many times as long is waited for a capture that never comes to an end."""
BUFFER_KIB = 128 * 1024
"""Kernel buffer: a second of one gigabit."""

ASK = signal.SIGUSR1
"""The signal by which it is asked how far it is."""

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


_SO_FAR = re.compile(r"(\d+) packets? captured, (\d+) packets? received by filter")


def is_answer(line: str) -> bool:
    """Whether a line of the log answers `ASK`."""
    return _SO_FAR.search(line) is not None


class Settling:
    """Whether a capture may be ended; hears what it answers when it is asked how far it is."""

    def __init__(self, now_s: float) -> None:
        self._last_s = now_s + SETTLES_MAX * SETTLE_S
        self._taken, self._took_s = -1, now_s
        self._has_all = False

    def hear(self, line: str, now_s: float) -> None:
        """Take in a line of the capture's log."""
        found = _SO_FAR.search(line)
        if found is None:
            return
        taken, received = int(found[1]), int(found[2])
        if taken != self._taken:
            self._taken, self._took_s = taken, now_s
        # Only by its own word: one that says nothing may be one that the machine lets wait.
        self._has_all = taken >= received or now_s - self._took_s >= SETTLE_S

    def is_over(self, now_s: float) -> bool:
        """Whether it says that it took all that came, or none for longer than the kernel keeps any.

        One that never says so is given up in the end.
        """
        return self._has_all or now_s >= self._last_s


def statistics(log: str) -> CaptureFacts | None:
    """Read the closing statistics from what tcpdump printed, or None if it did not get so far.

    A packet that tcpdump's filter received and that it never wrote counts as dropped: it was still
    in the kernel's buffer at the end. One that was missing whenever the capture was asked, the
    first time before anything was sent, had come before the filter stood and was none for it.
    """
    found = {what: int(count) for count, what in _STATISTICS.findall(log)}
    if not found.keys() >= REQUIRED:
        return None
    captured = found["captured"]
    by_interface = found.get("dropped by interface", 0)
    missing = [int(received) - int(taken) for taken, received in _SO_FAR.findall(log)]
    unfiltered = max(0, min(missing, default=0))
    unread = max(0, found["received by filter"] - captured - unfiltered)
    return CaptureFacts(
        received=captured, dropped_by_kernel=max(found["dropped by kernel"], unread) + by_interface
    )
