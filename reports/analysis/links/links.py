"""What happened to a stream between two vantage points: losses, copies, order, time on the way.

    point p   s1    s2    s3    s4         sends, in capture order
               |      \\    x     | \\
    point q    |       \\        |  |       arrivals
              a1        \\      a4 a4'     s2 late, s3 lost, s4 copied on this link
                         a2

Points are put in order by their own frames: what travels with the data comes later at the further
point, what travels against it earlier, whatever the clocks say. The clocks' offset is half the
difference of the shortest ways; its error is half their sum, for no way is shorter than nothing.
"""

from collections import Counter
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from windtunnel.reports.analysis.links.link_matching import LOST, Hop

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
        ("reordered_frames", pa.int64()),
        ("reordered_extent_max", pa.int64()),
        ("ambiguous_frames", pa.int64()),
        ("control_sent", pa.int64()),
        ("control_lost", pa.int64()),
        ("delay_min_ns", pa.int64()),
        ("delay_median_ns", pa.int64()),
        ("delay_p99_ns", pa.int64()),
        ("delay_max_ns", pa.int64()),
        ("clock_offset_ns", pa.int64()),
        ("clock_error_ns", pa.int64()),
        ("is_corrected", pa.bool_()),
    ]
)
"""Frames are DATA and PAD, each passage of each. `unsent`: they arrived and never passed the point
before, as forged ones. `ambiguous`: which of several passages arrived is a choice. `control`: NAKs
and status messages, which go the other way. `clock_offset_ns`: how far the further clock is ahead,
null where nothing comes back; delays are corrected by it only if it is more than its error, for
less is no proof that the clocks differ. Percentiles are exact to 2 %."""

_BUCKETS_A_DOUBLING = 32


class Clock(NamedTuple):
    """How far the clock of one point is ahead of another's, and how well that is known."""

    offset_ns: int | None
    error_ns: int | None
    two_way_ns: int | None
    "Shortest way there and back: positive if the second point is the further one."

    @property
    def correction_ns(self) -> int:
        """What is taken off times of the further point."""
        if self.offset_ns is None or self.error_ns is None:
            return 0
        return self.offset_ns if abs(self.offset_ns) > self.error_ns else 0


def clock_between(with_data: Any, against: Any) -> Clock:
    """The clock of a further point against a nearer one's.

    Shapes:  int64[n] each: time at the further point less time at the nearer one, of frames that go
             with the data and of frames that go against it
    """
    if not len(with_data) or not len(against):
        return Clock(None, None, None)
    there, back = int(with_data.min()), -int(against.max())
    return Clock((there - back) // 2, abs(there + back + 1) // 2, there + back)


class DelayHistogram:
    """Delays by size, so that their percentiles are known without keeping them."""

    def __init__(self) -> None:
        self._counts = np.zeros(64 * _BUCKETS_A_DOUBLING, dtype=np.int64)
        self.least: int | None = None
        self.most: int | None = None

    def add(self, delays_ns: Any) -> None:
        if not len(delays_ns):
            return
        low, high = int(delays_ns.min()), int(delays_ns.max())
        self.least = low if self.least is None else min(self.least, low)
        self.most = high if self.most is None else max(self.most, high)
        sizes = np.log2(np.maximum(delays_ns, 1)) * _BUCKETS_A_DOUBLING
        self._counts += np.bincount(sizes.astype(np.int64), minlength=len(self._counts))

    def at(self, share: float) -> int | None:
        """The delay that this share does not exceed; None of nothing."""
        total = int(self._counts.sum())
        if not total or self.least is None or self.most is None:
            return None
        index = int(np.searchsorted(np.cumsum(self._counts), max(1, round(share * total))))
        middle = 2 ** ((index + 0.5) / _BUCKETS_A_DOUBLING)
        return int(min(max(middle, self.least), self.most))


class LinkSum:
    """The row of one link of one flow, from all its hops."""

    def __init__(self, clock: Clock) -> None:
        self.clock = clock
        self._control_sent = 0
        self._control_left: Counter[tuple[int, ...]] = Counter()
        self._counts = dict.fromkeys(
            ("sent", "arrived", "lost", "copied", "unsent", "reordered", "ambiguous"), 0
        )
        self._lost_bytes = self._extent_max = 0
        self._delays = DelayHistogram()

    def add(self, hop: Hop) -> None:
        """Take in what happened to some frames."""
        is_lost = hop.arrival_of == LOST
        counts = self._counts
        counts["sent"] += len(hop.arrival_of)
        counts["lost"] += int(is_lost.sum())
        counts["arrived"] += len(hop.send_of)
        counts["copied"] += int(hop.is_copy.sum())
        counts["unsent"] += int((hop.send_of == LOST).sum())
        counts["reordered"] += int((hop.extents > 0).sum())
        counts["ambiguous"] += int(hop.is_ambiguous.sum())
        self._lost_bytes += int(hop.lengths[is_lost].sum())
        self._extent_max = max(self._extent_max, int(hop.extents.max(initial=0)))
        self._delays.add(hop.delays_ns[~is_lost])

    def add_control(self, frames: list[tuple[int, ...]], counts: list[int]) -> None:
        """Take in how often frames against the data were seen, as less than none where they end."""
        left = self._control_left
        for frame, count in zip(frames, counts, strict=True):
            self._control_sent += max(count, 0)
            left[frame] += count
            if not left[frame]:
                del left[frame]

    def row(self) -> dict[str, Any]:
        """The columns of LINKS behind the key."""
        return {
            **{f"{name}_frames": count for name, count in self._counts.items()},
            "lost_bytes": self._lost_bytes,
            "reordered_extent_max": self._extent_max,
            "control_sent": self._control_sent,
            "control_lost": sum(max(count, 0) for count in self._control_left.values()),
            "delay_min_ns": self._delays.least,
            "delay_median_ns": self._delays.at(0.5),
            "delay_p99_ns": self._delays.at(0.99),
            "delay_max_ns": self._delays.most,
            "clock_offset_ns": self.clock.offset_ns,
            "clock_error_ns": self.clock.error_ns,
            "is_corrected": self.clock.correction_ns != 0,
        }
