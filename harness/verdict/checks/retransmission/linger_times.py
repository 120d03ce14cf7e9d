"""How long a sender that retransmits many ranges may ignore NAKs for what it has retransmitted.

    request -- round trip -- reply          linger: the longest round trip until then and a
    retransmit ---- linger ----> NAK        thirty-second of it, at least the setting

The sender smooths its round-trip times, so the longest one is a limit. It does not measure a group.
Source: docs/loss-recovery-sender.md.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from windtunnel.harness.scenario.resolved.case import TrafficCase
from windtunnel.harness.scenario.schema.channel import parse_channel
from windtunnel.harness.verdict.checks.retransmission.rtt_frames import rtt_frames
from windtunnel.harness.verdict.core.driver_setting import duration_setting_ns
from windtunnel.harness.verdict.core.evidence import Evidence
from windtunnel.harness.verdict.core.finding import EvidenceMissing, present
from windtunnel.harness.verdict.views.pauses import pauses_of

LINGER_NS_MAX = 2_000_000_000
"""Maximum linger time of a range. Source: docs/loss-recovery-sender.md."""
SETTING = "AERON_RETRANSMIT_UNICAST_LINGER"
SETTING_NS = 10_000_000
"""Its default."""
DEVIATION_SHARE = 32
TURNS_NS = 100_000
"""Time in which a simulated sender sends the rest of a range, whose last part counts."""


@dataclass(frozen=True)
class LingerTimes:
    """The longest linger time over time."""

    known_ns: NDArray[np.int64]
    "When round-trip times became known, in ascending order."
    longest_ns: NDArray[np.int64]
    "The longest one until then."
    least_ns: int
    "The setting."

    def at_ns(self, time_ns: int) -> int:
        """Return the longest linger time of what was retransmitted until a time."""
        known = int(np.searchsorted(self.known_ns, time_ns, side="right"))
        round_trip_ns = int(self.longest_ns[known - 1]) if known else 0
        linger_ns = max(round_trip_ns + round_trip_ns // DEVIATION_SHARE, self.least_ns)
        return min(linger_ns + TURNS_NS, LINGER_NS_MAX)


def linger_times(evidence: Evidence, traffic: TrafficCase) -> LingerTimes:
    """Return the linger times of a stream's sender, the longest possible ones if evidence of them
    is missing.
    """
    nothing = np.zeros(0, dtype=np.int64)
    try:
        wire, case, capture, pauses = present(
            evidence.wire(traffic),
            evidence.case,
            evidence.capture_of_streams(traffic.from_host),
            pauses_of(evidence, traffic.from_host),
        )
    except EvidenceMissing:
        return LingerTimes(nothing, nothing, LINGER_NS_MAX)
    setting_ns = duration_setting_ns(case, traffic.from_host, SETTING, SETTING_NS)
    least_ns = LINGER_NS_MAX if setting_ns is None else setting_ns
    if parse_channel(traffic.channel).is_group:
        return LingerTimes(nothing, nothing, least_ns)
    sent = rtt_frames(capture, wire.facts, case.address(traffic.from_host)).requests
    came = rtt_frames(capture, wire.facts, case.address(traffic.to_host)).replies
    asked_ns = {each.echo: each.time_ns for each in sent}
    replies = [each for each in came if each.echo in asked_ns]
    # A paused sender reads a reply at the end of the pause.
    read_ns = pauses.due_ns(np.array([each.time_ns for each in replies], dtype=np.int64), 1) - 1
    pairs = [
        (now_ns, now_ns - asked_ns[each.echo])
        for each, now_ns in zip(replies, read_ns.tolist(), strict=True)
    ]
    rows = np.array(sorted(pairs), dtype=np.int64).reshape(-1, 2)
    longest_ns = np.maximum.accumulate(rows[:, 1]) if len(rows) else nothing
    return LingerTimes(rows[:, 0], longest_ns, least_ns)
