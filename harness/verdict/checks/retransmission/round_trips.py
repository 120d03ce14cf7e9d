"""Check of the sender's round-trip measurements: its requests, their replies, and the result.

    sender    request ---------- NAK     request (100 ms after the reply at the earliest)
                 |       reply    |         |                          snd-rtt = smoothed times
    receiver     +--------+       |         +---

A sender with retransmit ranges sends a request when a receiver has connected, and again after a
NAK. Without a reply it waits for 2 s. All other senders, and those of a group, send none. A request
is answered at once, with its timestamp, by receivers and senders of every driver. The mode is
Windtunnel's.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from windtunnel.harness.artifact.host.counter_sample import CounterFacts
from windtunnel.harness.dissect.driver_files import counter_key
from windtunnel.harness.dissect.frames.layout import RTTM_FLAG_REPLY, SM_FLAG_END_OF_STREAM
from windtunnel.harness.dissect.frames.observed_flows import END_OF_TIME_NS
from windtunnel.harness.scenario.resolved.case import TrafficCase
from windtunnel.harness.scenario.schema.channel import parse_channel
from windtunnel.harness.verdict.checks.retransmission.nak_times import SLACK_NS
from windtunnel.harness.verdict.checks.retransmission.range_responses import has_ranges
from windtunnel.harness.verdict.checks.retransmission.rtt_frames import (
    RttFrame,
    RttFrames,
    rtt_frames,
)
from windtunnel.harness.verdict.core.evidence import Evidence
from windtunnel.harness.verdict.core.finding import Finding, failed, passed, present
from windtunnel.harness.verdict.core.virtual import is_virtual
from windtunnel.harness.verdict.core.wire import Wire, status_messages
from windtunnel.harness.verdict.views.pauses import Pauses, pauses_of

MEASURED = "round_trips_measured"

INTERVAL_NS = 100_000_000
"""Minimum time from a reply to the next request. Source: docs/loss-recovery-sender.md."""
REPLY_TIMEOUT_NS = 2_000_000_000
"""Time without a reply until another request."""
LATE_NS = 1_000_000_000
"""Tolerance in real time, in which the machine can stop a driver for a while."""
SAMPLE_NS_MAX = 2_000_000_000
"""Longer measurements count as this long."""
CONNECTED_NS = 4_900_000_000
"""Time after a status message for which its receiver certainly is connected."""


@dataclass(frozen=True)
class _Side:
    """What one host sent, and what arrived there from the other one."""

    sent: RttFrames
    arrived: RttFrames
    pauses: Pauses
    last_ns: int
    "The last time at which the host's part of the stream certainly existed."


def round_trips_measured(evidence: Evidence, traffic: TrafficCase) -> Finding:
    """A sender with retransmit ranges measures its round-trip time when it is connected and after
    NAKs, at most every 100 ms, and snd-rtt is the smoothed time; every request is answered.
    """
    wire = present(evidence.wire(traffic))
    near, far = (_side(evidence, traffic, near=each) for each in (True, False))
    counted = present(evidence.counters_of_streams(traffic.from_host))
    where = tuple(
        evidence.name_of(evidence.folder.capture(each))
        for each in (traffic.from_host, traffic.to_host)
    )
    is_exact, is_group = is_virtual(evidence.case), parse_channel(traffic.channel).is_group
    limit_ns = SLACK_NS if is_exact else LATE_NS
    problem = _fields(near) or _fields(far)
    problem = problem or _answers(far, limit_ns) or ("" if is_group else _answers(near, limit_ns))
    asks = has_ranges(evidence, traffic) and not is_group
    if not problem and not asks and near.sent.requests:
        problem = "the sender requested its round-trip time, expected no request"
    if not problem and asks:
        problem = _requests(wire, near, limit_ns, is_exact=is_exact)
    values = _round_trip_counters(wire, counted.counters)
    if not problem and asks and is_exact and len(traffic.publishers) == 1:
        problem = _measured(near, values)
    if problem:
        return failed(MEASURED, problem, traffic.id, evidence=where)
    text = f"{len(near.sent.requests)} requests, {len(far.sent.replies)} replies"
    return passed(MEASURED, text, traffic.id, evidence=where)


def _side(evidence: Evidence, traffic: TrafficCase, *, near: bool) -> _Side:
    own, other = traffic.from_host, traffic.to_host
    own, other = (own, other) if near else (other, own)
    wire, case, capture, pauses = present(
        evidence.wire(traffic),
        evidence.case,
        evidence.capture_of_streams(own),
        pauses_of(evidence, own),
    )
    frames = wire.heartbeats_sent if near else wire.feedback_sent
    last_ns = int(frames["time_ns"].max(initial=0))
    if near:
        last_ns = max(last_ns, int(wire.sent.frames["time_ns"].max(initial=0)))
    return _Side(
        rtt_frames(capture, wire.facts, case.address(own)),
        rtt_frames(capture, wire.facts, case.address(other)),
        pauses,
        last_ns,
    )


def _fields(side: _Side) -> str:
    """Return what is wrong with the fields of the RTTM frames that a host sent."""
    for request in side.sent.requests:
        if request.flags != RTTM_FLAG_REPLY or request.delta_ns != 0:
            return (
                f"an RTTM request has flags {request.flags:#04x} and reception delta "
                f"{request.delta_ns} ns, expected {RTTM_FLAG_REPLY:#04x} and 0 ns"
            )
    for reply in side.sent.replies:
        if reply.flags:
            return f"an RTTM reply has flags {reply.flags:#04x}, expected 0x00"
    return ""


def _answers(side: _Side, limit_ns: int) -> str:
    """Return what is wrong with a host's answers to the requests that arrived there."""
    left = list(side.sent.replies)
    for request in side.arrived.requests:
        due_ns = _due_ns(side.pauses, request.time_ns, limit_ns)
        answer = next(
            (
                each
                for each in left
                if each.echo == request.echo and each.time_ns >= request.time_ns
            ),
            None,
        )
        if answer is not None:
            left.remove(answer)
        if side.last_ns > due_ns and (answer is None or answer.time_ns > due_ns):
            return f"a request was not answered within {due_ns - request.time_ns} ns"
    if left:
        return f"{len(left)} replies answer no request that had arrived, or answer one twice"
    if any(each.delta_ns < 0 for each in side.sent.replies):
        return "a reply was delayed for a negative time"
    return ""


