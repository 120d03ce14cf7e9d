"""Detects frames in the expected log that were lost or arrived out of order.

    sent        | 0 | 1 | 2 | 3 | 4 | 5 ...
    arrived       0       2   1       5   4         1 and 4 arrived late, 3 never

Fault rules log each decision about a frame, but impairments do not. Their effect shows only in the
captures: a frame left its host in order, but was lost or arrived out of order. A frame that a
driver never sent, or sent late, was not lost.

A frame may also be lost on a sound link. A PAD needs window only for its header, but an image
rejects the datagram with it if the PAD ends more than half a term beyond the last acknowledged
position.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from windtunnel.harness.artifact.middlebox.decision import (
    CORRUPT,
    DISPLACE,
    DROP,
    HOLD,
    INJECT,
    SWAP,
    TRUNCATE,
)
from windtunnel.harness.artifact.middlebox.frame_class import POSITIONAL
from windtunnel.harness.artifact.records import Records
from windtunnel.harness.dissect.driver_files.expected_log import ExpectedLog
from windtunnel.harness.dissect.frames.flow import positions
from windtunnel.harness.dissect.frames.frames import Frames
from windtunnel.harness.scenario.resolved.case import Case, TrafficCase
from windtunnel.harness.verdict.core.evidence import Evidence
from windtunnel.harness.verdict.core.finding import present
from windtunnel.harness.verdict.core.wire import FrameSequence, Wire
from windtunnel.harness.verdict.views.acceptance import rejected_positions

_ALTERING = (DROP, CORRUPT, TRUNCATE, INJECT)
"""Fault actions after which a frame that arrives may not be the publisher's."""
_DISTURBING = (DROP, HOLD, SWAP, DISPLACE, CORRUPT, TRUNCATE, INJECT)
"""Fault actions that can keep a frame from arriving in order. An injected frame can replace it."""


@dataclass(frozen=True)
class Losses:
    """The frames of a stream that the middlebox's rules lost, corrupted or reordered."""

    disturbed: NDArray[np.bool_]
    "For each frame of the expected log: whether a transmission was lost, corrupted or reordered."
    altered: NDArray[np.bool_]
    "For each frame of the expected log: whether a transmission was lost, corrupted or replaced."
    dropped_count: int
    "Number of dropped frame transmissions."


@dataclass(frozen=True)
class LinkLosses(Losses):
    """The frames of a stream that were disturbed according to the middlebox or the captures."""

    arrived: NDArray[np.bool_]
    "For each frame of the expected log: whether it arrived, in order or late; True if unknown."


def link_of(case: Case, traffic: TrafficCase) -> int:
    """Return the code of the link direction in which a stream's DATA is sent."""
    return case.link_between(traffic.from_host, traffic.to_host)


def losses_of(decisions: Records, case: Case, traffic: TrafficCase, log: ExpectedLog) -> Losses:
    """Return which of a stream's DATA and PAD frames the middlebox's rules dropped or disturbed."""
    link = link_of(case, traffic)
    chosen = decisions[(decisions["link"] == link) & (decisions["stream_id"] == traffic.stream_id)]
    chosen = chosen[np.isin(chosen["frame_type"], POSITIONAL)]
    actions: Any = chosen["action"]
    disturbed, altered = (
        _frames_at(log, chosen["position"][np.isin(actions, kinds)])
        for kinds in (_DISTURBING, _ALTERING)
    )
    return Losses(disturbed, altered, int((actions == DROP).sum()))


def _frames_at(log: ExpectedLog, positions: NDArray[np.int64]) -> NDArray[np.bool_]:
    """Return a mask of the expected frames that start at one of the positions."""
    index, found = frame_index(log, positions)
    mask = np.zeros(len(log.frames), dtype=np.bool_)
    mask[index[found]] = True
    return mask


def link_losses(evidence: Evidence, traffic: TrafficCase) -> LinkLosses:
    """Return which of a stream's DATA and PAD frames were lost or disturbed by rules or
    impairments.
    """
    case, decisions, planned, wire = present(
        evidence.case, evidence.decisions, evidence.planned(traffic), evidence.wire(traffic)
    )
    lost = losses_of(decisions, case, traffic, planned.log)
    # At equal times the driver gets the benefit of the doubt: the frame left first, arrived last.
    _, left_in_turn = _observed(planned.log, wire.sent, _heartbeats(wire, wire.heartbeats_sent), 1)
    arrived, in_turn = _observed(
        planned.log, wire.arrived, _heartbeats(wire, wire.heartbeats_arrived), -1
    )
    if traffic.rejoins:
        # The wire covers the last session only; arrivals of earlier sessions are not known.
        arrived[:] = left_in_turn[:] = True
    disturbed = lost.disturbed | (left_in_turn & ~in_turn)
    rejected = rejected_positions(wire, evidence.join_position(traffic))
    disturbed |= _frames_at(planned.log, rejected)
    return LinkLosses(disturbed, lost.altered, lost.dropped_count, arrived)


def _heartbeats(wire: Wire, beats: Frames) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return the times and positions of heartbeats."""
    reached = positions(beats, wire.facts.initial_term_id, wire.facts.term_length)
    return beats["time_ns"].astype(np.int64), reached


def _observed(
    log: ExpectedLog,
    passed: FrameSequence,
    beats: tuple[NDArray[np.int64], NDArray[np.int64]],
    beats_rank: int,
) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
    """Return two masks of the expected frames: those that a capture contains, and those that it
    contains in order of position.

    A heartbeat indicates a position just as a frame does: a receiver may fill the gap before it. At
    equal times, a rank of 1 orders heartbeats last, and a rank of -1 orders them first.
    """
    beat_times_ns, beat_positions = beats
    times_ns = np.concatenate([beat_times_ns, passed.frames["time_ns"].astype(np.int64)])
    ranks = np.concatenate([np.full(len(beat_times_ns), beats_rank), np.zeros(len(passed.starts))])
    order = np.lexsort((ranks, times_ns))
    starts = np.concatenate([np.full(len(beat_times_ns), -1), passed.starts])[order]
    reached = np.concatenate([beat_positions, passed.ends])[order]
    highest = np.maximum.accumulate(np.concatenate([[0], reached]))[:-1]
    index, known = frame_index(log, starts)
    passing = np.zeros(len(log.frames), dtype=np.bool_)
    in_turn = passing.copy()
    passing[index[known]] = True
    in_turn[index[known & (highest <= starts)]] = True
    return passing, in_turn


def frame_index(
    log: ExpectedLog, positions: NDArray[np.int64]
) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
    """Return the index of the expected frame that starts at each position, and whether there is
    such a frame.
    """
    starts = log.frames["position"]
    index = np.searchsorted(starts, positions)
    found = index < len(starts)
    found[found] = starts[index[found]] == positions[found]
    return index, found
