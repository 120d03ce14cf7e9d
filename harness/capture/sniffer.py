"""The packet capture on a host's interface, using tcpdump.

    tcpdump: listening on eth0, ...                 ready
    tcpdump: <N> packets captured, <N> packets received by filter, ...      on REPORT_SIGNAL
    <N> packets captured                            at the end, after SIGTERM
    <N> packets received by filter
    <N> packets dropped by kernel
    <N> packets dropped by interface                only if there were any

The kernel passes packets to tcpdump in blocks, a full one at once and a partial one after a second.
After the last packet, a capture must not be ended before it reports that it has captured all
packets that its filter received. Otherwise the last packets are missing. They may be in two blocks,
the second of which arrives a second after the first, so a capture whose count still grows is not
ended either.

tcpdump listens on the interface before it installs its filter. Packets in between, such as ARP,
count as received by the filter but are never captured, which is not a loss. A capture therefore
reports once before anything is sent, and packets that are missing in every report are not counted
as lost.
"""

from __future__ import annotations

import re
import signal

from windtunnel.harness.artifact.host.host_facts import CaptureFacts

READY = "listening on "
"""Part of the line that tcpdump prints when the capture has begun."""

SETTLE_S = 1.1
"""Time between reports. It is longer than the kernel holds a partial block."""
SETTLES_MAX = 8
"""Maximum wait for a capture, in multiples of `SETTLE_S`."""
BUFFER_KIB = 128 * 1024
"""Size of the kernel buffer, enough for a second at 1 Gbit/s."""

REPORT_SIGNAL = signal.SIGUSR1
"""The signal that makes tcpdump print its statistics."""

_STATISTICS = re.compile(
    r"^(\d+) packets? (captured|received by filter|dropped by kernel|dropped by interface)", re.M
)
REQUIRED = {"captured", "received by filter", "dropped by kernel"}


def command(interface: str, file: str) -> list[str]:
    """Return the command that captures all UDP packets on an interface at full length."""
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


def is_report(line: str) -> bool:
    """Return whether a log line contains the statistics that tcpdump prints when it receives
    `REPORT_SIGNAL`.
    """
    return _SO_FAR.search(line) is not None


class Settling:
    """Decides whether a capture can be ended, based on the capture tool's reports."""

    def __init__(self, now_s: float) -> None:
        self._last_s = now_s + SETTLES_MAX * SETTLE_S
        self._captured, self._captured_s = -1, now_s
        self._has_all = False

    def update(self, line: str, now_s: float) -> None:
        """Process one line of the capture tool's log: if it is a report, note how many packets were
        received and captured.
        """
        found = _SO_FAR.search(line)
        if found is None:
            return
        taken, received = int(found[1]), int(found[2])
        if taken != self._captured:
            self._captured, self._captured_s = taken, now_s
        # Only reports decide this, because a capture without a report may be waiting for a
        # processor.
        self._has_all = taken >= received or now_s - self._captured_s >= SETTLE_S

    def is_over(self, now_s: float) -> bool:
        """Return whether the capture is complete, or has received no packet for `SETTLE_S`.

        Also returns true after `SETTLES_MAX` times `SETTLE_S`.
        """
        return self._has_all or now_s >= self._last_s


def statistics(log: str) -> CaptureFacts | None:
    """Parse the final statistics in tcpdump's log. Returns None if tcpdump printed none.

    A packet that was received by the filter but not captured counts as dropped, because it was
    still in the kernel's buffer at the end. Packets that are missing in every report arrived before
    the filter was installed, and do not count. The first report is made before anything is sent.
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
