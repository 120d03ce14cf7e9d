"""Time ranges in which a host's driver was paused or killed by a host event.

    interval   |<-------- 200 ms -------->|
    actual     |<- 80 ms ->|   paused   |<- 120 ms ->|        on time

Paused time does not count towards a driver's timing requirements. A killed driver counts as paused
until its restart.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from windtunnel.harness.verdict.core.evidence import Evidence
from windtunnel.harness.verdict.core.finding import Missing

DRIVER = "driver"


@dataclass(frozen=True)
class Pauses:
    """Disjoint time ranges in which a driver was paused, in order."""

    starts_ns: NDArray[np.int64]
    ends_ns: NDArray[np.int64]

    def within_ns(
        self, from_ns: NDArray[np.int64], until_ns: NDArray[np.int64]
    ) -> NDArray[np.int64]:
        """Return how long the driver was paused within each time range."""
        still = np.zeros(len(from_ns), dtype=np.int64)
        for start_ns, end_ns in self._each():
            overlap = np.minimum(until_ns, end_ns) - np.maximum(from_ns, start_ns)
            still += np.maximum(overlap, 0)
        return still

    def due_ns(self, from_ns: NDArray[np.int64], duration_ns: int) -> NDArray[np.int64]:
        """Return the time at which a duration has elapsed since each `from_ns`. Pauses do not count
        towards the duration.
        """
        due_ns = from_ns + duration_ns
        for start_ns, end_ns in self._each():
            met = (start_ns < due_ns) & (end_ns > from_ns)
            due_ns = np.where(met, due_ns + end_ns - np.maximum(from_ns, start_ns), due_ns)
        return due_ns

    def _each(self) -> list[tuple[int, int]]:
        return list(zip(self.starts_ns.tolist(), self.ends_ns.tolist(), strict=True))


def pauses_of(evidence: Evidence, host: str) -> Pauses | Missing:
    """Return the time ranges in which a host's driver was paused or killed by host events."""
    happened = evidence.host_events
    if isinstance(happened, Missing):
        return happened
    stretches: list[tuple[int, int]] = []
    for each in sorted(happened, key=lambda each: each.began_ns):
        if each.host != host or DRIVER not in each.processes or each.ended_ns <= each.began_ns:
            continue
        if stretches and each.began_ns <= stretches[-1][1]:
            start_ns, end_ns = stretches.pop()
            stretches.append((start_ns, max(end_ns, each.ended_ns)))
        else:
            stretches.append((each.began_ns, each.ended_ns))
    starts, ends = ([each[side] for each in stretches] for side in (0, 1))
    return Pauses(np.array(starts, dtype=np.int64), np.array(ends, dtype=np.int64))
