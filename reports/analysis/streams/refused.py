"""Ranges of a flow that its receiver refused, because their packets ended too far ahead.

    consumed   |- - - - - half a term - - - - -|
    packet                            | DATA |PAD - -|        refused; requested by a NAK later

No link lost these bytes. A capture shows the packet, and how far the receiver had consumed when it
passed. Near the sender, the receiver may have consumed more until the packet reached it.
"""

from typing import Any

import numpy as np

from windtunnel.reports.analysis.reading.stream_events import Events


class RefusedRanges:
    """The ranges of one flow in packets that its receiver refuses."""

    def __init__(self) -> None:
        self.packet_count = 0
        self._starts = np.zeros(0, dtype=np.int64)
        self._ends = np.zeros(0, dtype=np.int64)

    def feed(self, events: Events, is_refused: Any) -> None:
        """Add the flow's refused frames, given as a mask. All frames of a packet are in one
        batch.
        """
        if not is_refused.any():
            return
        self.packet_count += len(np.unique(events.packets[is_refused]))
        starts = np.append(self._starts, events.starts[is_refused])
        ends = np.append(self._ends, events.ends[is_refused])
        order = np.argsort(starts, kind="stable")
        starts, reached = starts[order], np.maximum.accumulate(ends[order])
        is_first = np.append(True, starts[1:] > reached[:-1])
        self._starts, self._ends = starts[is_first], reached[np.append(is_first[1:], True)]

    def bytes_in(self, start: int, end: int) -> int:
        """Return how many bytes of a range of positions were in refused packets."""
        shared = np.minimum(self._ends, end) - np.maximum(self._starts, start)
        return int(np.maximum(shared, 0).sum())
