"""Time ranges in which a host's driver was paused or killed by a host event.

    interval   |<-------- 200 ms -------->|
    actual     |<- 80 ms ->|   paused   |<- 120 ms ->|        on time

Paused time does not count towards a driver's timing requirements. A killed driver counts as paused
until its restart.
"""

from collections.abc import Iterable
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from windtunnel.harness.artifact.host.host_event import AppliedEvent
from windtunnel.harness.dissect.frames.observed_flows import END_OF_TIME_NS
from windtunnel.harness.verdict.core.evidence import Evidence
from windtunnel.harness.verdict.core.finding import Missing
from windtunnel.harness.verdict.core.wire import Wire

DRIVER = "driver"
KILL = "kill"
NEVER_NS = END_OF_TIME_NS // 2
"""The end of a time range that does not end. Durations can be added to it."""


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

    def overlaps(self, from_ns: int, until_ns: int) -> bool:
        """Return whether the driver was paused at some time of a range."""
        return bool(((self.starts_ns < until_ns) & (self.ends_ns > from_ns)).any())

    def with_ranges(self, other: "Pauses", more_ns: int = 0) -> "Pauses":
        """Return these time ranges and other ones, each of which lasts `more_ns` longer."""
        longer = ((start_ns, end_ns + more_ns) for start_ns, end_ns in other._each())
        return disjoint([*self._each(), *longer])

    def with_backlogs(self) -> "Pauses":
        """Return the pauses, each twice as long: a driver handles what has arrived in order."""
        return disjoint((start_ns, 2 * end_ns - start_ns) for start_ns, end_ns in self._each())

    def _each(self) -> list[tuple[int, int]]:
        return list(zip(self.starts_ns.tolist(), self.ends_ns.tolist(), strict=True))


def as_read(wire: Wire, pauses: Pauses) -> Wire:
    """Return a stream with the times at which the receiver's driver read what arrived: if that was
    in a pause, at its end.
    """
    if len(pauses.starts_ns) == 0:
        return wire
    arrived, beats = wire.arrived.frames.copy(), wire.heartbeats_arrived.copy()
    for frames in (arrived, beats):
        frames["time_ns"] = pauses.due_ns(frames["time_ns"].astype(np.int64), 1) - 1
    return replace(
        wire,
        arrived=replace(wire.arrived, frames=arrived),
        heartbeats_arrived=beats,
        heartbeat_times_ns=beats["time_ns"].astype(np.int64),
    )


def pauses_of(evidence: Evidence, host: str) -> Pauses | Missing:
    """Return the time ranges in which a host's driver was paused or killed by host events."""
    happened = evidence.host_events
    if isinstance(happened, Missing):
        return happened
    own = [each for each in happened if each.host == host and DRIVER in each.processes]
    return disjoint((each.began_ns, each.ended_ns) for each in own)


def disjoint(ranges: Iterable[tuple[int, int]]) -> Pauses:
    """Return time ranges in order. Those that overlap are joined, and empty ones are left out."""
    stretches: list[tuple[int, int]] = []
    for start_ns, end_ns in sorted(ranges):
        if end_ns <= start_ns:
            continue
        if stretches and start_ns <= stretches[-1][1]:
            stretches[-1] = (stretches[-1][0], max(end_ns, stretches[-1][1]))
        else:
            stretches.append((start_ns, end_ns))
    starts, ends = ([each[side] for each in stretches] for side in (0, 1))
    return Pauses(np.array(starts, dtype=np.int64), np.array(ends, dtype=np.int64))


def kills_of(evidence: Evidence, host: str, process: str = DRIVER) -> list[AppliedEvent]:
    """Return the events that killed a host's driver, or another process with the given role."""
    happened = evidence.host_events
    own = [] if isinstance(happened, Missing) else [each for each in happened if each.host == host]
    return [each for each in own if each.action == KILL and process in each.processes]


def counted_since_ns(evidence: Evidence, host: str) -> int:
    """Return the time since which a host's driver has counted what its counters contain: when it
    was last restarted after a kill, or 0. The counters of a killed driver are lost.
    """
    return max((each.ended_ns for each in kills_of(evidence, host)), default=0)
