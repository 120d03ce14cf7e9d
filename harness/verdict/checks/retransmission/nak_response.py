"""Checks that a sender's responses to NAKs are complete, and that its driver counts them.

    NAKs     [--------)             [--------)
    sent          #  #  #                 #  #  #

A response is a series of retransmitted datagrams that are contiguous in the log and consecutive on
the wire: a sender sends nothing else of the stream in between. In a group, a NAK of any receiver
triggers a response, which goes to all receivers.
"""

import numpy as np
from numpy.typing import NDArray

from windtunnel.harness.artifact.noun_form import noun_for
from windtunnel.harness.dissect.driver_files import counter_key
from windtunnel.harness.scenario.resolved.case import TrafficCase
from windtunnel.harness.scenario.schema.channel import parse_channel
from windtunnel.harness.verdict.checks.retransmission.linger_times import linger_times
from windtunnel.harness.verdict.checks.retransmission.range_responses import (
    ANSWER_OF_RANGES_NS,
    Retransmits,
    covered_ends,
    has_ranges,
    joined,
    most_ranges,
    unanswered,
)
from windtunnel.harness.verdict.checks.retransmission.recovery import socket_drops, system_value
from windtunnel.harness.verdict.core.archive_wires import archive_wires, replays_to_itself
from windtunnel.harness.verdict.core.evidence import Evidence
from windtunnel.harness.verdict.core.finding import Finding, failed, finding_of, passed, present
from windtunnel.harness.verdict.core.outcome import Outcome
from windtunnel.harness.verdict.core.virtual import is_virtual
from windtunnel.harness.verdict.core.wire import Wire
from windtunnel.harness.verdict.views.pauses import Pauses, pauses_of
from windtunnel.harness.verdict.views.series import known_at
from windtunnel.harness.verdict.views.sessions import sessions_sent

WHOLE = "naks_answered_whole"
COUNTED = "retransmits_counted"

WINDOW_MAX = 128 * 1024
WINDOWS = 16
GROUP_WINDOWS = 4
"""Maximum number of windows in one response to a group. A window is at most half a term."""
LINGER_MAX_NS = 60_000_000
"""Maximum time for which a sender ignores NAKs for what it has sent."""
ANSWER_NS = 1_000_000
"""Maximum time between a NAK and its response in a simulation."""


def retransmits_of(wire: Wire) -> Retransmits:
    """Return the responses that the publisher's host sent to NAKs."""
    wire = wire.sent_once()
    frames = wire.sent.frames
    heads = np.flatnonzero(np.diff(frames["datagram"], prepend=-1))
    if len(heads) == 0:
        nothing = np.zeros(0, dtype=np.int64)
        return Retransmits(*(nothing,) * 6)
    again = wire.retransmitted()[heads]
    begins = wire.sent.starts[heads]
    ends = wire.sent.ends[np.append(heads[1:], len(frames)) - 1]
    reached = np.maximum.accumulate(np.where(again, begins.min(), ends))
    goes_on = np.zeros(len(heads), dtype=np.bool_)
    goes_on[1:] = again[1:] & again[:-1] & (begins[1:] == ends[:-1])
    first = np.flatnonzero(again & ~goes_on)
    fresh = np.flatnonzero(~goes_on)
    last = np.append(fresh[1:], len(heads))[np.searchsorted(fresh, first)] - 1
    times_ns = frames["time_ns"][heads].astype(np.int64)
    # A series ends with the first datagram of new data.
    runs = np.cumsum(~again)
    heads_of_runs = np.flatnonzero(again & np.append(True, ~again[:-1]))
    places = last - heads_of_runs[np.searchsorted(heads_of_runs, last, side="right") - 1] + 1
    return Retransmits(
        begins[first], ends[last], times_ns[first], reached[first], runs[first], places
    )


