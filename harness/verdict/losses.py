"""Which frames of the expected log did not arrive in their turn.

    sent        | 0 | 1 | 2 | 3 | 4 | 5 ...
    arrived       0       2   1       5   4         1 and 4 came too late, 3 never

Rules write down what they do to a frame, the weather does not: what it took or made late shows in
the capture of the subscriber's host only.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from harness.artifact.decision import (
    CORRUPT,
    DISPLACE,
    DROP,
    HOLD,
    INJECT,
    SWAP,
    TRUNCATE,
)
from harness.artifact.frame_class import POSITIONAL
from harness.artifact.records import Records
from harness.dissect.expected_log import ExpectedLog
from harness.scenario.case import Case, TrafficCase
from harness.verdict.evidence import Evidence
from harness.verdict.finding import Missing, together
from harness.verdict.wire import Wire

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
    arrived, in_turn = _arrivals(wire, planned.log)
    if traffic.rejoins:
        # The wire is that of the last session; what came in those before it is not known.
        arrived[:] = True
    return OnTheWay(lost.disturbed | ~in_turn, lost.dropped_count, arrived)


def _arrivals(wire: Wire, log: ExpectedLog) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
    """Which expected frames came, and which before all that tells of a position behind them.

    A heartbeat tells of one as a frame does: a receiver may fill what it has made a gap.
    """
    beats = wire.heartbeats_arrived
    times = np.concatenate([wire.heartbeat_times_ns, wire.arrived.frames["time_ns"]])
    order = np.argsort(times, kind="stable")
    starts = np.concatenate([np.full(len(beats), -1), wire.arrived.starts])[order]
    told = np.concatenate([beats, wire.arrived.ends])[order]
    highest = np.maximum.accumulate(np.concatenate([[0], told]))[:-1]
    index, known = frame_index(log, starts)
    arrived = np.zeros(len(log.frames), dtype=np.bool_)
    in_turn = arrived.copy()
    arrived[index[known]] = True
    in_turn[index[known & (highest <= starts)]] = True
    return arrived, in_turn


def frame_index(
    log: ExpectedLog, positions: NDArray[np.int64]
) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
    """For each position the expected frame that begins there, and whether there is one."""
    starts = log.frames["position"]
    index = np.searchsorted(starts, positions)
    found = index < len(starts)
    found[found] = starts[index[found]] == positions[found]
    return index, found
