"""What a receiver asks for: only whole holes that it can have seen, and not again too soon.

    arrived   |####|####|     |####|####|          a hole: what lies before it is there, what lies
                        ^     ^                    behind it begins where the hole ends
              asked for [-----)

All is causal, by the capture at the receiver's host: a driver knows of nothing that has not
arrived, and it takes what arrives in order. It may have turned away a frame that arrived beyond
what it was ready to take, or inside a datagram whose first frame it had already; such a frame
counts as possibly there and possibly not.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from windtunnel.harness.dissect.frames.flow import positions
from windtunnel.harness.dissect.frames.frames import FRAME_ALIGNMENT
from windtunnel.harness.scenario.resolved.case import TrafficCase
from windtunnel.harness.scenario.schema.channel import parse_channel
from windtunnel.harness.verdict.checks.flow_control.window import status_messages
from windtunnel.harness.verdict.checks.retransmission.recovery import spilled
from windtunnel.harness.verdict.core.evidence import Evidence
from windtunnel.harness.verdict.core.finding import (
    Finding,
    Missing,
    could_not_look,
    failed,
    passed,
    together,
)
from windtunnel.harness.verdict.core.outcome import Outcome
from windtunnel.harness.verdict.core.wire import Wire
from windtunnel.harness.verdict.views.pauses import Pauses, pauses_of
from windtunnel.harness.verdict.views.series import (
    END_OF_TIME_NS,
    contiguous_by,
    highest_by,
    known_at,
)

ONLY_GAPS = "naks_only_for_gaps"
PACED = "naks_paced"

STALE_NS = 100_000_000
"""A NAK this long after its hole was closed is wrong: Aeron's drivers count a duty cycle of more
than 100 ms as exceeding its threshold, so within that a driver that is well has looked again."""

NAK_DELAY_NS = 1_000
"""A unicast receiver's default, and its ratio of the retry delay to the first."""
RETRY_RATIO = 100
PACE_SLACK_NS = 5_000_000
"""The first of several NAKs may leave late by a time slice of the system, and the last may not."""


@dataclass(frozen=True)
class _Asked:
    """The NAKs of one stream as ranges of positions, in order of time."""

    times_ns: NDArray[np.int64]
    starts: NDArray[np.int64]
    ends: NDArray[np.int64]


def _asked(wire: Wire) -> _Asked:
    naks = wire.naks(wire.answering)
    starts = wire.nak_positions(naks)
    times_ns = naks["time_ns"].astype(np.int64)
    return _Asked(times_ns, starts, starts + naks["nak_length"])


def naks_only_for_gaps(evidence: Evidence, traffic: TrafficCase) -> Finding:
    """Each NAK asks for one whole hole that the receiver's host could see when it was sent."""
    wire, planned = evidence.wire(traffic), evidence.planned(traffic)
    if isinstance(wire, Missing):
        return could_not_look(ONLY_GAPS, wire, traffic.id)
    if isinstance(planned, Missing):
        return could_not_look(ONLY_GAPS, planned, traffic.id)
    where = (evidence.name_of(evidence.folder.capture(traffic.to_host)),)
    asked = _asked(wire)
    start = planned.log.start_position
    closed_ns = _closed_ns(wire, asked, start)
    facts = {"naks": len(asked.starts)}
    for wrong, what in _offences(wire, asked, start, closed_ns):
        at = np.flatnonzero(wrong)
        if len(at) == 0:
            continue
        first = int(at[0])
        position, end = int(asked.starts[first]), int(asked.ends[first])
        text = f"the NAK for {end - position} bytes at position {position} {what}"
        if len(at) > 1:
            text += f", and {len(at) - 1} more do so"
        dropped = spilled(evidence, traffic.to_host)
        if dropped:
            text += f"; yet its sockets dropped {dropped} datagrams that the capture has"
            return Finding(ONLY_GAPS, Outcome.INCONCLUSIVE, text, traffic.id, where, facts=facts)
        return failed(ONLY_GAPS, text, traffic.id, evidence=where, position=position, facts=facts)
    text = f"{len(asked.starts)} NAKs, each for a hole that was there"
    return passed(ONLY_GAPS, text, traffic.id, evidence=where, facts=facts)


