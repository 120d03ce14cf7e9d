"""Checks that NAKs cover complete gaps that the receiver could detect, and are not sent too often.

    arrived   |####|####|     |####|####|          a gap: everything before it has arrived, and the
                        ^     ^                    first frame after it begins where the gap ends
              NAK       [-----)

The checks depend on the capture at the receiver's host: a driver can detect a gap only by frames
that have arrived, and processes them in order. It may have rejected a frame beyond its window, or
in a datagram whose first frame it already had. Such a frame counts as possibly received.
"""

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from windtunnel.harness.artifact.noun_form import noun_for
from windtunnel.harness.dissect.frames.frames import FRAME_ALIGNMENT
from windtunnel.harness.dissect.frames.observed_flows import END_OF_TIME_NS
from windtunnel.harness.scenario.resolved.case import TrafficCase
from windtunnel.harness.scenario.schema.channel import parse_channel
from windtunnel.harness.verdict.checks.retransmission.all_gaps import (
    earlier_naks,
    has_all_gaps,
    least_delays_ns,
    since_silence,
)
from windtunnel.harness.verdict.checks.retransmission.recovery import socket_drops
from windtunnel.harness.verdict.core.evidence import Evidence
from windtunnel.harness.verdict.core.finding import Finding, failed, passed, present
from windtunnel.harness.verdict.core.outcome import Outcome
from windtunnel.harness.verdict.core.virtual import is_virtual
from windtunnel.harness.verdict.core.wire import Wire
from windtunnel.harness.verdict.views.acceptance import certainly_accepted, while_received
from windtunnel.harness.verdict.views.pauses import Pauses, pauses_of
from windtunnel.harness.verdict.views.series import highest_by, known_at, received_by
from windtunnel.harness.verdict.views.sessions import joins_of

ONLY_GAPS = "naks_only_for_gaps"
PACED = "naks_paced"

STALE_NS = 100_000_000
"""Maximum delay of a NAK after its gap was filled. Aeron's drivers count a longer duty cycle as
exceeding their threshold, so a healthy driver scans for gaps more often."""

STALE_VIRTUAL_NS = 1_000_000
"""The same in a simulation, in which a driver is never late."""

NAK_DELAY_NS = 1_000
"""A unicast receiver's default NAK delay. The retry delay is RETRY_RATIO times as long."""
RETRY_RATIO = 100
PACE_SLACK_NS = 5_000_000
"""Tolerance for the interval between NAKs: a scheduler time slice can delay the first one."""


@dataclass(frozen=True)
class _Naks:
    """The NAKs of one stream as ranges of positions, in chronological order."""

    times_ns: NDArray[np.int64]
    starts: NDArray[np.int64]
    ends: NDArray[np.int64]


@dataclass(frozen=True)
class _Images:
    """Where the images of one stream begin."""

    start: int
    joins: list[tuple[int, int]]
    "Time and position, if the stream rejoins."


def _naks(wire: Wire) -> _Naks:
    naks = wire.naks(wire.feedback_sent)
    starts = wire.nak_positions(naks)
    times_ns = naks["time_ns"].astype(np.int64)
    return _Naks(times_ns, starts, starts + naks["nak_length"])


def naks_only_for_gaps(evidence: Evidence, traffic: TrafficCase) -> Finding:
    """Each NAK covers one complete gap that the receiver could detect by then: the first gap,
    unless the receiver sends NAKs for all gaps.
    """
    wire, planned = present(evidence.wire(traffic), evidence.planned(traffic))
    where = (evidence.name_of(evidence.folder.capture(traffic.to_host)),)
    naks = _naks(wire)
    start = planned.log.start_position
    closed_ns = _closed_ns(wire, naks, start)
    facts = {"naks": len(naks.starts)}
    all_gaps = has_all_gaps(evidence, traffic)
    images = _Images(start, joins_of(evidence, traffic, wire))
    for wrong, what in _violations(wire, naks, images, closed_ns, all_gaps=all_gaps):
        at = np.flatnonzero(wrong)
        if len(at) == 0:
            continue
        first = int(at[0])
        position, end = int(naks.starts[first]), int(naks.ends[first])
        text = f"the NAK for {end - position} bytes at position {position} {what}"
        if len(at) > 1:
            text += f"; {len(at) - 1} more such NAKs"
        violation = failed(
            ONLY_GAPS, text, traffic.id, evidence=where, position=position, facts=facts
        )
        return _unless_dropped(evidence, traffic, violation)
    text = f"{len(naks.starts)} {noun_for(len(naks.starts), 'NAK')}, each for an existing gap"
    return passed(ONLY_GAPS, text, traffic.id, evidence=where, facts=facts)


