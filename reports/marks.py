"""Single events of a stream: what the middlebox did, and what the two drivers did about it.

    dropped, held, swapped, duplicated    decision log: frames of the stream that have a position
    lost in weather                       captures: left, was not dropped by order, never came
    feedback lost                         decision log: SM, NAK and other frames without one
    NAK                                   capture at the receiver: the missing range it asks for
    retransmit                            capture at the sender: a position that left before
    gap fill                              subscriber's frames: a PAD that the publisher never sent

Each event is a time, a position and a length; `detail` holds one more number (the attempt of a
lost frame, the rule of a lost feedback frame, the times a position was sent).
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from windtunnel.harness.artifact.host.frame_seen import headers
from windtunnel.harness.artifact.middlebox.decision import DROP, DUPLICATE, HOLD, NO_POSITION, SWAP
from windtunnel.harness.artifact.middlebox.frame_class import NAK, PAD
from windtunnel.harness.artifact.records import Records
from windtunnel.harness.dissect.frames.flow import aligned_lengths, positional, positions

Column = NDArray[np.int64]

KINDS = (
    "dropped",
    "lost in weather",
    "NAK",
    "retransmit",
    "gap fill",
    "held",
    "swapped",
    "duplicated",
    "feedback lost",
)
LOSSES = ("dropped", "lost in weather")
"""Kinds that take a frame of a stream away."""


@dataclass(frozen=True)
class Marks:
    """All events of one kind on one stream, in order of time."""

    kind: str
    time_ns: Column
    position: Column
    "Of the first byte; -1 for a frame without a position."
    length: Column
    detail: Column


@dataclass(frozen=True)
class Geometry:
    """What turns term ids into positions."""

    initial_term_id: int
    term_length: int


def decision_marks(decisions: Records, stream_id: int) -> list[Marks]:
    """What the middlebox did to a stream."""
    mine = decisions[decisions["stream_id"] == stream_id]
    with_position = mine["position"] != NO_POSITION
    kinds = {"dropped": DROP, "held": HOLD, "swapped": SWAP, "duplicated": DUPLICATE}
    found = [
        _of_decisions(kind, mine[with_position & (mine["action"] == action)], "attempt")
        for kind, action in kinds.items()
    ]
    lost = mine[~with_position & (mine["action"] == DROP)]
    found.append(_of_decisions("feedback lost", lost, "frame_type"))
    return found


def _of_decisions(kind: str, rows: Records, detail: str) -> Marks:
    return _marks(kind, rows["time_ns"], rows["position"], rows["frame_length"], rows[detail])


def nak_marks(frames: Records, geometry: Geometry) -> Marks:
    """What a receiver asked for, from the frames of the stream captured at its host."""
    naks = frames[frames["frame_type"] == NAK]
    at = positions(naks, geometry.initial_term_id, geometry.term_length)
    return _marks("NAK", naks["time_ns"], at, naks["nak_length"], np.zeros(len(naks), np.int64))


def retransmit_marks(frames: Records, geometry: Geometry) -> Marks:
    """What a sender sent again, from the frames of the stream captured at its host."""
    sent = positional(frames)
    at = positions(sent, geometry.initial_term_id, geometry.term_length)
    nth = _nth_occurrence(at)
    again = nth > 1
    lengths = aligned_lengths(sent["frame_length"])
    return _marks("retransmit", sent["time_ns"][again], at[again], lengths[again], nth[again])


def weather_marks(
    sent: Records, received: Records, decisions: Records, geometry: Geometry
) -> Marks:
    """What left a sender and neither arrived nor was dropped by order, on one way.

    `sent` and `received` are the frames of the stream captured at its two ends on one clock, the
    decisions those about it on this way. An arrival belongs to the last departure before it, so of
    a frame that was held until it had been sent again, the wrong one of two passages may be named.
    """
    left, came = positional(sent), positional(received)
    left_at = positions(left, geometry.initial_term_id, geometry.term_length)
    came_at = positions(came, geometry.initial_term_id, geometry.term_length)
    dropped = decisions[decisions["action"] == DROP]
    nth = _nth_occurrence(left_at)
    lost = np.zeros(len(left), dtype=np.bool_)
    names, counts = np.unique(left_at, return_counts=True)
    arrived = np.bincount(
        np.searchsorted(names, came_at[np.isin(came_at, names)]), None, len(names)
    )
    for position in names[arrived < counts].tolist():
        rows = np.flatnonzero(left_at == position)
        struck = dropped["attempt"][dropped["position"] == position]
        waiting = [row for row in rows.tolist() if nth[row] not in struck]
        for time_ns in np.sort(came["time_ns"][came_at == position]).tolist():
            earlier = [row for row in waiting if left["time_ns"][row] <= time_ns]
            if earlier:
                waiting.remove(earlier[-1])
        lost[waiting] = True
    lengths = aligned_lengths(left["frame_length"])
    columns = left["time_ns"], left_at, lengths, nth
    return _marks("lost in weather", *(each[lost] for each in columns))


def gap_fill_marks(seen: Records, sent: Records | None, geometry: Geometry) -> Marks:
    """Holes that a receiver filled with padding, from the frames its subscriber saw.

    `sent` are the frames of the stream captured at the sender: the PADs among them end terms and
    are no gap fills.
    """
    head = headers(seen)
    pads = seen[head["type"] == PAD]
    lengths = aligned_lengths(head["frame_length"][head["type"] == PAD])
    if sent is None:
        own = np.zeros(len(pads), dtype=np.bool_)
    else:
        sent_pads = sent[sent["frame_type"] == PAD]
        at = positions(sent_pads, geometry.initial_term_id, geometry.term_length)
        own = np.isin(pads["position"], at)
    zero = np.zeros(int((~own).sum()), np.int64)
    return _marks("gap fill", pads["time_ns"][~own], pads["position"][~own], lengths[~own], zero)


def _nth_occurrence(values: Column) -> Column:
    """For each value, how many times it has occurred up to and including this one."""
    order = np.argsort(values, kind="stable")
    ranked = values[order]
    first = np.ones(len(values), dtype=np.bool_)
    first[1:] = ranked[1:] != ranked[:-1]
    index = np.arange(len(values))
    start = np.maximum.accumulate(np.where(first, index, 0))
    nth = np.empty(len(values), dtype=np.int64)
    nth[order] = index - start + 1
    return nth


def _marks(
    kind: str, time_ns: Records, position: Records, length: Records, detail: Records
) -> Marks:
    order = np.argsort(time_ns, kind="stable")
    columns = (
        np.asarray(each).astype(np.int64)[order] for each in (time_ns, position, length, detail)
    )
    return Marks(kind, *columns)
