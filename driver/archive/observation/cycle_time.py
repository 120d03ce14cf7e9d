"""Counters for the duration of agents' duty cycles."""

from windtunnel.driver.archive.observation.archive_counters import (
    CYCLES_EXCEEDED,
    MAX_CYCLE_TIME,
    ArchiveCounters,
)
from windtunnel.driver.channel.uri_value import format_duration_ns


class CycleTime:
    """Counters of an agent: its longest duty cycle, and the number of its duty cycles above a
    threshold.
    """

    def __init__(self, counters: ArchiveCounters, agent: str, threshold_ns: int, mode: str) -> None:
        self._threshold_ns = threshold_ns
        self._last_ns: int | None = None
        self._max = counters.add(MAX_CYCLE_TIME, f"{agent} max cycle time in ns: {mode}")
        self._exceeded = counters.add(
            CYCLES_EXCEEDED,
            f"{agent} work cycle time exceeded count: "
            f"threshold={format_duration_ns(threshold_ns)} {mode}",
        )

    def on_turn(self, now_ns: int) -> None:
        """Update the counters with the duration of the previous duty cycle. Call this at the start
        of each duty cycle.
        """
        last_ns, self._last_ns = self._last_ns, now_ns
        if last_ns is None:
            return
        duration_ns = now_ns - last_ns
        if duration_ns > self._max.get():
            self._max.set(duration_ns)
        if duration_ns > self._threshold_ns:
            self._exceeded.increment()
