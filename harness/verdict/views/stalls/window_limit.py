"""Whether a receiver's window limited the rate of a stream.

    sender     |===== window =====|                  |===== window =====|
    receiver         |- SM for it -----------------> |
               |<----------- round trip ------------>|

A sender has at most one window in flight in a round trip. A stream that had most of a window in
flight on average was limited by it, whatever its sender and receiver could have done.
"""

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from windtunnel.harness.dissect.frames.flow import positions
from windtunnel.harness.dissect.frames.frames import Frames
from windtunnel.harness.verdict.core.wire import Wire, status_messages
from windtunnel.harness.verdict.views.reader_gaps import ReaderGaps

NS_PER_S = 1_000_000_000
IN_FLIGHT_MIN = 0.7
"""Share of the window that is in flight on average if the window limits the rate. A receiver sends
a status message for each quarter of its window, so up to a quarter is acknowledged late."""
USABLE_SHARE = 0.75
"""Share of the window that may be in flight although a status message is due."""


@dataclass(frozen=True)
class WindowLimit:
    """The window of a stream that it limited, and the round trip for which one window lasts."""

    window_bytes: int
    round_trip_ns: int
    stream_bytes_per_s: float

    @property
    def bytes_per_s(self) -> float:
        """The greatest possible rate, in bytes of the stream."""
        return self.window_bytes * NS_PER_S / self.round_trip_ns

    @property
    def in_flight_bytes(self) -> int:
        """The average number of bytes in flight."""
        return round(self.stream_bytes_per_s * self.round_trip_ns / NS_PER_S)

    @property
    def sufficient_bytes(self) -> int:
        """The smallest window for which a steady stream of this rate never waits."""
        return math.ceil(self.in_flight_bytes / USABLE_SHARE)


def window_limit(wire: Wire, gaps: ReaderGaps, stream_bytes_per_s: float) -> WindowLimit | None:
    """Return the limit of a stream with this rate, or None if its window did not limit it."""
    there_ns, back_ns = gaps.shortest_way_ns(), shortest_way_back_ns(wire)
    if back_ns is None or there_ns == 0:
        return None
    limit = WindowLimit(wire.max_window_bytes(), there_ns + back_ns, stream_bytes_per_s)
    if limit.round_trip_ns <= 0 or limit.window_bytes <= 0:
        return None
    return limit if stream_bytes_per_s >= IN_FLIGHT_MIN * limit.bytes_per_s else None


def shortest_way_back_ns(wire: Wire) -> int | None:
    """Return the shortest time that a status message took, or None if none arrived."""
    sent, sent_ns = _first_times(wire, wire.feedback_sent)
    arrived, arrived_ns = _first_times(wire, wire.feedback_arrived)
    _, at_sent, at_arrived = np.intersect1d(sent, arrived, return_indices=True)
    if len(at_sent) == 0:
        return None
    return int((arrived_ns[at_arrived] - sent_ns[at_sent]).min())


def _first_times(wire: Wire, frames: Frames) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return the different positions of the status messages, and when each first occurred."""
    messages = status_messages(frames)
    consumed = positions(messages, wire.facts.initial_term_id, wire.facts.term_length)
    different, first = np.unique(consumed, return_index=True)
    return different, messages["time_ns"].astype(np.int64)[first]