def _unless_dropped(evidence: Evidence, traffic: TrafficCase, finding: Finding) -> Finding:
    """Return a finding, which is INCONCLUSIVE instead of FAIL if the receiving host's sockets
    dropped datagrams: then its driver did not see all frames in its capture.
    """
    dropped = socket_drops(evidence, traffic.to_host)
    if not dropped or finding.outcome is not Outcome.FAIL:
        return finding
    text = f"{finding.text}; however, the host's sockets dropped {dropped} captured datagrams"
    return replace(finding, outcome=Outcome.INCONCLUSIVE, text=text)


def _violations(
    wire: Wire, naks: _Naks, images: _Images, closed_ns: NDArray[np.int64], *, all_gaps: bool
) -> list[tuple[NDArray[np.bool_], str]]:
    """Return (mask of NAKs, description) for each kind of violation, the most severe first."""
    term_length = wire.facts.term_length
    times_ns, start = naks.times_ns, images.start
    last = naks.ends - 1
    uneven = (naks.starts % FRAME_ALIGNMENT != 0) | (naks.ends % FRAME_ALIGNMENT != 0)
    malformed = uneven | (naks.ends <= naks.starts) | (naks.starts < start)
    malformed |= naks.starts // term_length != last // term_length
    if all_gaps:
        is_border = np.isin(naks.starts, [start, *(position for _, position in images.joins)])
        is_border |= naks.starts % term_length == 0
        border_ns = np.where(is_border, 0, _gap_start_ns(wire, naks.starts))
        misplaced = (border_ns > times_ns, "does not begin where an arrived frame ends")
    else:
        received = received_by(wire, start, images.joins, contiguous=True)
        whole = known_at(*received, times_ns, start)
        misplaced = (whole < naks.starts, "skips an earlier gap")
    seen_ns = _seen_ns(wire, naks.ends)
    known_ns = np.where(naks.ends % term_length == 0, seen_ns, _edge_ns(wire, naks.ends))
    return [
        (malformed, "is not a frame-aligned range within one term"),
        (seen_ns > times_ns, "ends beyond the highest arrived position"),
        (closed_ns <= seen_ns, "covers frames that had already arrived"),
        misplaced,
        (
            known_ns > times_ns,
            "does not end at an arrived frame's boundary or a heartbeat's position",
        ),
    ]


