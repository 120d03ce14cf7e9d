"""Chart marks: single events in a stream, at the middlebox and at both drivers.

    dropped, held, swapped, displaced,    decision log: frames of the stream with a position
    duplicated
    lost to impairment                    captures: sent, not dropped by a rule, never received
    feedback lost                         decision log: SM, NAK and other frames without position
    NAK                                   capture at the receiver: the missing range it requests
    retransmit                            capture at the sender: a position that was sent before
    gap fill                              subscriber's frames: a PAD that the publisher never sent

Each event has a time, a position and a length. `detail` is an additional number: the attempt of a
lost frame, the frame type of a lost feedback frame, or how often a position has been sent.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from windtunnel.harness.artifact.host.frame_seen import headers
from windtunnel.harness.artifact.middlebox.decision import (
    DISPLACE,
    DROP,
    DUPLICATE,
    HOLD,
    NO_POSITION,
    SWAP,
)
from windtunnel.harness.artifact.middlebox.frame_class import NAK, PAD
from windtunnel.harness.artifact.records import Records
from windtunnel.harness.dissect.frames.flow import aligned_lengths, positional, positions

Column = NDArray[np.int64]

KINDS = (
    "dropped",
    "lost to impairment",
    "NAK",
    "retransmit",
    "gap fill",
    "held",
    "swapped",
    "displaced",
    "duplicated",
    "feedback lost",
)
LOSSES = ("dropped", "lost to impairment")
"""The kinds of marks that represent lost frames."""


@dataclass(frozen=True)
class Marks:
    """All events of one kind in a stream, in time order."""

    kind: str
    time_ns: Column
    position: Column
    "Position of each frame's first byte, or -1 for a frame without a position."
    length: Column
    detail: Column


@dataclass(frozen=True)
class Geometry:
    """A stream's initial term id and term length, which convert term ids to positions."""

    initial_term_id: int
    term_length: int


def decision_marks(decisions: Records, stream_id: int) -> list[Marks]:
    """Return marks for the middlebox's actions on a stream's frames."""
    mine = decisions[decisions["stream_id"] == stream_id]
    with_position = mine["position"] != NO_POSITION
    kinds = {
        "dropped": DROP,
        "held": HOLD,
        "swapped": SWAP,
        "displaced": DISPLACE,
        "duplicated": DUPLICATE,
    }
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
    """Return marks for a receiver's NAKs, from the stream's frames captured at its host."""
    naks = frames[frames["frame_type"] == NAK]
    at = positions(naks, geometry.initial_term_id, geometry.term_length)
    return _marks("NAK", naks["time_ns"], at, naks["nak_length"], np.zeros(len(naks), np.int64))


def retransmit_marks(frames: Records, geometry: Geometry) -> Marks:
    """Return marks for a sender's retransmits, from the stream's frames captured at the sender's
    host.
    """
    sent = positional(frames)
    at = positions(sent, geometry.initial_term_id, geometry.term_length)
    nth = _nth_occurrence(at)
    again = nth > 1
    lengths = aligned_lengths(sent["frame_length"])
    return _marks("retransmit", sent["time_ns"][again], at[again], lengths[again], nth[again])


def impairment_marks(
    sent: Records, received: Records, decisions: Records, geometry: Geometry
) -> Marks:
    """Return a mark for each frame lost in one direction of a link, except frames dropped by a
    rule.

    `sent` and `received` are the stream's frames captured at the two hosts, timestamped by one
    clock. `decisions` are the middlebox's decisions about the stream in this direction. An arrival
    is matched with the last transmission before it. If a frame was held until its retransmit had
    been sent, the wrong one of the two transmissions may be marked.
    """
    departures, arrivals = positional(sent), positional(received)
    sent_at = positions(departures, geometry.initial_term_id, geometry.term_length)
    received_at = positions(arrivals, geometry.initial_term_id, geometry.term_length)
    dropped = decisions[decisions["action"] == DROP]
    nth = _nth_occurrence(sent_at)
    lost = np.zeros(len(departures), dtype=np.bool_)
    names, counts = np.unique(sent_at, return_counts=True)
    arrived = np.bincount(
        np.searchsorted(names, received_at[np.isin(received_at, names)]), None, len(names)
    )
    for position in names[arrived < counts].tolist():
        rows = np.flatnonzero(sent_at == position)
        attempts_dropped = dropped["attempt"][dropped["position"] == position]
        waiting = [row for row in rows.tolist() if nth[row] not in attempts_dropped]
        for time_ns in np.sort(arrivals["time_ns"][received_at == position]).tolist():
            earlier = [row for row in waiting if departures["time_ns"][row] <= time_ns]
            if earlier:
                waiting.remove(earlier[-1])
        lost[waiting] = True
    lengths = aligned_lengths(departures["frame_length"])
    columns = departures["time_ns"], sent_at, lengths, nth
    return _marks("lost to impairment", *(each[lost] for each in columns))


def gap_fill_marks(seen: Records, sent: Records | None, geometry: Geometry) -> Marks:
    """Return marks for the gaps that a receiver filled with padding.

    `seen` are the frames that its subscriber received.

    `sent` are the stream's frames captured at the sender. PADs among them end terms and are not gap
    fills.
    """
    head = headers(seen)
    pads = seen[head["type"] == PAD]
    lengths = aligned_lengths(head["frame_length"][head["type"] == PAD])
    if sent is None:
        is_sent = np.zeros(len(pads), dtype=np.bool_)
    else:
        sent_pads = sent[sent["frame_type"] == PAD]
        at = positions(sent_pads, geometry.initial_term_id, geometry.term_length)
        is_sent = np.isin(pads["position"], at)
    zero = np.zeros(int((~is_sent).sum()), np.int64)
    return _marks(
        "gap fill", pads["time_ns"][~is_sent], pads["position"][~is_sent], lengths[~is_sent], zero
    )


def _nth_occurrence(values: Column) -> Column:
    """Return, for each value, its number of occurrences up to and including this one."""
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
