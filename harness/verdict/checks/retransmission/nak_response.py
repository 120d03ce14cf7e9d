"""Each NAK is answered in one go, whole, and not again while the answer may still be under way.

    NAKs     [--------)             [--------)      [--------)
    sent          #  #  #           passed over           #  #  #
                  |<------- 10 ms ------------->|

An answer is a stretch of datagrams that were sent before and follow each other, in the log and on
the wire: a sender does nothing else with its stream meanwhile. Of a group any reader's NAK makes
one, and all its readers get it.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from windtunnel.harness.dissect.driver_files import counter_key
from windtunnel.harness.dissect.frames.flow import positions
from windtunnel.harness.scenario.resolved.case import TrafficCase
from windtunnel.harness.scenario.schema.channel import parse_channel
from windtunnel.harness.verdict.checks.retransmission.recovery import system_value
from windtunnel.harness.verdict.core.evidence import Evidence
from windtunnel.harness.verdict.core.finding import Finding, Missing, could_not_look, failed, passed
from windtunnel.harness.verdict.core.outcome import Outcome
from windtunnel.harness.verdict.core.wire import Wire

WHOLE = "naks_answered_whole"
SPACED = "retransmits_spaced"
COUNTED = "retransmits_counted"

WINDOW_MAX = 128 * 1024
WINDOWS = 16
GROUP_WINDOWS = 4
"""One answer of a stream brings at most so many windows, each half a term at most."""
LINGER_NS = 10_000_000
LINGER_SLACK_NS = 1_000_000
"""For the times of a capture."""


@dataclass(frozen=True)
class Answers:
    """What was sent again, in order of time: where each answer begins, ends, and when."""

    starts: NDArray[np.int64]
    ends: NDArray[np.int64]
    times_ns: NDArray[np.int64]
    sent: NDArray[np.int64]
    "How far the stream had been sent by then."


def answers(wire: Wire) -> Answers:
    """The answers that a publisher's host has sent."""
    frames = wire.sent.frames
    heads = np.flatnonzero(np.diff(frames["datagram"], prepend=-1))
    if len(heads) == 0:
        nothing = np.zeros(0, dtype=np.int64)
        return Answers(nothing, nothing, nothing, nothing)
    again = wire.resent()[heads]
    begins = wire.sent.starts[heads]
    ends = wire.sent.ends[np.append(heads[1:], len(frames)) - 1]
    reached = np.maximum.accumulate(np.where(again, begins.min(), ends))
    goes_on = np.zeros(len(heads), dtype=np.bool_)
    goes_on[1:] = again[1:] & again[:-1] & (begins[1:] == ends[:-1])
    first = np.flatnonzero(again & ~goes_on)
    fresh = np.flatnonzero(~goes_on)
    last = np.append(fresh[1:], len(heads))[np.searchsorted(fresh, first)] - 1
    times_ns = frames["time_ns"][heads].astype(np.int64)
    return Answers(begins[first], ends[last], times_ns[first], reached[first])


def naks_answered_whole(evidence: Evidence, traffic: TrafficCase) -> Finding:
    """An answer to a NAK goes on to the end of what was asked for, as far as it had been sent."""
    wire = evidence.wire(traffic)
    if isinstance(wire, Missing):
        return could_not_look(WHOLE, wire, traffic.id)
    short_sends = system_value(evidence, traffic.from_host, counter_key.SHORT_SENDS)
    if isinstance(short_sends, Missing):
        return could_not_look(WHOLE, short_sends, traffic.id)
    where = (evidence.name_of(evidence.folder.capture(traffic.from_host)),)
    found = answers(wire)
    wanted = _wanted_ends(wire, found, longest_answer(traffic, wire.facts.term_length))
    short = np.flatnonzero(found.ends < wanted)
    facts = {"answers": len(found.starts), "short": len(short), "short_sends": short_sends}
    # What the system refused to send ends an answer, and is asked for again.
    if len(short) > short_sends:
        at = int(short[0])
        position, end = int(found.starts[at]), int(found.ends[at])
        text = (
            f"the answer to a NAK at position {position} ended at {end}, asked for and sent "
            f"before was all up to {int(wanted[at])}; {len(short)} of {len(found.starts)} are so"
        )
        return failed(WHOLE, text, traffic.id, evidence=where, position=position, facts=facts)
    text = f"{len(found.starts)} answers, each to the end of its NAK"
    return passed(WHOLE, text, traffic.id, evidence=where, facts=facts)


