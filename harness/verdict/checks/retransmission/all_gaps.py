"""Minimum time between NAKs for the same gap if a receiver sends NAKs for all gaps at once.

    NAK ---- repair time ----> frame              the shortest repair bounds the delay of retries
    NAK ---- delay ----> NAK ---- twice the delay ----> NAK

The driver smooths the repair times and adds deviations, so its delay is never shorter than the
shortest repair that it has seen. Until the first repair, it assumes INITIAL_REPAIR_NS. When a
packet ends a silence of the stream, the doublings begin again. The mode is Windtunnel's: other
drivers ignore its channel parameter, and are judged by Aeron's rule.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from windtunnel.harness.scenario.resolved.case import TrafficCase
from windtunnel.harness.scenario.schema.channel import parse_channel
from windtunnel.harness.verdict.core.evidence import Evidence

SETTING = "WINDTUNNEL_NAK_ALL_GAPS"
"""The driver setting that a channel without the parameter has."""
INITIAL_REPAIR_NS = 333_000_000
"""Repair time that the driver assumes until it has measured one. Source: docs/loss-recovery.md."""
REPAIR_NS_MAX = 2_000_000_000
"""Longest repair time that the driver uses. Source: docs/loss-recovery.md."""
DOUBLINGS_MAX = 6
"""Number of retries after which the delay is no longer doubled. Source: docs/loss-recovery.md."""
RETRY_NS_MAX = 5_000_000_000
"""Maximum of a doubled delay. Source: docs/loss-recovery.md."""
SILENCE_NS = 200_000_000
"""Minimum time without a new frame or a heartbeat that counts as a silence: 250 ms, less what a
driver's clock and a capture may differ by. Source: docs/loss-recovery.md."""
NEVER_NS = -1


def has_all_gaps(evidence: Evidence, traffic: TrafficCase) -> bool:
    """Return whether a stream's receiver sends NAKs for all gaps at once."""
    asked = parse_channel(traffic.receive).nak_all_gaps
    return has_mode(evidence, traffic.to_host, asked, SETTING)


def has_mode(evidence: Evidence, host: str, asked: bool | None, setting: str) -> bool:
    """Return whether a host's driver is in a mode of Windtunnel's driver, which a channel `asked`
    for, or which the driver's setting turns on if `asked` is None.
    """
    subject = evidence.subject(host)
    if subject is not None and subject.is_aerons:
        return False
    if asked is not None or subject is None:
        return bool(asked)
    return subject.settings.get(setting) == "true"


@dataclass(frozen=True)
class Earlier:
    """For each NAK, the number of earlier NAKs that cover its first byte, and the time of the
    latest of them.
    """

    counts: NDArray[np.int64]
    last_ns: NDArray[np.int64]
    "Time of the last one, or NEVER_NS."


def earlier_naks(
    times_ns: NDArray[np.int64], starts: NDArray[np.int64], ends: NDArray[np.int64]
) -> Earlier:
    """Return the number and the latest time of the earlier NAKs that cover each NAK's first byte.
    The given NAKs must be in order of time.

    A segment tree over the limits of all ranges: a NAK is added to the nodes that make up its
    range, and the NAKs for a byte are those of its leaf and of the nodes above.
    """
    limits = np.unique(np.concatenate([starts, ends]))
    size = len(limits)
    first = (np.searchsorted(limits, starts) + size).tolist()
    after = (np.searchsorted(limits, ends) + size).tolist()
    added, latest_ns = [0] * (2 * size), [NEVER_NS] * (2 * size)
    counts, last_ns = [], []
    for low, high, time_ns in zip(first, after, times_ns.tolist(), strict=True):
        node, count, before_ns = low, 0, NEVER_NS
        while node:
            count += added[node]
            before_ns = max(before_ns, latest_ns[node])
            node >>= 1
        counts.append(count)
        last_ns.append(before_ns)
        while low < high:
            for edge in (low,) * (low & 1) + (high - 1,) * (high & 1):
                added[edge] += 1
                latest_ns[edge] = time_ns
            low, high = (low + 1) >> 1, high >> 1
    return Earlier(np.array(counts, dtype=np.int64), np.array(last_ns, dtype=np.int64))


def since_silence(
    times_ns: NDArray[np.int64],
    starts: NDArray[np.int64],
    ends: NDArray[np.int64],
    packets_ns: NDArray[np.int64],
) -> NDArray[np.int64]:
    """Return, for each NAK, the number of earlier NAKs that cover its first byte and were sent
    after the last silence of the stream.

    `packets_ns` has the times at which new frames and heartbeats arrived, in ascending order.
    """
    silences = np.searchsorted(
        packets_ns[1:][np.diff(packets_ns) >= SILENCE_NS], times_ns, side="right"
    )
    counts = np.zeros(len(times_ns), dtype=np.int64)
    for silence in np.unique(silences):
        own = silences == silence
        counts[own] = earlier_naks(times_ns[own], starts[own], ends[own]).counts
    return counts


def least_delays_ns(
    times_ns: NDArray[np.int64],
    repaired_ns: NDArray[np.int64],
    earlier: Earlier,
    in_row: NDArray[np.int64],
    configured_ns: int,
) -> NDArray[np.int64]:
    """Return the minimum permitted time between each NAK and the previous NAK for the same byte.

    `repaired_ns` is when the first frame of each NAK's range arrived, `in_row` the number of its
    earlier NAKs since the last silence. The minimum is 0 for the first NAK.
    """
    order = np.argsort(repaired_ns, kind="stable")
    shortest_ns = np.minimum.accumulate(np.maximum(repaired_ns - times_ns, 0)[order])
    known = np.searchsorted(repaired_ns[order], earlier.last_ns, side="right")
    # The first repair, if it is shorter, replaces the assumption for NAKs that were sent before it.
    first = np.searchsorted(repaired_ns[order], times_ns, side="right") > 0
    used_ns = np.append(INITIAL_REPAIR_NS, np.minimum(shortest_ns, REPAIR_NS_MAX))
    replaced_ns = np.where(first, used_ns[:2].min(), INITIAL_REPAIR_NS)
    measured_ns = np.where(known == 0, replaced_ns, used_ns[known])
    doublings = np.clip(in_row - 1, 0, DOUBLINGS_MAX)
    doubled_ns = np.minimum(measured_ns << doublings, RETRY_NS_MAX)
    delays_ns = np.maximum(np.maximum(measured_ns, doubled_ns), configured_ns)
    return np.where(earlier.counts == 0, 0, delays_ns)
