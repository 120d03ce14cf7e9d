"""Which frames of the expected log did not arrive in their turn.

    sent        | 0 | 1 | 2 | 3 | 4 | 5 ...
    arrived       0       2   1       5   4         1 and 4 came too late, 3 never

Rules write down what they do to a frame, the weather does not: what it took or made late shows in
the captures alone, as what left its host in its turn and did not come in it. What a driver never
sent, or sent late, was not lost.
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
from windtunnel.harness.verdict.core.finding import Missing, together
from windtunnel.harness.verdict.core.wire import Stretch, Wire

_DISTURBING = (DROP, HOLD, SWAP, DISPLACE, CORRUPT, TRUNCATE, INJECT)
"""What keeps a frame from arriving in its turn; a forged one may take its place."""


@dataclass(frozen=True)
class Losses:
    """The decisions about one traffic's DATA and PAD frames, laid over its expected log."""

    disturbed: NDArray[np.bool_]
    "By frame of the expected log: it did not arrive whole and in its turn at least once."
    dropped_count: int
    "Decisions to drop, each passage of a frame counted."


@dataclass(frozen=True)
class OnTheWay(Losses):
    """The same with what the capture of the subscriber's host shows, whoever was to blame."""

    arrived: NDArray[np.bool_]
    "By frame of the expected log: it came, be it late, as far as is known."


def link_of(case: Case, traffic: TrafficCase) -> int:
    """The code of the link direction that a traffic's DATA takes."""
    return case.link_between(traffic.from_host, traffic.to_host)


def losses_of(decisions: Records, case: Case, traffic: TrafficCase, log: ExpectedLog) -> Losses:
    """What the middlebox did to a traffic's DATA and PAD frames."""
    link = link_of(case, traffic)
    chosen = decisions[(decisions["link"] == link) & (decisions["stream_id"] == traffic.stream_id)]
    chosen = chosen[np.isin(chosen["frame_type"], POSITIONAL)]
    actions: Any = chosen["action"]
    disturbing = chosen[np.isin(actions, _DISTURBING)]
    index, found = frame_index(log, disturbing["position"])
    disturbed = np.zeros(len(log.frames), dtype=np.bool_)
    disturbed[index[found]] = True
    return Losses(disturbed, int((actions == DROP).sum()))


def lost_on_the_way(evidence: Evidence, traffic: TrafficCase) -> OnTheWay | Missing:
    """What rules and weather did to a traffic's DATA and PAD frames."""
    found = together(
        evidence.case, evidence.decisions, evidence.planned(traffic), evidence.wire(traffic)
    )
    if isinstance(found, Missing):
        return found
    case, decisions, planned, wire = found
    lost = losses_of(decisions, case, traffic, planned.log)
    # Of two at one instant the doubt is the driver's: that the frame left first, and came last.
    _, left_in_turn = _passages(planned.log, wire.sent, _beats(wire, wire.beats_sent), 1)
    arrived, in_turn = _passages(planned.log, wire.arrived, _beats(wire, wire.beats_arrived), -1)
    if traffic.rejoins:
        # The wire is that of the last session; what came in those before it is not known.
        arrived[:] = left_in_turn[:] = True
    return OnTheWay(lost.disturbed | (left_in_turn & ~in_turn), lost.dropped_count, arrived)


def _beats(wire: Wire, beats: Frames) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """When heartbeats passed, and the position that each told."""
    told = positions(beats, wire.facts.initial_term_id, wire.facts.term_length)
    return beats["time_ns"].astype(np.int64), told


def _passages(
    log: ExpectedLog,
    passed: Stretch,
    beats: tuple[NDArray[np.int64], NDArray[np.int64]],
    beats_rank: int,
) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
    """Which expected frames passed, and which before all that tells of a position behind them.

    A heartbeat tells of one as a frame does: a receiver may fill what it has made a gap. Of one
    instant, heartbeats pass last with a rank of 1, first with -1.
    """
    beat_times_ns, beat_positions = beats
    times_ns = np.concatenate([beat_times_ns, passed.frames["time_ns"].astype(np.int64)])
    ranks = np.concatenate([np.full(len(beat_times_ns), beats_rank), np.zeros(len(passed.starts))])
    order = np.lexsort((ranks, times_ns))
    starts = np.concatenate([np.full(len(beat_times_ns), -1), passed.starts])[order]
    told = np.concatenate([beat_positions, passed.ends])[order]
    highest = np.maximum.accumulate(np.concatenate([[0], told]))[:-1]
    index, known = frame_index(log, starts)
    passing = np.zeros(len(log.frames), dtype=np.bool_)
    in_turn = passing.copy()
    passing[index[known]] = True
    in_turn[index[known & (highest <= starts)]] = True
    return passing, in_turn


def frame_index(
    log: ExpectedLog, positions: NDArray[np.int64]
) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
    """For each position the expected frame that begins there, and whether there is one."""
    starts = log.frames["position"]
    index = np.searchsorted(starts, positions)
    found = index < len(starts)
    found[found] = starts[index[found]] == positions[found]
    return index, found