def naks_answered_whole(evidence: Evidence, traffic: TrafficCase) -> Finding:
    """The response to a NAK extends to the NAK's end, or to the end of the data sent so far. In a
    simulation, each NAK is answered that is not for a part of the last response.

    A sender of many ranges may divide it, and does not repeat what it sent recently.
    """
    wire, pauses = present(evidence.wire(traffic), pauses_of(evidence, traffic.from_host))
    pauses = pauses.with_backlogs()
    short_sends = system_value(evidence, traffic.from_host, counter_key.SHORT_SENDS)
    where = (evidence.name_of(evidence.folder.capture(traffic.from_host)),)
    found = retransmits_of(wire)
    is_full = bool(short_sends or socket_drops(evidence, traffic.from_host))
    if is_virtual(evidence.case) and not is_full and has_single_responses(evidence, traffic):
        ignored = _unanswered(wire, found, pauses)
        if ignored is not None:
            text = f"a NAK for position {ignored} was not answered, and is not for a part of the "
            text += "last response"
            return failed(WHOLE, text, traffic.id, evidence=where, position=ignored)
    ends = found.ends
    if has_ranges(evidence, traffic):
        linger = linger_times(evidence, traffic)
        late = None
        if is_virtual(evidence.case) and not is_full:
            late = unanswered(wire, linger, pauses)
        if late is not None:
            text = f"a NAK for position {late} was not answered within {ANSWER_OF_RANGES_NS} ns"
            return failed(WHOLE, text, traffic.id, evidence=where, position=late)
        found = joined(found)
        ends = covered_ends(found)
    required = _required_ends(wire, found, max_retransmit_bytes(traffic, wire.facts.term_length))
    short = np.flatnonzero(ends < required)
    facts = {"answers": len(found.starts), "short": len(short), "short_sends": short_sends}
    # A short send ends a response, and the rest is requested again.
    if len(short) > short_sends:
        at = int(short[0])
        position, end = int(found.starts[at]), int(ends[at])
        text = (
            f"the response to a NAK at position {position} ended at {end}, expected "
            f"{int(required[at])}; {len(short)} of {len(found.starts)} responses are too short"
        )
        return failed(WHOLE, text, traffic.id, evidence=where, position=position, facts=facts)
    responses = noun_for(len(found.starts), "response")
    text = f"{len(found.starts)} {responses}, each up to the end of its NAK"
    return passed(WHOLE, text, traffic.id, evidence=where, facts=facts)


def has_single_responses(evidence: Evidence, traffic: TrafficCase) -> bool:
    """Return whether a sender remembers only its last response."""
    is_group = parse_channel(traffic.channel).is_group or len(traffic.publishers) > 1
    return not is_group and not has_ranges(evidence, traffic) and not traffic.rejoins