def longest_answer(traffic: TrafficCase, term_length: int) -> int:
    """Bytes that one NAK may surely ask for, by Aeron's defaults or the word of the channel."""
    channel = parse_channel(traffic.channel)
    told = channel.flow_control.answered_windows
    # Of one destination some drivers heed the channel's word, others the driver's setting alone.
    windows = (told or GROUP_WINDOWS) if channel.is_group else min(WINDOWS, told or WINDOWS)
    return min(WINDOW_MAX, term_length // 2) * windows


def _wanted_ends(wire: Wire, found: Answers, longest: int) -> NDArray[np.int64]:
    """How far each answer must go at least: the shortest NAK for its place says so."""
    naks = wire.naks(wire.answered_by_all)
    starts = wire.nak_positions(naks)
    term_length = wire.facts.term_length
    room = term_length - starts % term_length
    ends = starts + np.minimum(np.minimum(naks["nak_length"], room), longest)
    times_ns = naks["time_ns"].astype(np.int64)
    edges = np.unique(wire.sent.ends)
    wanted = np.zeros(len(found.starts), dtype=np.int64)
    for index, start in enumerate(found.starts):
        meant = (starts == start) & (times_ns <= found.times_ns[index])
        if meant.any():
            limit = min(int(ends[meant].min()), int(found.sent[index]))
            # No frame is sent in part.
            at = int(np.searchsorted(edges, limit, side="right")) - 1
            wanted[index] = edges[at] if at >= 0 else 0
    return wanted


def retransmits_spaced(evidence: Evidence, traffic: TrafficCase) -> Finding:
    """A NAK for what was sent again less than 10 ms ago is passed over.

    The linger counts from when the sender looked at its clock, and an answer may leave any time
    later: two may be as near as one likes, but of three the last comes 10 ms behind the first.
    """
    wire = evidence.wire(traffic)
    if isinstance(wire, Missing):
        return could_not_look(SPACED, wire, traffic.id)
    where = (evidence.name_of(evidence.folder.capture(traffic.from_host)),)
    found = answers(wire)
    naks = wire.naks(wire.answered_by_all)
    asked_at = positions(naks, wire.facts.initial_term_id, wire.facts.term_length)
    asked_ns = naks["time_ns"].astype(np.int64)
    least_ns = LINGER_NS - LINGER_SLACK_NS
    same = (found.starts[1:-1] == found.starts[:-2]) & (found.starts[2:] == found.starts[:-2])
    near = found.times_ns[2:] - found.times_ns[:-2] < least_ns
    for at in np.flatnonzero(same & near).tolist():
        first_ns, third_ns = int(found.times_ns[at]), int(found.times_ns[at + 2])
        position = int(found.starts[at])
        since_ns = _asked_since_ns(asked_ns[asked_at == position], first_ns)
        between = (asked_ns > since_ns) & (asked_ns <= third_ns)
        # A unicast sender remembers its last answer only, and one NAK for elsewhere makes another.
        if (asked_at[between] != position).any():
            continue
        text = (
            f"position {position} was sent again three times within {third_ns - first_ns} ns, "
            f"where {LINGER_NS} lie between two"
        )
        return failed(SPACED, text, traffic.id, evidence=where, position=position)
    text = f"{len(found.starts)} answers, none of them to a NAK that had just been answered"
    return passed(SPACED, text, traffic.id, evidence=where)


def _asked_since_ns(asked_ns: NDArray[np.int64], answered_ns: int) -> int:
    """When the NAK can have come at the earliest that was answered then.

    What came behind it may have been taken from the socket behind it, and after its answer.
    """
    recent = asked_ns[(asked_ns <= answered_ns) & (asked_ns > answered_ns - LINGER_NS)]
    return int(recent.min(initial=answered_ns))


def retransmits_counted(evidence: Evidence, traffics: list[TrafficCase]) -> list[Finding]:
    """A driver counts as many retransmits as it has sent answers, and no more than were asked."""
    return [_host_counts(evidence, host) for host in sorted({each.from_host for each in traffics})]


def _host_counts(evidence: Evidence, host: str) -> Finding:
    case, value = evidence.case, system_value(evidence, host, counter_key.RETRANSMITS_SENT)
    if isinstance(case, Missing):
        return could_not_look(COUNTED, case, host)
    if isinstance(value, Missing):
        return could_not_look(COUNTED, value, host)
    where = (
        evidence.name_of(evidence.folder.host(host).counters),
        evidence.name_of(evidence.folder.capture(host)),
    )
    least = most = 0
    for traffic in case.traffic:
        wires = _wires(evidence, traffic, host)
        if isinstance(wires, Missing):
            return could_not_look(COUNTED, wires, host)
        if any(len(np.unique(each.sent.frames["destination_port"])) > 1 for each in wires):
            text = f"{traffic.id} goes to several ports of one host: copies look like answers"
            return Finding(COUNTED, Outcome.INCONCLUSIVE, text, host, where)
        fewest, limit = _bounds(wires)
        least, most = least + fewest, most + limit
    name = counter_key.SYSTEM_NAMES[counter_key.RETRANSMITS_SENT]
    facts = {"counted": value, "least": least, "most": most}
    text = f"counter {counter_key.RETRANSMITS_SENT} '{name}' is {value}"
    if not least <= value <= most:
        text += f", the capture shows {least} to {most} answers"
        return failed(COUNTED, text, host, evidence=where, facts=facts)
    return passed(COUNTED, f"{text}, {least} to {most} answers", host, evidence=where, facts=facts)


def _wires(evidence: Evidence, traffic: TrafficCase, host: str) -> list[Wire] | Missing:
    """A stream on its way to each of its readers, if the host publishes it."""
    wires = []
    for reader in traffic.subscribers if host in traffic.publishers else ():
        wire = evidence.wire(traffic.between(host, reader))
        if isinstance(wire, Missing):
            return wire
        wires.append(wire)
    return wires


def _bounds(wires: list[Wire]) -> tuple[int, int]:
    """The least and the most of a stream's answers, each of which goes to all its readers."""
    if not wires:
        return 0, 0
    # Two answers that follow each other look like one.
    least = max(len(answers(each).starts) for each in wires)
    first = wires[0]
    most = len(first.naks(first.answered_by_all))
    # Where a reader came late or left early, what was new to it may have been an answer to others.
    if all(np.array_equal(each.sent.starts, first.sent.starts) for each in wires):
        most = min(most, len(np.unique(first.sent.frames["datagram"][first.resent()])))
    return least, most