def _due_ns(pauses: Pauses, from_ns: int, duration_ns: int) -> int:
    return int(pauses.due_ns(np.array([from_ns]), duration_ns)[0])


def _accepted(side: _Side) -> list[tuple[RttFrame, int]]:
    """Return each request that had a reply before the next one, and when its first reply was read:
    one that came in a pause, at its end.
    """
    found = []
    for at, request in enumerate(side.sent.requests):
        next_ns = side.sent.requests[at + 1].time_ns if at + 1 < len(side.sent.requests) else None
        for reply in side.arrived.replies:
            is_in_time = next_ns is None or reply.time_ns < next_ns
            if reply.echo == request.echo and reply.time_ns > request.time_ns and is_in_time:
                found.append((request, _due_ns(side.pauses, reply.time_ns, 1) - 1))
                break
    return found


def _requests(wire: Wire, near: _Side, limit_ns: int, *, is_exact: bool) -> str:
    """Return what is wrong with the times of the sender's requests. A driver may read a NAK up to
    `limit_ns` after it arrived.
    """
    answers = dict(_accepted(near))
    statuses = status_messages(wire.feedback_arrived)
    statuses_ns = np.sort(statuses["time_ns"].astype(np.int64))
    # After a status message with EOS, the sender has no receiver.
    is_done = (statuses["flags"] & SM_FLAG_END_OF_STREAM) != 0
    left_ns = int(statuses["time_ns"][is_done].min(initial=END_OF_TIME_NS))
    naks_ns = _valid_naks_ns(wire)
    if len(statuses_ns) == 0:
        return ""
    from_ns, is_known = int(statuses_ns[0]), False
    wanted_ns: int | None = from_ns
    for request in (*near.sent.requests, None):
        time_ns = near.last_ns if request is None else request.time_ns
        if request is not None and time_ns + SLACK_NS < from_ns:
            return f"a request was sent {from_ns - time_ns} ns early"
        if request is not None and is_known and not _was_asked(wire, near, time_ns, limit_ns):
            return "a request was sent although no NAK had arrived since the previous one"
        if is_exact and wanted_ns is not None:
            due_ns = _due_ns(near.pauses, max(from_ns, wanted_ns), SLACK_NS)
            is_missing = due_ns < min(time_ns, left_ns)
            if is_missing and _is_connected(statuses_ns, from_ns, due_ns):
                return f"a request was due, but was not sent until {SLACK_NS} ns later"
        if request is None:
            break
        reply_ns = answers.get(request)
        is_known = is_known or reply_ns is not None
        from_ns = time_ns + REPLY_TIMEOUT_NS if reply_ns is None else reply_ns + INTERVAL_NS
        later_ns = naks_ns[naks_ns > time_ns]
        wanted_ns = (int(later_ns[0]) if len(later_ns) else None) if is_known else time_ns
    return ""