def _seen_ns(wire: Wire, ends: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return, for each position, the time at which data up to that position or beyond it first
    arrived.
    """
    times_ns, tops = highest_by(wire)
    at = np.searchsorted(tops, ends, side="left")
    return np.append(times_ns, END_OF_TIME_NS)[at]


def _gap_start_ns(wire: Wire, starts: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return the earliest time at which a gap can start at each position: when a frame that ends
    there, or a heartbeat with this position, first arrived.
    """
    frame_ns = wire.arrived.frames["time_ns"].astype(np.int64)
    edges = np.concatenate([wire.arrived.ends, wire.heartbeat_positions])
    return _first_ns(edges, np.concatenate([frame_ns, wire.heartbeat_times_ns]), starts)


def _edge_ns(wire: Wire, ends: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return the earliest time at which a gap can end at each position: when a frame that starts or
    ends there, or a heartbeat with this position, first arrived.
    """
    frame_ns = wire.arrived.frames["time_ns"].astype(np.int64)
    edges = np.concatenate([wire.arrived.starts, wire.arrived.ends, wire.heartbeat_positions])
    times_ns = np.concatenate([frame_ns, frame_ns, wire.heartbeat_times_ns])
    return _first_ns(edges, times_ns, ends)


def _first_ns(
    edges: NDArray[np.int64], times_ns: NDArray[np.int64], ends: NDArray[np.int64]
) -> NDArray[np.int64]:
    """Return, for each position in `ends`, the earliest time of an equal position in `edges`, or
    END_OF_TIME_NS if `edges` does not contain it.
    """
    order = np.lexsort((times_ns, edges))
    known, first = np.unique(edges[order], return_index=True)
    at = np.searchsorted(known, ends)
    found = at < len(known)
    found[found] = known[at[found]] == ends[found]
    result = np.full(len(ends), END_OF_TIME_NS, dtype=np.int64)
    result[found] = times_ns[order][first][at[found]]
    return result


def _closed_ns(wire: Wire, naks: _Naks, start: int) -> NDArray[np.int64]:
    """For each NAK, return the earliest time at which a frame in its range was certainly received,
    or END_OF_TIME_NS if no such frame was received.
    """
    accepted = certainly_accepted(wire, start) & while_received(wire)
    frame_starts = wire.arrived.starts[accepted]
    frame_ns = wire.arrived.frames["time_ns"][accepted].astype(np.int64)
    starts, first = np.unique(frame_starts, return_index=True)
    ends, times_ns = wire.arrived.ends[accepted][first], frame_ns[first]
    low = np.searchsorted(ends, naks.starts, side="right")
    high = np.searchsorted(starts, naks.ends, side="left")
    bounds = np.stack([low, np.maximum(low, high)], axis=1).ravel()
    padded = np.append(times_ns, END_OF_TIME_NS)
    if len(bounds) == 0:
        return np.zeros(0, dtype=np.int64)
    least = np.minimum.reduceat(padded, bounds)[::2]
    return np.where(low < high, least, END_OF_TIME_NS)


def naks_paced(evidence: Evidence, traffic: TrafficCase) -> Finding:
    """A NAK is repeated only after the retry delay, and not after a part of its gap was filled.

    If NAKs are sent for all gaps, the retry delay is the measured repair time, and doubles. In a
    group without this mode, it is random, and only the second rule is checked.
    """
    wire, planned, pauses, case = present(
        evidence.wire(traffic),
        evidence.planned(traffic),
        pauses_of(evidence, traffic.to_host),
        evidence.case,
    )
    where = (evidence.name_of(evidence.folder.capture(traffic.to_host)),)
    naks, all_gaps = _naks(wire), has_all_gaps(evidence, traffic)
    is_group = parse_channel(traffic.channel).is_group
    delay_ns = parse_channel(traffic.receive).nak_delay_ns
    retry_ns = (NAK_DELAY_NS if delay_ns is None else delay_ns) * RETRY_RATIO
    limit_ns = STALE_VIRTUAL_NS if is_virtual(case) else STALE_NS
    late = _late_nak(wire, naks, planned.log.start_position, pauses, limit_ns)
    if late is not None:
        position, text = late
        violation = failed(PACED, text, traffic.id, evidence=where, position=position)
        return _unless_dropped(evidence, traffic, violation)
    if all_gaps:
        # The delay of a group is random.
        configured_ns = 0 if is_group else retry_ns
        repaired = _paced_by_repairs(wire, naks, configured_ns, traffic.id, where)
        return _unless_dropped(evidence, traffic, repaired)
    sent = f"{len(naks.starts)} {noun_for(len(naks.starts), 'NAK')}"
    if is_group:
        text = f"{sent}, none after a part of its gap was filled; a group's NAK delays are random"
        return passed(PACED, text, traffic.id, evidence=where, facts={"naks": len(naks.starts)})
    order = np.lexsort((naks.times_ns, naks.ends, naks.starts))
    ranges = np.stack([naks.starts[order], naks.ends[order]], axis=1)
    fresh = np.flatnonzero(np.any(np.diff(ranges, axis=0, prepend=-1) != 0, axis=1))
    counts = np.diff(np.append(fresh, len(ranges)))
    times_ns = naks.times_ns[order]
    lasted_ns = times_ns[fresh + counts - 1] - times_ns[fresh] if len(fresh) else counts
    frequent = np.flatnonzero((counts - 1) * retry_ns > lasted_ns + PACE_SLACK_NS)
    most = int(counts.max()) if len(counts) else 0
    facts = {"naks": len(ranges), "holes": len(fresh), "most_for_one": most}
    if len(frequent):
        at = int(frequent[np.argmin(times_ns[fresh[frequent]])])
        position, end = (int(each) for each in ranges[fresh[at]])
        text = (
            f"{int(counts[at])} NAKs for the same {end - position} bytes at position {position} "
            f"within {int(lasted_ns[at])} ns, expected an interval of {retry_ns} ns"
        )
        return failed(PACED, text, traffic.id, evidence=where, position=position, facts=facts)
    text = f"{sent} for {len(fresh)} {noun_for(len(fresh), 'gap')}, at most {most} for one gap"
    return passed(PACED, text, traffic.id, evidence=where, facts=facts)


def _paced_by_repairs(
    wire: Wire, naks: _Naks, configured_ns: int, about: str, where: tuple[str, ...]
) -> Finding:
    """Check that NAKs for the same byte are at least as far apart as the repair times measured
    until then require.
    """
    frame_ns = wire.arrived.frames["time_ns"].astype(np.int64)
    repaired_ns = _first_ns(wire.arrived.starts, frame_ns, naks.starts)
    earlier = earlier_naks(naks.times_ns, naks.starts, naks.ends)
    _, first = np.unique(wire.arrived.starts, return_index=True)
    packets_ns = np.sort(np.append(frame_ns[first], wire.heartbeat_times_ns))
    in_row = since_silence(naks.times_ns, naks.starts, naks.ends, packets_ns)
    least_ns = least_delays_ns(naks.times_ns, repaired_ns, earlier, in_row, configured_ns)
    waited_ns = naks.times_ns - earlier.last_ns
    most = int(earlier.counts.max(initial=-1)) + 1
    gaps = int((earlier.counts == 0).sum())
    facts = {"naks": len(naks.starts), "holes": gaps, "most_for_one": most}
    early = np.flatnonzero(waited_ns + PACE_SLACK_NS < least_ns)
    if len(early):
        at = int(early[0])
        position = int(naks.starts[at])
        text = (
            f"NAK {int(earlier.counts[at]) + 1} for position {position} was sent "
            f"{int(waited_ns[at])} ns after the previous one, expected at least "
            f"{int(least_ns[at])} ns according to the repairs until then; {len(early)} NAKs "
            "were too early"
        )
        return failed(PACED, text, about, evidence=where, position=position, facts=facts)
    text = f"{len(naks.starts)} NAKs for {gaps} gaps, at most {most} for one gap"
    return passed(PACED, text, about, evidence=where, facts=facts)


def _late_nak(
    wire: Wire, naks: _Naks, start: int, pauses: Pauses, limit_ns: int
) -> tuple[int, str] | None:
    """Return the first NAK sent too long after a part of its gap was filled."""
    closed_ns = _closed_ns(wire, naks, start)
    stale_ns = naks.times_ns - closed_ns - pauses.within_ns(closed_ns, naks.times_ns)
    late = np.flatnonzero(stale_ns > limit_ns)
    if len(late) == 0:
        return None
    position = int(naks.starts[late[0]])
    return position, (
        f"a NAK for position {position} was sent {int(stale_ns[late[0]]) // 1_000_000} ms after "
        f"a part of its gap was filled (limit {limit_ns // 1_000_000} ms); {len(late)} NAKs were "
        "too late"
    )
