"""Measures how long a driver waits for a processor, from the kernel's statistics.

    /proc/<pid>/task/<tid>/schedstat    ns running, ns runnable and waiting, time slices
    <control group>/cpu.stat            time throttled by a quota
    /proc/stat                          steal ticks of each processor

A driver that has ended keeps its last values. A value that the kernel does not provide is UNKNOWN.
Source: kernel documentation, sched-stats, cgroup-v2 and proc.
"""

from __future__ import annotations

import os
import time
from pathlib import Path

import numpy as np

from windtunnel.harness.artifact.host.pressure import COLUMNS, UNKNOWN, Pressure

PROC = Path("/proc")
GROUPS = Path("/sys/fs/cgroup")
_CPU_STAT = "cpu.stat"
_TICK_NS = 1_000_000_000 // os.sysconf("SC_CLK_TCK")
_STEAL = 8
"""Index of the steal time in a processor's line of /proc/stat."""
_THROTTLED = {"throttled_usec": 1_000, "throttled_time": 1}
"""Keys of the throttled time in control groups v2 and v1, with their units in nanoseconds."""


class PressureGauge:
    """Records how long a driver runs and waits for a processor, with one row per call of `poll`.

    `tick` must be called for each sample in between.
    """

    def __init__(self, pid: int, interval_ns: int) -> None:
        self._pid = pid
        self._interval_ns = interval_ns
        self._rows: list[tuple[int, ...]] = []
        self._run_ns = self._wait_ns = 0
        self._waits_ns: dict[int, int] = {}
        """Waiting time of each thread at the last `poll`."""
        self._stolen_ns = 0
        self._steal_ticks = steal_ticks()
        self._throttle = _throttle_file(pid)
        self._ticked_ns = time.monotonic_ns()
        self._longest_gap_ns = 0

    def tick(self) -> None:
        """Record that a sample was taken, and update the longest interval between consecutive
        samples.
        """
        now_ns = time.monotonic_ns()
        self._longest_gap_ns = max(self._longest_gap_ns, now_ns - self._ticked_ns)
        self._ticked_ns = now_ns

    def poll(self, now_ns: int) -> None:
        """Append a row with the driver's current running, waiting, throttled and steal times."""
        threads = thread_times(self._pid)
        if threads:
            self._run_ns = sum(run_ns for run_ns, _ in threads.values())
            self._wait_ns += self._longest_wait_ns(
                {tid: wait for tid, (_, wait) in threads.items()}
            )
        throttled_ns = parse_throttled(_read(self._throttle)) if self._throttle else UNKNOWN
        row = (now_ns, self._run_ns, self._wait_ns, throttled_ns, self._longest_gap_ns)
        self._rows.append((*row, self._all_stolen_ns()))
        self._longest_gap_ns = 0

    def _longest_wait_ns(self, waits_ns: dict[int, int]) -> int:
        """Return the longest time that any thread of the driver has waited for a processor since
        the last call.

        This is not the growth of the maximum over all threads: a thread that waited long at the
        start and sleeps now would hide the waiting time of others.
        """
        grown_ns = [wait_ns - self._waits_ns.get(tid, 0) for tid, wait_ns in waits_ns.items()]
        self._waits_ns = waits_ns
        return max(0, *grown_ns)

    def _all_stolen_ns(self) -> int:
        """Return the accumulated steal time of the most affected processor."""
        ticks = steal_ticks()
        if not ticks:
            return UNKNOWN
        before, self._steal_ticks = self._steal_ticks, ticks
        self._stolen_ns += _TICK_NS * max(
            now - then for then, now in zip(before or ticks, ticks, strict=False)
        )
        return self._stolen_ns

    def pressure(self) -> Pressure:
        """Return all rows recorded so far, as a `Pressure` document."""
        rows = np.array(self._rows, dtype=np.int64).reshape(-1, len(COLUMNS))
        return Pressure(self._interval_ns, rows)


def thread_times(pid: int) -> dict[int, tuple[int, int]]:
    """Return the running and waiting time of each thread in ns, or an empty dict if unknown."""
    folder = PROC / str(pid) / "task"
    try:
        names = os.listdir(folder)
    except OSError:
        return {}
    times = {}
    for name in names:
        fields = _read(folder / name / "schedstat").split()
        if len(fields) >= 2:
            times[int(name)] = int(fields[0]), int(fields[1])
    return times


def steal_ticks() -> list[int]:
    """Return the steal ticks of each processor, or an empty list if unknown."""
    lines = (line.split() for line in _read(PROC / "stat").splitlines())
    return [
        int(fields[_STEAL])
        for fields in lines
        if len(fields) > _STEAL and fields[0].startswith("cpu") and fields[0] != "cpu"
    ]


def parse_throttled(text: str) -> int:
    """Parse the throttled time from a cpu.stat file, in ns. Returns UNKNOWN if it is missing."""
    for line in text.splitlines():
        name, _, value = line.partition(" ")
        if name in _THROTTLED and value.strip().isdecimal():
            return int(value) * _THROTTLED[name]
    return UNKNOWN


def _throttle_file(pid: int) -> Path | None:
    """Return the cpu.stat file of a process's control group, v1 or v2, or None if there is none."""
    for line in _read(PROC / str(pid) / "cgroup").splitlines():
        _, controllers, path = [*line.split(":", 2), "", ""][:3]
        names = controllers.split(",")
        roots = [GROUPS] if not controllers else [GROUPS / controllers, GROUPS / "cpu"]
        if controllers and "cpu" not in names:
            continue
        for root in roots:
            for place in (root / path.lstrip("/"), root):
                if (place / _CPU_STAT).is_file():
                    return place / _CPU_STAT
    return None


def _read(path: Path) -> str:
    try:
        return path.read_text()
    except OSError:
        return ""
