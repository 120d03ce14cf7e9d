"""The gaps in a stream as its subscriber's host saw them, and how long their repairs took.

    arrived     | 0 | 1 |   | 3 | 4 ...          | 2 |
                            ^ gap of frame 2      ^ repaired

A gap begins with the first frame or heartbeat behind it. Frames that are late but arrive before
they are sent again were only reordered, so they are not gaps. A frame that ended beyond the
receiver's window, so that the receiver rejected it and requested it later, is a gap although the
link did not lose it.
"""

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from windtunnel.harness.dissect.driver_files.expected_log import ExpectedLog
from windtunnel.harness.dissect.frames.flow import aligned_lengths
from windtunnel.harness.verdict.core.wire import FrameSequence, Wire
from windtunnel.harness.verdict.views.acceptance import certainly_accepted

NEVER_NS = 2**63 - 1


@dataclass(frozen=True)
class RevealedGap:
    """A gap that no frame followed, so that a heartbeat was the first sign of it."""

    length_bytes: int
    waited_ns: int
    "Time from the first transmission of its last frame to the arrival of the heartbeat."


@dataclass(frozen=True)
class ReaderGaps:
    """The transmissions and arrivals of one stream's frames, for one subscriber. Arrays have one
    entry per frame of the expected log. The time of an event that did not happen is NEVER_NS.
    """

    sent_ns: NDArray[np.int64]
    "Time of the first transmission."
    arrived_ns: NDArray[np.int64]
    "Time of the first arrival that the receiver did not reject."
    is_lost: NDArray[np.bool_]
    "Whether the frame was missing until it was retransmitted, or permanently."
    count: int
    "Number of ranges of lost frames."
    repair_ns: NDArray[np.int64]
    "Duration of each repair. Gaps that were never repaired are not included."
    resent_frames: int
    resent_bytes: int
    naks: int
    requested: int
    "Number of ranges of lost frames for which the subscriber's host sent a NAK."
    rejected_frames: int
    "Frames that arrived, but were rejected because they ended beyond the receiver's window."
    unneeded_frames: int | None
    """Retransmits that arrived although another transmission of the frame arrived, too, or None if
    the link made copies."""
    late_ns: NDArray[np.int64]
    """For each frame that was sent again although it was only late, of which no transmission was
    lost: how long after the first sign of its gap it arrived."""
    lost_frames: int | None
    "Transmissions that did not arrive, or None if the link made copies."
    lost_bytes: int | None
    behind_ns: NDArray[np.int64] = field(default_factory=lambda: np.zeros(0, dtype=np.int64))
    """For each gap that was requested only after an earlier gap was repaired: how long it waited
    for this repair."""
    revealed: RevealedGap | None = None
    "The gap whose frames arrived latest after they were sent, if a heartbeat revealed it."

    def shortest_way_ns(self) -> int:
        """Return the shortest time between a frame's first transmission and its first arrival, or 0
        if none arrived.
        """
        came = (self.arrived_ns != NEVER_NS) & (self.sent_ns != NEVER_NS)
        return int((self.arrived_ns - self.sent_ns)[came].min()) if came.any() else 0


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
    `closed_ns` is when the image was closed: what is missing afterwards is not a gap of the image.
    """
    starts = log.frames["position"].astype(np.int64)
    is_rejected = _is_rejected(wire, join_position)
    accepted = wire.arrived.where(~is_rejected)
    sent_ns, resent_ns = _first_two_ns(starts, wire.sent)
    arrived_ns, _ = _first_two_ns(starts, accepted)
    shown_ns = _shown_ns(starts, accepted, wire)
    late = (arrived_ns > shown_ns) & (starts >= join_position) & (shown_ns <= closed_ns)
    is_lost = late & ((resent_ns <= arrived_ns) | (arrived_ns == NEVER_NS))
    lost = np.flatnonzero(is_lost)
    is_first = np.ones(len(lost), dtype=np.bool_)
    is_first[1:] = (np.diff(lost) != 1) | (np.diff(shown_ns[lost]) != 0)
    firsts = np.flatnonzero(is_first)
    lengths = aligned_lengths(log.frames["frame_length"])
    lasts = np.append(firsts, len(lost))[1:] - 1
    begins, ends = starts[lost][firsts], (starts + lengths)[lost][lasts]
    repair_ns = behind_ns = np.zeros(0, dtype=np.int64)
    revealed = None
    if len(lost):
        filled_ns = np.maximum.reduceat(arrived_ns[lost], firsts)
        repaired = filled_ns != NEVER_NS
        repair_ns = (filled_ns - shown_ns[lost][firsts])[repaired]
        behind_ns = _behind_ns(wire, begins, ends, shown_ns[lost][firsts], filled_ns)
        if repaired.any():
            delays_ns = np.where(repaired, filled_ns - sent_ns[lost][firsts], -1)
            slowest = lost[firsts[delays_ns.argmax()] : lasts[delays_ns.argmax()] + 1]
            if _is_shown_by_heartbeat(int(shown_ns[slowest[0]]), accepted, wire):
                waited_ns = int(shown_ns[slowest[0]] - sent_ns[slowest[-1]])
                revealed = RevealedGap(int(lengths[slowest].sum()), waited_ns)
    again = wire.retransmitted()
    sent_count, arrived_count, accepted_count = (
        _counts(starts, each) for each in (wire.sent, wire.arrived, accepted)
    )
    missing = np.maximum(sent_count - arrived_count, 0)
    unneeded = np.maximum(np.minimum(sent_count, accepted_count) - 1, 0)
    return ReaderGaps(
        sent_ns=sent_ns,
        arrived_ns=arrived_ns,
        is_lost=is_lost,
        count=len(firsts),
        repair_ns=repair_ns,
        resent_frames=int(again.sum()),
        resent_bytes=int((wire.sent.ends - wire.sent.starts)[again].sum()),
        naks=len(wire.naks(wire.feedback_sent)),
        requested=_requested(wire, begins, ends),
        rejected_frames=int(is_rejected.sum()),
        unneeded_frames=None if has_copies else int(unneeded.sum()),
        late_ns=(arrived_ns - shown_ns)[late & (unneeded > 0) & (missing == 0) & (not has_copies)],
        lost_frames=None if has_copies else int(missing.sum()),
        lost_bytes=None if has_copies else int((missing * lengths).sum()),
        behind_ns=behind_ns,
        revealed=revealed,
    )


def _is_shown_by_heartbeat(shown_ns: int, accepted: FrameSequence, wire: Wire) -> bool:
    """Return whether a heartbeat, and no frame, arrived at a time."""
    is_frame = (accepted.frames["time_ns"].astype(np.int64) == shown_ns).any()
    return bool((wire.heartbeat_times_ns == shown_ns).any() and not is_frame)


def _is_rejected(wire: Wire, join_position: int) -> NDArray[np.bool_]:
    """Return a mask of the arrived frames that the receiver certainly rejected: they may have ended
    beyond its window, and it requested them after they had arrived.
    """
    arrived = wire.arrived
    rows = np.flatnonzero(~certainly_accepted(wire, join_position))
    rows = rows[np.argsort(arrived.starts[rows], kind="stable")]
    requested_ns = np.full(len(rows), -1, dtype=np.int64)
    naks = wire.naks(wire.feedback_sent)
    first, after = (np.searchsorted(arrived.starts[rows], each) for each in wire.nak_ranges(naks))
    for nak in np.flatnonzero(after > first).tolist():
        own = slice(int(first[nak]), int(after[nak]))
        requested_ns[own] = np.maximum(requested_ns[own], int(naks["time_ns"][nak]))
    is_rejected = np.zeros(len(arrived.starts), dtype=np.bool_)
    is_rejected[rows[requested_ns > arrived.frames["time_ns"][rows].astype(np.int64)]] = True
    return is_rejected


def _requested(wire: Wire, begins: NDArray[np.int64], ends: NDArray[np.int64]) -> int:
    """Return how many of the gaps, which begin and end at these positions, a NAK requested."""
    nak_begins, nak_ends = wire.nak_ranges(wire.naks(wire.feedback_sent))
    first = np.searchsorted(ends, nak_begins, side="right")
    after = np.maximum(np.searchsorted(begins, nak_ends), first)
    changes = np.zeros(len(begins) + 1, dtype=np.int64)
    np.add.at(changes, first, 1)
    np.add.at(changes, after, -1)
    return int((np.cumsum(changes)[:-1] > 0).sum())


def _behind_ns(
    wire: Wire,
    begins: NDArray[np.int64],
    ends: NDArray[np.int64],
    shown_ns: NDArray[np.int64],
    filled_ns: NDArray[np.int64],
) -> NDArray[np.int64]:
    """Return how long each gap waited for the repair of an earlier gap before the first NAK that
    begins in it. Gaps that did not wait are left out.
    """
    naks = wire.naks(wire.feedback_sent)
    nak_begins, _ = wire.nak_ranges(naks)
    index = np.searchsorted(begins, nak_begins, side="right") - 1
    own = (index >= 0) & (nak_begins < ends[index])
    nak_ns = np.full(len(begins), NEVER_NS, dtype=np.int64)
    np.minimum.at(nak_ns, index[own], naks["time_ns"].astype(np.int64)[own])
    earlier_ns = np.where(filled_ns == NEVER_NS, 0, filled_ns)
    earlier_ns = np.maximum.accumulate(np.append(0, earlier_ns))[:-1]
    waited = (shown_ns < earlier_ns) & (earlier_ns <= nak_ns) & (nak_ns != NEVER_NS)
    found: NDArray[np.int64] = (earlier_ns - shown_ns)[waited]
    return found


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


def _shown_ns(starts: NDArray[np.int64], accepted: FrameSequence, wire: Wire) -> NDArray[np.int64]:
    """Return the time at which anything beyond each position first arrived, which shows that the
    data at the position was sent.
    """
    times_ns = np.concatenate(
        [accepted.frames["time_ns"].astype(np.int64), wire.heartbeat_times_ns]
    )
    order = np.argsort(times_ns, kind="stable")
    reached = np.concatenate([accepted.ends, wire.heartbeat_positions])[order]
    highest = np.maximum.accumulate(reached) if len(reached) else reached
    index = np.searchsorted(highest, starts, side="right")
    found: NDArray[np.int64] = np.append(times_ns[order], NEVER_NS)[index]
    return found


def _counts(starts: NDArray[np.int64], passed: FrameSequence) -> NDArray[np.int64]:
    """Return how many frames were captured at each position."""
    found = np.sort(passed.starts)
    counts: NDArray[np.int64] = np.searchsorted(found, starts, side="right")
    return counts - np.searchsorted(found, starts)
