"""A stream's loss, duplicates, reordering and delay on the link between two vantage points.

    point p   s1    s2    s3    s4         sends, in capture order
               |      \\    x     | \\
    point q    |       \\        |  |       arrivals
              a1        \\      a4 a4'     s2 late, s3 lost, s4 copied on this link
                         a2

The order of the vantage points is derived from the frames: data arrives later at the farther one,
and control frames earlier, regardless of the clocks. The clock offset is half the difference
between the two shortest transit times. Its error is half their sum, because no transit time is
negative.
"""

from collections import Counter
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from windtunnel.reports.analysis.kernels import repair_kernel as kernel
from windtunnel.reports.analysis.links.link_matching import LOST, LinkMatch

LINKS = pa.schema(
    [
        ("session_id", pa.int32()),
        ("stream_id", pa.int32()),
        ("destination", pa.string()),
        ("from_point", pa.string()),
        ("to_point", pa.string()),
        ("sent_frames", pa.int64()),
        ("arrived_frames", pa.int64()),
        ("lost_frames", pa.int64()),
        ("lost_bytes", pa.int64()),
        ("copied_frames", pa.int64()),
        ("unsent_frames", pa.int64()),
        ("unobserved_frames", pa.int64()),
        ("reordered_frames", pa.int64()),
        ("reordered_extent_max", pa.int64()),
        ("ambiguous_frames", pa.int64()),
        ("control_sent", pa.int64()),
        ("control_lost", pa.int64()),
        ("status_lost", pa.int64()),
        ("lost_limits", pa.list_(pa.int64())),
        ("delay_min_ns", pa.int64()),
        ("delay_median_ns", pa.int64()),
        ("delay_p99_ns", pa.int64()),
        ("delay_max_ns", pa.int64()),
        ("clock_offset_ns", pa.int64()),
        ("clock_error_ns", pa.int64()),
        ("is_corrected", pa.bool_()),
    ]
)
"""Columns of the links table. Frames are DATA and PAD, and each transmission is counted. `unsent`:
frames that arrived but were not seen at the previous vantage point, such as forged frames.
`unobserved`: frames seen at one vantage point while the other one captured nothing yet, or nothing
any more, so it is not known whether they were lost or forged. They are not counted as sent.
`ambiguous`: arrivals that match more than one transmission. `control`: NAKs and status messages,
which travel in the opposite direction. `lost_limits`: the limits that the lost status messages
would have set, in ascending order. `clock_offset_ns`: how far the clock of `to_point` is ahead;
null without control frames. Delays are corrected by the offset only if it exceeds its error,
because a smaller offset does not prove that the clocks differ. Percentiles are exact to 2 %.
"""

_COUNTED = (
    *("sent", "arrived", "lost", "copied"),
    *("unsent", "unobserved", "reordered", "ambiguous"),
)
_BUCKETS_A_DOUBLING = 32


class Clock(NamedTuple):
    """The clock offset between two vantage points, and its maximum error."""

    offset_ns: int | None
    error_ns: int | None
    two_way_ns: int | None
    "Shortest round-trip time. It is positive if the second vantage point is the farther one."

    @property
    def correction_ns(self) -> int:
        """The correction to subtract from times measured at the farther vantage point."""
        if self.offset_ns is None or self.error_ns is None:
            return 0
        return self.offset_ns if abs(self.offset_ns) > self.error_ns else 0


