"""The data series for a run's charts. All times are epoch nanoseconds of one clock."""

from dataclasses import dataclass, field, replace

import numpy as np

from windtunnel.reports.charts.counter_lines import Line
from windtunnel.reports.charts.marks import Marks


@dataclass
class StreamSeries:
    """One stream's chart data: lines and marks over time."""

    traffic_id: str
    stream_id: int
    term_length: int
    initial_term_id: int | None
    reliable: bool
    lines: list[Line] = field(default_factory=list)
    distances: list[Line] = field(default_factory=list)
    marks: list[Marks] = field(default_factory=list)
    observed: bool = False

    def count(self, kind: str) -> int:
        """Return the number of the stream's events of one kind."""
        return sum(len(each.time_ns) for each in self.marks if each.kind == kind)

    @property
    def delivered_bytes(self) -> int:
        """Number of log bytes delivered to the subscriber: the last sub-pos minus the bytes of
        filled gaps.
        """
        consumed = max(
            (int(line.value[-1]) for line in self.lines if line.name == "sub-pos"), default=0
        )
        filled = sum(int(each.length.sum()) for each in self.marks if each.kind == "gap fill")
        return max(0, consumed - filled)


@dataclass
class RunSeries:
    """The chart data of all of a run's streams, with the times of one clock."""

    streams: list[StreamSeries] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    "Notes about files that could not be read, one line each."

    @property
    def start_ns(self) -> int:
        """The earliest time of any line or mark, or 0 if there are none."""
        return min(self._ends(0), default=0)

    @property
    def end_ns(self) -> int:
        """The latest time of any line or mark, or 0 if there are none."""
        return max(self._ends(-1), default=0)

    @property
    def active_ns(self) -> tuple[int, int]:
        """The times of the first and last activity, or those of the entire run if there was no
        activity.
        """
        active = [
            line.time_ns[np.flatnonzero(np.diff(line.value)) + 1]
            for stream in self.streams
            for line in stream.lines
            if line.name in ("snd-pos", "sub-pos")
        ]
        active += [marks.time_ns for stream in self.streams for marks in stream.marks]
        times = np.concatenate([np.empty(0, np.int64), *active])
        return (int(times.min()), int(times.max())) if len(times) else (self.start_ns, self.end_ns)

    @property
    def of_traffic(self) -> "RunSeries":
        """The chart data without that of observed streams."""
        return replace(self, streams=[each for each in self.streams if not each.observed])

    def count(self, kind: str) -> int:
        """Return the number of events of one kind in all streams.

        A frame to a multicast group belongs to each receiver's series, but is counted once.
        """
        if kind != "retransmit":
            return sum(stream.count(kind) for stream in self.streams)
        sent = {
            (stream.stream_id, *event)
            for stream in self.streams
            for each in stream.marks
            if each.kind == kind
            for event in zip(
                each.time_ns.tolist(), each.position.tolist(), each.detail.tolist(), strict=True
            )
        }
        return len(sent)

    def _ends(self, index: int) -> list[int]:
        times = [
            each
            for stream in self.streams
            for each in (
                *(line.time_ns for line in stream.lines),
                *(marks.time_ns for marks in stream.marks),
            )
        ]
        return [int(each[index]) for each in times if len(each)]
