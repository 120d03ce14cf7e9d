"""Samples of a stream's positions over time, few enough for a chart.

    events     1 2 3 4 5 6 7 8 9 ...
    samples    x   x   x   x   x      every second, every fourth, ... event: a few thousand

The number of samples does not grow with the capture length. Which events are sampled depends only
on their count, not on the batches.
"""

from collections.abc import Iterator
from typing import Any

import numpy as np
import pyarrow as pa

from windtunnel.reports.analysis.kernels import repair_kernel as kernel
from windtunnel.reports.analysis.reading.stream_events import Events
from windtunnel.reports.analysis.streams.repair_tables import KEY

SAMPLES_MAX = 4_096
POSITIONS = pa.schema(
    [
        *KEY,
        ("time_ns", pa.int64()),
        ("high_position", pa.int64()),
        ("rebuilt_position", pa.int64()),
        ("consumed_position", pa.int64()),
        ("limit", pa.int64()),
    ]
)
"""Columns of the table `positions`. `high_position` and `rebuilt_position`: rcv-hwm and rcv-pos of
a receiver at this vantage point; `consumed_position` and `limit`: from the last status message,
null before the first one. Every n-th event is sampled, and the last event.
"""

_SAMPLE = np.dtype([(name, "<i8") for name in ("time", "high", "rebuilt", "consumed", "limit")])
_UNKNOWN = np.iinfo(np.int64).min


class PositionSamples:
    """Samples of one flow's positions: captured, contiguous, consumed, and allowed by the
    receiver's window.
    """

    def __init__(self) -> None:
        self._kept = np.zeros(0, dtype=_SAMPLE)
        self._numbers = np.zeros(0, dtype=np.int64)
        self._last = np.zeros(0, dtype=_SAMPLE)
        self._count, self._step = 0, 1
        self._status = (_UNKNOWN, _UNKNOWN)

    def feed(self, events: Events, outcomes: Any, flow: int) -> None:
        """Take samples from a flow's events and their outcomes."""
        mine = np.flatnonzero(events.flow_of == flow)
        if not len(mine):
            return
        kept = np.arange(-self._count % self._step, len(mine), self._step)
        at = np.append(kept, len(mine) - 1)
        samples = np.zeros(len(at), dtype=_SAMPLE)
        samples["time"] = events.times_ns[mine[at]]
        samples["high"] = outcomes["high"][mine[at]]
        samples["rebuilt"] = outcomes["rebuilt"][mine[at]]
        status = np.flatnonzero(events.kinds[mine] == kernel.STATUS)
        status_count = np.searchsorted(status, at, side="right")
        for which, (name, values) in enumerate(
            (("consumed", events.starts), ("limit", events.ends))
        ):
            # A late status message does not lower the limit.
            highest = np.maximum.accumulate(np.append(self._status[which], values[mine[status]]))
            samples[name] = highest[status_count]
        self._status = int(samples["consumed"][-1]), int(samples["limit"][-1])
        self._last = samples[-1:]
        self._kept = np.concatenate([self._kept, samples[:-1]])
        self._numbers = np.concatenate([self._numbers, self._count + kept])
        self._count += len(mine)
        while len(self._kept) > SAMPLES_MAX:
            self._step *= 2
            keep = self._numbers % self._step == 0
            self._kept, self._numbers = self._kept[keep], self._numbers[keep]

    def rows(self) -> Iterator[dict[str, Any]]:
        """Yield the flow's rows of the table POSITIONS, without key columns."""
        samples = self._kept
        if self._count and self._numbers[-1] != self._count - 1:
            samples = np.concatenate([samples, self._last])
        for each in samples.tolist():
            time_ns, high, rebuilt, consumed, limit = each
            yield {
                "time_ns": time_ns,
                "high_position": high,
                "rebuilt_position": rebuilt,
                "consumed_position": None if consumed == _UNKNOWN else consumed,
                "limit": None if limit == _UNKNOWN else limit,
            }
