"""Checks that position counters increase, agree with the capture, and reach the stream's end."""

import numpy as np

from windtunnel.harness.dissect.driver_files import counter_key
from windtunnel.harness.scenario.resolved.case import TrafficCase
from windtunnel.harness.verdict.checks.counters.sent_datagrams import wrong_datagram
from windtunnel.harness.verdict.checks.retransmission.recovery import system_value
from windtunnel.harness.verdict.core.evidence import Evidence
from windtunnel.harness.verdict.core.evidence_contents import Planned
from windtunnel.harness.verdict.core.finding import (
    Finding,
    Missing,
    failed,
    finding_of,
    passed,
    present,
)
from windtunnel.harness.verdict.core.kind import Kind
from windtunnel.harness.verdict.core.outcome import Outcome
from windtunnel.harness.verdict.core.wire import MAY_HAVE_LEFT, Wire
from windtunnel.harness.verdict.views.acceptance import (
    certain_heartbeats,
    certainly_accepted,
    while_received,
)
from windtunnel.harness.verdict.views.series import (
    Series,
    known_at,
    least_series,
    received_by,
    stream_series,
)
from windtunnel.harness.verdict.views.sessions import joins_of

REACHES_END = "rcv_pos_reaches_end"
MONOTONIC = "rcv_pos_monotonic"
HWM = "rcv_hwm_from_wire"
INVALID = "invalid_packets_zero"
ALIGNMENT = 32


def rcv_pos_reaches_end(evidence: Evidence, traffic: TrafficCase) -> Finding:
    """The last sample of each position counter equals the end position of the stream.

    A forged frame for the last position may be longer than the genuine one. A receiver rejects it
    if the position is occupied, but still advances rcv-hwm by its length. Source: Aeron 1.53.
    """
    wire, planned = present(evidence.wire(traffic), evidence.planned(traffic))
    end = planned.log.end_position
    expected = (
        (traffic.from_host, counter_key.SENDER_POSITION, [end]),
        (traffic.to_host, counter_key.RECEIVER_HWM, [end, *_forged_beyond(wire, end)]),
        (traffic.to_host, counter_key.RECEIVER_POSITION, [end]),
        (traffic.to_host, counter_key.SUBSCRIBER_POSITION, [end]),
    )
    for host, type_id, allowed in expected:
        is_read_twice = type_id == counter_key.SUBSCRIBER_POSITION and host == traffic.recorded
        # The last subscription is that of an archive, which may have been killed.
        series_of = least_series if is_read_twice else stream_series
        series = series_of(evidence, host, type_id, wire)
        if series.last not in allowed:
            text = f"{series.name} on {host} ended at {series.last}, expected {end}"
            where = _samples(evidence, host)
            return failed(REACHES_END, text, traffic.id, evidence=where, position=series.last)
    text = f"snd-pos, rcv-hwm, rcv-pos and sub-pos all ended at {end}"
    return passed(REACHES_END, text, traffic.id)


def _forged_beyond(wire: Wire, end: int) -> list[int]:
    """Return the ends of forged frames that begin before the stream's end and extend beyond it."""
    forged = wire.forged
    across = (forged.starts < end) & (forged.ends > end)
    return [int(each) for each in forged.ends[across]]


def rcv_pos_monotonic(evidence: Evidence, traffic: TrafficCase) -> Finding:
    """rcv-pos and rcv-hwm never decrease and are multiples of 32, and rcv-pos never exceeds rcv-hwm
    or the data that arrived.
    """
    wire, planned, hwm, position = _receiver(evidence, traffic)
    where = _samples(evidence, traffic.to_host)
    for series in (hwm, position):
        for at, what in _irregularities(series):
            value = int(series.values[at])
            text = f"{series.name} {what} at sample {at}: {value}"
            return failed(MONOTONIC, text, traffic.id, evidence=where, position=value)
    start = planned.log.start_position
    joins = joins_of(evidence, traffic, wire)
    times_ns, positions = received_by(wire, start, joins, contiguous=traffic.reliable)
    backing = "the data was contiguous" if traffic.reliable else "frames had arrived"
    backed = known_at(times_ns, positions, position.read_before_ns, start)
    following = known_at(hwm.times_ns, hwm.values, position.read_before_ns, start)
    for limit, reason in ((backed, backing), (following, "rcv-hwm had advanced")):
        ahead = np.flatnonzero(position.values > limit)
        if len(ahead):
            at = int(ahead[0])
            value = int(position.values[at])
            text = f"rcv-pos was {value} when {reason} only up to {int(limit[at])}"
            where = (*where, evidence.name_of(evidence.folder.capture(traffic.to_host)))
            return failed(MONOTONIC, text, traffic.id, evidence=where, position=value)
    text = (
        f"{len(position.values)} samples of rcv-pos and {len(hwm.values)} of rcv-hwm never "
        f"decrease and never exceed the data"
    )
    return passed(MONOTONIC, text, traffic.id, evidence=where)