def _offences(
    wire: Wire, asked: _Asked, start: int, closed_ns: NDArray[np.int64]
) -> list[tuple[NDArray[np.bool_], str]]:
    """By NAK what is wrong with it, the gravest first."""
    term_length = wire.facts.term_length
    times_ns = asked.times_ns
    last = asked.ends - 1
    uneven = (asked.starts % FRAME_ALIGNMENT != 0) | (asked.ends % FRAME_ALIGNMENT != 0)
    malformed = uneven | (asked.ends <= asked.starts) | (asked.starts < start)
    malformed |= asked.starts // term_length != last // term_length
    whole = known_at(*contiguous_by(wire, start), times_ns, start)
    seen_ns = _seen_ns(wire, asked.ends)
    known_ns = np.where(asked.ends % term_length == 0, seen_ns, _edge_ns(wire, asked.ends))
    return [
        (malformed, "is no stretch of whole frames within one term"),
        (seen_ns > times_ns, "goes beyond all that had arrived"),
        (closed_ns <= seen_ns, "covers frames that were there before its end was in sight"),
        (whole < asked.starts, "passes over an earlier hole"),
        (known_ns > times_ns, "ends where neither a frame nor a known position begins"),
    ]


def _seen_ns(wire: Wire, ends: NDArray[np.int64]) -> NDArray[np.int64]:
    """When something at or behind each of these positions had first arrived."""
    times_ns, tops = highest_by(wire)
    at = np.searchsorted(tops, ends, side="left")
    return np.append(times_ns, END_OF_TIME_NS)[at]


def _edge_ns(wire: Wire, ends: NDArray[np.int64]) -> NDArray[np.int64]:
    """When a frame that begins or ends at each of these positions, or a heartbeat, had arrived."""
    frame_ns = wire.arrived.frames["time_ns"].astype(np.int64)
    edges = np.concatenate([wire.arrived.starts, wire.arrived.ends, wire.heartbeats_arrived])
    times_ns = np.concatenate([frame_ns, frame_ns, wire.heartbeat_times_ns])
    return _first_ns(edges, times_ns, ends)


def _first_ns(
    edges: NDArray[np.int64], times_ns: NDArray[np.int64], wanted: NDArray[np.int64]
) -> NDArray[np.int64]:
    """The first time of each wanted position among some; END_OF_TIME_NS where it never comes."""
    order = np.lexsort((times_ns, edges))
    known, first = np.unique(edges[order], return_index=True)
    at = np.searchsorted(known, wanted)
    found = at < len(known)
    found[found] = known[at[found]] == wanted[found]
    result = np.full(len(wanted), END_OF_TIME_NS, dtype=np.int64)
    result[found] = times_ns[order][first][at[found]]
    return result


def _closed_ns(wire: Wire, asked: _Asked, start: int) -> NDArray[np.int64]:
    """When a frame within each range had first come for certain; END_OF_TIME_NS if never."""
    surely = surely_taken(wire, start)
    frame_starts = wire.arrived.starts[surely]
    frame_ns = wire.arrived.frames["time_ns"][surely].astype(np.int64)
    starts, first = np.unique(frame_starts, return_index=True)
    ends, times_ns = wire.arrived.ends[surely][first], frame_ns[first]
    low = np.searchsorted(ends, asked.starts, side="right")
    high = np.searchsorted(starts, asked.ends, side="left")
    bounds = np.stack([low, np.maximum(low, high)], axis=1).ravel()
    padded = np.append(times_ns, END_OF_TIME_NS)
    if len(bounds) == 0:
        return np.zeros(0, dtype=np.int64)
    least = np.minimum.reduceat(padded, bounds)[::2]
    return np.where(low < high, least, END_OF_TIME_NS)