def clock_between(with_data: Any, against: Any) -> Clock:
    """Return the clock offset of the farther vantage point relative to the nearer one.

    Shapes:  int64[n] each: time at the farther vantage point minus time at the nearer one, for
             frames that travel with the data and for frames that travel against it
    """
    if not len(with_data) or not len(against):
        return Clock(None, None, None)
    there, back = int(with_data.min()), -int(against.max())
    return Clock((there - back) // 2, abs(there + back + 1) // 2, there + back)


class DelayHistogram:
    """Logarithmic histogram of delays. It gives percentiles in constant memory."""

    def __init__(self) -> None:
        self._counts = np.zeros(64 * _BUCKETS_A_DOUBLING, dtype=np.int64)
        self.minimum: int | None = None
        self.maximum: int | None = None

    def add(self, delays_ns: Any) -> None:
        if not len(delays_ns):
            return
        low, high = int(delays_ns.min()), int(delays_ns.max())
        self.minimum = low if self.minimum is None else min(self.minimum, low)
        self.maximum = high if self.maximum is None else max(self.maximum, high)
        sizes = np.log2(np.maximum(delays_ns, 1)) * _BUCKETS_A_DOUBLING
        self._counts += np.bincount(sizes.astype(np.int64), minlength=len(self._counts))

    def at(self, share: float) -> int | None:
        """Return a quantile of the delays, or None if there are no delays."""
        total = int(self._counts.sum())
        if not total or self.minimum is None or self.maximum is None:
            return None
        index = int(np.searchsorted(np.cumsum(self._counts), max(1, round(share * total))))
        middle = 2 ** ((index + 0.5) / _BUCKETS_A_DOUBLING)
        return int(min(max(middle, self.minimum), self.maximum))


class LinkTotals:
    """Totals for one flow on one link."""

    def __init__(self, clock: Clock) -> None:
        self.clock = clock
        self._control_sent = 0
        self._control_balance: Counter[tuple[int, ...]] = Counter()
        self._counts = dict.fromkeys(_COUNTED, 0)
        self._lost_bytes = self._extent_max = 0
        self._delays = DelayHistogram()

    def add(self, matched: LinkMatch) -> None:
        """Add the result of matching a group of frames."""
        is_lost = (matched.arrival_of == LOST) & ~matched.is_send_unobserved
        is_unsent = (matched.send_of == LOST) & ~matched.is_arrival_unobserved
        counts = self._counts
        counts["sent"] += int((~matched.is_send_unobserved).sum())
        counts["lost"] += int(is_lost.sum())
        counts["arrived"] += int((~matched.is_arrival_unobserved).sum())
        counts["copied"] += int(matched.is_copy.sum())
        counts["unsent"] += int(is_unsent.sum())
        counts["unobserved"] += int(
            matched.is_send_unobserved.sum() + matched.is_arrival_unobserved.sum()
        )
        counts["reordered"] += int((matched.extents > 0).sum())
        counts["ambiguous"] += int(matched.is_ambiguous.sum())
        self._lost_bytes += int(matched.lengths[is_lost].sum())
        self._extent_max = max(self._extent_max, int(matched.extents.max(initial=0)))
        self._delays.add(matched.delays_ns[matched.arrival_of != LOST])

    def add_control(self, frames: list[tuple[int, ...]], counts: list[int]) -> None:
        """Add numbers of control frames: positive at the farther vantage point, which sends them,
        and negative at the nearer one, which receives them.
        """
        balance = self._control_balance
        for frame, count in zip(frames, counts, strict=True):
            self._control_sent += max(count, 0)
            balance[frame] += count
            if not balance[frame]:
                del balance[frame]

    def row(self) -> dict[str, Any]:
        """Return the totals as a row of the table LINKS, without its key columns."""
        lost = [(frame, count) for frame, count in self._control_balance.items() if count > 0]
        lost_status = [(frame, count) for frame, count in lost if frame[0] == kernel.STATUS]
        return {
            **{f"{name}_frames": count for name, count in self._counts.items()},
            "lost_bytes": self._lost_bytes,
            "reordered_extent_max": self._extent_max,
            "control_sent": self._control_sent,
            "control_lost": sum(count for _, count in lost),
            "status_lost": sum(count for _, count in lost_status),
            "lost_limits": sorted(
                {position + length for (_, _, position, length), _ in lost_status}
            ),
            "delay_min_ns": self._delays.minimum,
            "delay_median_ns": self._delays.at(0.5),
            "delay_p99_ns": self._delays.at(0.99),
            "delay_max_ns": self._delays.maximum,
            "clock_offset_ns": self.clock.offset_ns,
            "clock_error_ns": self.clock.error_ns,
            "is_corrected": self.clock.correction_ns != 0,
        }