def _irregularities(series: Series) -> list[tuple[int, str]]:
    found = []
    falls = 1 + np.flatnonzero(np.diff(series.values) < 0)
    uneven = np.flatnonzero(series.values % ALIGNMENT)
    if len(falls):
        found.append((int(falls[0]), "decreases"))
    if len(uneven):
        found.append((int(uneven[0]), f"is not a multiple of {ALIGNMENT}"))
    return sorted(found)


def rcv_hwm_from_wire(evidence: Evidence, traffic: TrafficCase) -> Finding:
    """rcv-hwm never exceeds the highest position that has arrived, and finally equals it.

    A receiver rejects what is too far ahead of its subscriber. If the highest positions were, it
    finally is a lower one that arrived.
    """
    wire, planned, hwm, _ = _receiver(evidence, traffic)
    where = (
        *_samples(evidence, traffic.to_host),
        evidence.name_of(evidence.folder.capture(traffic.to_host)),
    )
    start = planned.log.start_position
    joins = joins_of(evidence, traffic, wire)
    times_ns, positions = received_by(wire, start, joins, contiguous=False)
    arrived = known_at(times_ns, positions, hwm.read_before_ns, start)
    ahead = np.flatnonzero(hwm.values > arrived)
    if len(ahead):
        at = int(ahead[0])
        value = int(hwm.values[at])
        text = f"rcv-hwm was {value} when frames had arrived only up to {int(arrived[at])}"
        return failed(HWM, text, traffic.id, evidence=where, position=value)
    top = int(positions[-1]) if len(positions) else start
    begins = [start, *(position for _, position in joins)]
    arrivals = np.concatenate([begins, wire.arrived.ends, wire.heartbeat_positions])
    if hwm.last < _accepted_top(wire, start) or hwm.last not in arrivals:
        text = f"rcv-hwm ended at {hwm.last}, expected the highest arrived position {top}"
        if traffic.observed and wire.may_have_left_at(hwm.last):
            return Finding(HWM, Outcome.INCONCLUSIVE, f"{text}{MAY_HAVE_LEFT}", traffic.id, where)
        more = {"evidence": where, "position": hwm.last, "kind": Kind.LIVENESS}
        return failed(HWM, text, traffic.id, **more)
    text = f"rcv-hwm ended at {hwm.last}, and never exceeded what had arrived, up to {top}"
    if hwm.last == top:
        text = f"rcv-hwm ended at {top}, the highest arrived position, and never exceeded it"
    return passed(HWM, text, traffic.id, evidence=where)


def _accepted_top(wire: Wire, start: int) -> int:
    """Return the highest position that a receiver certainly did not reject."""
    accepted = wire.arrived.ends[certainly_accepted(wire, start) & while_received(wire)]
    beats = wire.heartbeat_positions[certain_heartbeats(wire, start)]
    return int(max(accepted.max(initial=start), beats.max(initial=start)))


def invalid_packets_zero(evidence: Evidence, traffics: list[TrafficCase]) -> list[Finding]:
    """No driver counted a datagram as invalid, or sent one that is not made of whole frames."""
    hosts = sorted({host for each in traffics for host in (each.from_host, each.to_host)})
    return [finding_of(INVALID, host, _valid_at, evidence, host) for host in hosts]


def _valid_at(evidence: Evidence, host: str) -> Finding:
    value = system_value(evidence, host, counter_key.INVALID_PACKETS)
    where = (evidence.name_of(evidence.folder.host(host).counters),)
    if value:
        text = f"counter {counter_key.INVALID_PACKETS} 'Invalid packets' is {value}, expected 0"
        return failed(INVALID, text, host, evidence=where)
    if problem := _wrong_datagram(evidence, host):
        where = (evidence.name_of(evidence.folder.capture(host)),)
        return failed(INVALID, problem, host, evidence=where)
    return passed(INVALID, "no invalid packets", host, evidence=where)


def _wrong_datagram(evidence: Evidence, host: str) -> str:
    """Return what is wrong with a datagram that a host sent, or "". A missing capture has a gate of
    its own.
    """
    capture, case = evidence.capture(host), evidence.case
    if isinstance(capture, Missing) or isinstance(case, Missing):
        return ""
    return wrong_datagram(capture, case.address(host))


def _receiver(evidence: Evidence, traffic: TrafficCase) -> tuple[Wire, Planned, Series, Series]:
    """Return a stream's captured frames, its message plan, and rcv-hwm and rcv-pos over time."""
    wire, planned = present(evidence.wire(traffic), evidence.planned(traffic))
    hwm = stream_series(evidence, traffic.to_host, counter_key.RECEIVER_HWM, wire)
    position = stream_series(evidence, traffic.to_host, counter_key.RECEIVER_POSITION, wire)
    return wire, planned, hwm, position


def _samples(evidence: Evidence, host: str) -> tuple[str, ...]:
    files = evidence.folder.host(host)
    return evidence.name_of(files.counter_samples), evidence.name_of(files.counters)