def surely_taken(wire: Wire, start: int) -> NDArray[np.bool_]:
    """Which arrived frames a sound receiver has in its log from then on, whatever its state.

    A receiver takes a datagram by its first frame, and only if it ends within half a term of its
    last status message; if it has the first frame already it ignores all the others.
    """
    frames = wire.arrived.frames
    if len(frames) == 0:
        return np.zeros(0, dtype=np.bool_)
    heads = np.flatnonzero(np.diff(frames["datagram"], prepend=-1))
    sizes = np.diff(np.append(heads, len(frames)))
    head_of = np.repeat(heads, sizes)
    tail_ends = np.repeat(wire.arrived.ends[np.append(heads[1:], len(frames)) - 1], sizes)
    told = status_messages(wire.answering)
    consumed = positions(told, wire.facts.initial_term_id, wire.facts.term_length)
    consumed = np.maximum.accumulate(consumed) if len(consumed) else consumed
    times_ns = frames["time_ns"].astype(np.int64)
    last_told = known_at(told["time_ns"].astype(np.int64), consumed, times_ns, start)
    taken = tail_ends <= last_told + wire.facts.term_length // 2
    _, first_index = np.unique(wire.arrived.starts, return_index=True)
    fresh = np.zeros(len(frames), dtype=np.bool_)
    fresh[first_index] = True
    is_head = head_of == np.arange(len(frames))
    surely: NDArray[np.bool_] = taken & (is_head | fresh[head_of])
    return surely


def naks_paced(evidence: Evidence, traffic: TrafficCase) -> Finding:
    """A hole is asked for again only after the retry delay, and no more once it is closed."""
    found = together(
        evidence.wire(traffic), evidence.planned(traffic), pauses_of(evidence, traffic.to_host)
    )
    if isinstance(found, Missing):
        return could_not_look(PACED, found, traffic.id)
    wire, planned, pauses = found
    where = (evidence.name_of(evidence.folder.capture(traffic.to_host)),)
    if parse_channel(traffic.channel).is_group:
        text = "receivers of a group draw their delays by chance: there is no pace to hold them to"
        return Finding(PACED, Outcome.INCONCLUSIVE, text, traffic.id, where)
    delay_ns = parse_channel(traffic.receive).nak_delay_ns
    retry_ns = (NAK_DELAY_NS if delay_ns is None else delay_ns) * RETRY_RATIO
    asked = _asked(wire)
    order = np.lexsort((asked.times_ns, asked.ends, asked.starts))
    ranges = np.stack([asked.starts[order], asked.ends[order]], axis=1)
    fresh = np.flatnonzero(np.any(np.diff(ranges, axis=0, prepend=-1) != 0, axis=1))
    counts = np.diff(np.append(fresh, len(ranges)))
    times_ns = asked.times_ns[order]
    lasted_ns = times_ns[fresh + counts - 1] - times_ns[fresh] if len(fresh) else counts
    hurried = np.flatnonzero((counts - 1) * retry_ns > lasted_ns + PACE_SLACK_NS)
    most = int(counts.max()) if len(counts) else 0
    facts = {"naks": len(ranges), "holes": len(fresh), "most_for_one": most}
    late = _late(wire, asked, planned.log.start_position, pauses)
    if late is not None:
        position, text = late
        return failed(PACED, text, traffic.id, evidence=where, position=position, facts=facts)
    if len(hurried):
        at = int(hurried[np.argmin(times_ns[fresh[hurried]])])
        position, end = (int(each) for each in ranges[fresh[at]])
        text = (
            f"{int(counts[at])} NAKs for the same {end - position} bytes at position {position} "
            f"within {int(lasted_ns[at])} ns, where {retry_ns} ns lie between two"
        )
        return failed(PACED, text, traffic.id, evidence=where, position=position, facts=facts)
    text = f"{len(ranges)} NAKs for {len(fresh)} holes, at most {most} for one"
    return passed(PACED, text, traffic.id, evidence=where, facts=facts)


def _late(wire: Wire, asked: _Asked, start: int, pauses: Pauses) -> tuple[int, str] | None:
    """The first NAK that came long after its hole was closed."""
    closed_ns = _closed_ns(wire, asked, start)
    stale_ns = asked.times_ns - closed_ns - pauses.within_ns(closed_ns, asked.times_ns)
    late = np.flatnonzero(stale_ns > STALE_NS)
    if len(late) == 0:
        return None
    position = int(asked.starts[late[0]])
    return position, (
        f"a NAK for position {position} came {int(stale_ns[late[0]]) // 1_000_000} ms after its "
        f"hole was closed, limit {STALE_NS // 1_000_000}; {len(late)} came so late"
    )