def _was_asked(wire: Wire, near: _Side, time_ns: int, limit_ns: int) -> bool:
    """Return whether a NAK may have been read since the request before `time_ns`."""
    naks_ns = wire.naks(wire.feedback_arrived)["time_ns"].astype(np.int64)
    before_ns = max(each.time_ns for each in near.sent.requests if each.time_ns < time_ns)
    return bool(((naks_ns >= before_ns - limit_ns) & (naks_ns <= time_ns)).any())


def _is_connected(statuses_ns: NDArray[np.int64], from_ns: int, until_ns: int) -> bool:
    """Return whether a receiver was connected in a whole time range."""
    at = int(np.searchsorted(statuses_ns, from_ns, side="right")) - 1
    inner = statuses_ns[(statuses_ns > from_ns) & (statuses_ns < until_ns)]
    points = np.concatenate([statuses_ns[max(at, 0) : at + 1], inner, [until_ns]])
    return at >= 0 and bool((np.diff(points) < CONNECTED_NS).all())


def _valid_naks_ns(wire: Wire) -> NDArray[np.int64]:
    """Return when NAKs arrived for data that the sender certainly still had and had sent."""
    naks = wire.naks(wire.feedback_arrived)
    times_ns = naks["time_ns"].astype(np.int64)
    starts = wire.nak_positions(naks)
    sent_ns = wire.sent.frames["time_ns"].astype(np.int64)
    tops = np.append(0, np.maximum.accumulate(wire.sent.ends)) if len(sent_ns) else np.zeros(1)
    # A driver may have read a NAK before or after it sent what left at the same time.
    low, high = (tops[np.searchsorted(sent_ns, times_ns + each)] for each in (-SLACK_NS, SLACK_NS))
    is_valid = (starts < low) & (starts >= high - wire.facts.term_length // 2)
    return np.sort(times_ns[is_valid])


def _round_trip_counters(wire: Wire, counters: Sequence[CounterFacts]) -> list[int]:
    facts = wire.facts
    found = counter_key.of_stream(
        counters, counter_key.SENDER_ROUND_TRIP_TIME, facts.session_id, facts.stream_id
    )
    return [each.final_value for each in found]


def _measured(near: _Side, values: list[int]) -> str:
    """Return what is wrong with snd-rtt: it must be the smoothed time of the replies, with or
    without the last one, which may not have been processed.
    """
    if len(values) != 1:
        return f"the stream has {len(values)} counters snd-rtt, expected one"
    pairs = _accepted(near)
    samples = [min(read_ns - request.time_ns, SAMPLE_NS_MAX) for request, read_ns in pairs]
    expected = {_smoothed(samples), _smoothed(samples[:-1])}
    if any(abs(values[0] - each) <= (SLACK_NS if each else 0) for each in expected):
        return ""
    return f"snd-rtt is {values[0]}, expected about {_smoothed(samples)} from the replies"


def _smoothed(samples: list[int]) -> int:
    """Return the smoothed time, as in RFC 6298."""
    smoothed = 0
    for sample in samples:
        smoothed = smoothed + (sample - smoothed) // 8 if smoothed else sample
    return smoothed
