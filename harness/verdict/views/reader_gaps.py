"""The gaps in a stream as its subscriber's host saw them, and how long their repairs took.

    arrived     | 0 | 1 |   | 3 | 4 ...          | 2 |
                            ^ gap of frame 2      ^ repaired

A gap begins with the first frame or heartbeat behind it. Frames that are late but arrive before
they are sent again were only reordered, so they are no gap.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from windtunnel.harness.dissect.driver_files.expected_log import ExpectedLog
from windtunnel.harness.dissect.frames.flow import aligned_lengths
from windtunnel.harness.verdict.core.wire import FrameSequence, Wire

NEVER_NS = 2**63 - 1


@dataclass(frozen=True)
class ReaderGaps:
    """The transmissions and arrivals of one stream's frames, for one subscriber. Arrays have one
    entry per frame of the expected log. The time of an event that did not happen is NEVER_NS.
    """

    sent_ns: NDArray[np.int64]
    "Time of the first transmission."
    arrived_ns: NDArray[np.int64]
    "Time of the first arrival."
    is_lost: NDArray[np.bool_]
    "Whether the frame was missing until it was retransmitted, or permanently."
    count: int
    "Number of ranges of lost frames."
    repair_ns: NDArray[np.int64]
    "Duration of each repair. Gaps that were never repaired are not included."
    resent_frames: int
    resent_bytes: int
    naks: int
    lost_frames: int | None
    "Transmissions that did not arrive, or None if the link made copies."
    lost_bytes: int | None


def reader_gaps(
    wire: Wire,
    log: ExpectedLog,
    join_position: int,
    *,
    has_copies: bool,
    closed_ns: int = NEVER_NS,
) -> ReaderGaps:
    """Return the gaps in a stream as they appeared to a subscriber that joined at a position.

    `has_copies` is whether the link may have duplicated frames, which makes lost ones uncountable.
    `closed_ns` is when the image was closed: what is missing afterwards is no gap of the image.
    """
    starts = log.frames["position"].astype(np.int64)
    sent_ns, resent_ns = _first_two_ns(starts, wire.sent)
    arrived_ns, _ = _first_two_ns(starts, wire.arrived)
    shown_ns = _shown_ns(starts, wire)
    late = (arrived_ns > shown_ns) & (starts >= join_position) & (shown_ns <= closed_ns)
    is_lost = late & ((resent_ns <= arrived_ns) | (arrived_ns == NEVER_NS))
    lost = np.flatnonzero(is_lost)
    is_first = np.ones(len(lost), dtype=np.bool_)
    is_first[1:] = (np.diff(lost) != 1) | (np.diff(shown_ns[lost]) != 0)
    firsts = np.flatnonzero(is_first)
    repair_ns = np.zeros(0, dtype=np.int64)
    if len(lost):
        filled_ns = np.maximum.reduceat(arrived_ns[lost], firsts)
        repaired = filled_ns != NEVER_NS
        repair_ns = (filled_ns - shown_ns[lost][firsts])[repaired]
    again = wire.retransmitted()
    lost_frames, lost_bytes = _uncounted(starts, log, wire)
    return ReaderGaps(
        sent_ns=sent_ns,
        arrived_ns=arrived_ns,
        is_lost=is_lost,
        count=len(firsts),
        repair_ns=repair_ns,
        resent_frames=int(again.sum()),
        resent_bytes=int((wire.sent.ends - wire.sent.starts)[again].sum()),
        naks=len(wire.naks(wire.feedback_sent)),
        lost_frames=None if has_copies else lost_frames,
        lost_bytes=None if has_copies else lost_bytes,
    )


def _first_two_ns(
    starts: NDArray[np.int64], passed: FrameSequence
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return the times of the first and the second frame that were captured at each position."""
    order = np.argsort(passed.starts, kind="stable")
    found = passed.starts[order]
    times_ns = np.append(passed.frames["time_ns"].astype(np.int64)[order], NEVER_NS)
    first = np.searchsorted(found, starts)
    after = np.searchsorted(found, starts, side="right")
    once = np.where(after > first, times_ns[first], NEVER_NS)
    twice = np.where(after > first + 1, times_ns[np.minimum(first + 1, len(found))], NEVER_NS)
    return once, twice


def _shown_ns(starts: NDArray[np.int64], wire: Wire) -> NDArray[np.int64]:
    """Return the time at which anything beyond each position first arrived, which shows that the
    data at the position was sent.
    """
    times_ns = np.concatenate(
        [wire.arrived.frames["time_ns"].astype(np.int64), wire.heartbeat_times_ns]
    )
    order = np.argsort(times_ns, kind="stable")
    reached = np.concatenate([wire.arrived.ends, wire.heartbeat_positions])[order]
    highest = np.maximum.accumulate(reached) if len(reached) else reached
    index = np.searchsorted(highest, starts, side="right")
    found: NDArray[np.int64] = np.append(times_ns[order], NEVER_NS)[index]
    return found


def _uncounted(starts: NDArray[np.int64], log: ExpectedLog, wire: Wire) -> tuple[int, int]:
    """Return how many frame transmissions did not arrive, and how many bytes they contained."""
    counts = [
        np.searchsorted(np.sort(each.starts), starts, side="right")
        - np.searchsorted(np.sort(each.starts), starts)
        for each in (wire.sent, wire.arrived)
    ]
    missing = np.maximum(counts[0] - counts[1], 0)
    lengths = aligned_lengths(log.frames["frame_length"])
    return int(missing.sum()), int((missing * lengths).sum())
