"""How far a stream was over time, as samples: enough for a chart, however long the capture is.

    events     1 2 3 4 5 6 7 8 9 ...
    samples    x   x   x   x   x      every second, every fourth, ... : a few thousand

Which events are kept depends only on how many there are, not on how they came in batches.
"""

from collections.abc import Iterator
from typing import Any

import numpy as np
import pyarrow as pa

from windtunnel.reports.analysis.kernels import repair_kernel as kernel
from windtunnel.reports.analysis.reading.stream_events import Events
from windtunnel.reports.analysis.streams.repair import KEY

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
"""What a receiver here would call rcv-hwm and rcv-pos, and what the last status message told; null
before the first. A sample is taken of every n-th event, and of the last."""

_SAMPLE = np.dtype([(name, "<i8") for name in ("time", "high", "rebuilt", "consumed", "limit")])
_NOT_TOLD = np.iinfo(np.int64).min


class PositionSamples:
    """Samples of one flow."""

    def __init__(self) -> None:
        self._kept = np.zeros(0, dtype=_SAMPLE)
        self._numbers = np.zeros(0, dtype=np.int64)
        self._last = np.zeros(0, dtype=_SAMPLE)
        self._count, self._step = 0, 1
        self._status = (_NOT_TOLD, _NOT_TOLD)

    def feed(self, events: Events, told: Any, flow: int) -> None:
        """Take in events and what was told of them."""
        mine = np.flatnonzero(events.flow_of == flow)
        if not len(mine):
            return
        kept = np.arange(-self._count % self._step, len(mine), self._step)
        at = np.append(kept, len(mine) - 1)
        made = np.zeros(len(at), dtype=_SAMPLE)
        made["time"] = events.times_ns[mine[at]]
        made["high"], made["rebuilt"] = told["high"][mine[at]], told["rebuilt"][mine[at]]
        heard = np.flatnonzero(events.kinds[mine] == kernel.STATUS)
        heard_by = np.searchsorted(heard, at, side="right")
        for which, (name, values) in enumerate(
            (("consumed", events.starts), ("limit", events.ends))
        ):
            # Late status messages take nothing back.
            most = np.maximum.accumulate(np.append(self._status[which], values[mine[heard]]))
            made[name] = most[heard_by]
        self._status = int(made["consumed"][-1]), int(made["limit"][-1])
        self._last = made[-1:]
        self._kept = np.concatenate([self._kept, made[:-1]])
        self._numbers = np.concatenate([self._numbers, self._count + kept])
        self._count += len(mine)
        while len(self._kept) > SAMPLES_MAX:
            self._step *= 2
            keep = self._numbers % self._step == 0
            self._kept, self._numbers = self._kept[keep], self._numbers[keep]

    def rows(self) -> Iterator[dict[str, Any]]:
        """The columns of POSITIONS behind the key."""
        samples = self._kept
        if self._count and self._numbers[-1] != self._count - 1:
            samples = np.concatenate([samples, self._last])
        for each in samples.tolist():
            time_ns, high, rebuilt, consumed, limit = each
            yield {
                "time_ns": time_ns,
                "high_position": high,
                "rebuilt_position": rebuilt,
                "consumed_position": None if consumed == _NOT_TOLD else consumed,
                "limit": None if limit == _NOT_TOLD else limit,
            }