def _unanswered(wire: Wire, found: Retransmits, pauses: Pauses) -> int | None:
    """Return the position of the first NAK that its sender had to answer and did not, or None.

    It may ignore a NAK for a part of its last response, and for data that it did not send in the
    last half of a term. When exactly it looked at the NAK is not known.
    """
    naks = wire.naks(wire.feedback_arrived_from_all)
    begins, times_ns = wire.nak_positions(naks), naks["time_ns"].astype(np.int64)
    frames_ns = wire.sent.frames["time_ns"].astype(np.int64)
    tops = np.maximum.accumulate(wire.sent.ends) if len(frames_ns) else frames_ns
    # A paused driver looks at a NAK after the pause.
    by_ns = pauses.due_ns(times_ns, ANSWER_NS)
    looked_ns = np.where(by_ns == times_ns + ANSWER_NS, times_ns, by_ns)
    sent = known_at(frames_ns, tops, times_ns - ANSWER_NS, 0)
    sent_later = known_at(frames_ns, tops, by_ns, 0)
    known = np.isin(begins, wire.sent.starts) & (begins < sent)
    known &= (begins >= sent_later - wire.facts.term_length // 2) & (naks["nak_length"] > 0)
    known &= by_ns < int(frames_ns.max(initial=0))
    asked = begins + naks["nak_length"].astype(np.int64)
    order = np.argsort(found.times_ns, kind="stable")
    answers_ns, starts, ends = found.times_ns[order], found.starts[order], found.ends[order]

    def is_part(begin: int, now_ns: int) -> bool:
        """Return whether a position is a part of the last response at a time."""
        last = int(np.searchsorted(answers_ns, now_ns)) - 1
        if last < 0 or now_ns - int(answers_ns[last]) > LINGER_MAX_NS:
            return False
        same = (begins == starts[last]) & (times_ns <= now_ns)
        end = max(int(ends[last]), int(asked[same].max(initial=0)))
        return bool(starts[last] <= begin < end)

    columns = (begins, times_ns, looked_ns, by_ns)
    for begin, time_ns, look_ns, due_ns in zip(
        *(each[known].tolist() for each in columns), strict=True
    ):
        near = (answers_ns >= time_ns - ANSWER_NS) & (answers_ns <= due_ns)
        if (near & (starts <= begin) & (begin < ends)).any():
            continue
        if not any(is_part(begin, each) for each in {time_ns, look_ns}):
            return int(begin)
    return None


def max_retransmit_bytes(traffic: TrafficCase, term_length: int) -> int:
    """Return the length in bytes of the longest NAK response that every driver must support."""
    channel = parse_channel(traffic.channel)
    configured = channel.flow_control.answered_windows
    # For unicast some drivers use the channel's parameter, others the driver's setting only.
    windows = (
        (configured or GROUP_WINDOWS) if channel.is_group else min(WINDOWS, configured or WINDOWS)
    )
    return min(WINDOW_MAX, term_length // 2) * windows


def _required_ends(wire: Wire, found: Retransmits, longest: int) -> NDArray[np.int64]:
    """Return the position that each response must reach: the end of the shortest NAK with the same
    start, but not beyond the data sent.
    """
    naks = wire.naks(wire.feedback_arrived_from_all)
    starts = wire.nak_positions(naks)
    term_length = wire.facts.term_length
    room = term_length - starts % term_length
    ends = starts + np.minimum(np.minimum(naks["nak_length"], room), longest)
    times_ns = naks["time_ns"].astype(np.int64)
    edges = np.unique(wire.sent.ends)
    required = np.zeros(len(found.starts), dtype=np.int64)
    for index, start in enumerate(found.starts):
        matching = (starts == start) & (times_ns <= found.times_ns[index])
        if matching.any():
            limit = min(int(ends[matching].min()), int(found.sent[index]))
            # Frames are never sent partially.
            at = int(np.searchsorted(edges, limit, side="right")) - 1
            required[index] = edges[at] if at >= 0 else 0
    return required


def has_one_port(wire: Wire) -> bool:
    """Return whether a stream is sent to one port of the receiving host, so that no frame is a copy
    for another one.
    """
    return len(np.unique(wire.sent.frames["destination_port"])) <= 1


def retransmits_counted(evidence: Evidence, traffics: list[TrafficCase]) -> list[Finding]:
    """A driver counts one retransmit for each response, and at most one for each NAK.

    A sender of many ranges counts each of them. The archive's streams count, too. What it replays
    to its own host is not captured, so there is no upper limit then.
    """
    hosts = sorted({each.from_host for each in traffics})
    return [finding_of(COUNTED, host, _host_counts, evidence, host) for host in hosts]


def _host_counts(evidence: Evidence, host: str) -> Finding:
    case = present(evidence.case)
    value = system_value(evidence, host, counter_key.RETRANSMITS_SENT)
    where = (
        evidence.name_of(evidence.folder.host(host).counters),
        evidence.name_of(evidence.folder.capture(host)),
    )
    least = most = 0
    own = [each for each in case.traffic if host in each.publishers]
    for traffic in (each for stream in own for each in sessions_sent(evidence, stream.at(host))):
        wires = _wires(evidence, traffic, host)
        if not all(has_one_port(each) for each in wires):
            text = (
                f"{traffic.id} is sent to several ports of one host, so copies look like "
                "retransmits"
            )
            return Finding(COUNTED, Outcome.INCONCLUSIVE, text, host, where)
        fewest, limit = _bounds(wires, is_ranged=has_ranges(evidence, traffic))
        least, most = least + fewest, most + limit
    for flow, wire in archive_wires(evidence):
        if flow.from_host == host:
            fewest, limit = _bounds([wire], is_ranged=False)
            least, most = least + fewest, most + limit
    if replays_to_itself(case, host):
        most = max(most, value)
    name = counter_key.SYSTEM_NAMES[counter_key.RETRANSMITS_SENT]
    facts = {"counted": value, "least": least, "most": most}
    if least > most:
        text = f"the capture shows {least} responses, but NAKs can have caused at most {most}"
        return failed(COUNTED, text, host, evidence=where, facts=facts)
    text = f"counter {counter_key.RETRANSMITS_SENT} '{name}' is {value}"
    if not least <= value <= most:
        text += f", expected {least} to {most} according to the capture"
        return failed(COUNTED, text, host, evidence=where, facts=facts)
    text += f", expected {least} to {most} according to the capture"
    return passed(COUNTED, text, host, evidence=where, facts=facts)


def _wires(evidence: Evidence, traffic: TrafficCase, host: str) -> list[Wire]:
    """Return the captures of a stream that the host publishes, one per subscriber."""
    flows = (traffic.between(host, each) for each in traffic.subscribers)
    return [present(evidence.wire(each)) for each in flows]


def _bounds(wires: list[Wire], *, is_ranged: bool) -> tuple[int, int]:
    """Return the minimum and maximum valid number of responses to a stream's NAKs."""
    # Two contiguous responses look like one.
    responses = [retransmits_of(each) for each in wires]
    if is_ranged:
        responses = [joined(each) for each in responses]
    least = max(len(each.starts) for each in responses)
    first = wires[0]
    most = len(first.naks(first.feedback_arrived_from_all))
    if is_ranged:
        most = max(len(each.sent.starts) for each in wires)
    # For a subscriber that joined late or left early, a retransmit for others may look new.
    if all(np.array_equal(each.sent.starts, first.sent.starts) for each in wires):
        most = min(most, len(np.unique(first.sent.frames["datagram"][first.retransmitted()])))
        if is_ranged:
            most = min(most, most_ranges(first, responses[0]))
    return least, most
