"""Check that the gaps of an unreliable stream are filled at once.

    accepted  |####|    gap    |####|            t0: a frame beyond the gap shows it
    rcv-pos        ^ - - - - - ^ t1              t1 - t0: at most a few duty cycles

A frame that the receiver may have rejected shows nothing: the last datagram of a term may end
beyond the window. No NAKs are sent, so there is nothing to wait for. An image that waits for
evidence fills a gap when it is complete, which is compared in a simulation; `pad_only_where_lost`
judges that it waits.
"""

import numpy as np

from windtunnel.harness.artifact.noun_form import noun_for
from windtunnel.harness.dissect.driver_files import counter_key
from windtunnel.harness.dissect.frames.observed_flows import END_OF_TIME_NS
from windtunnel.harness.scenario.resolved.case import TrafficCase
from windtunnel.harness.verdict.core.evidence import Evidence
from windtunnel.harness.verdict.core.finding import Finding, failed, passed, present
from windtunnel.harness.verdict.core.outcome import Outcome
from windtunnel.harness.verdict.core.virtual import is_virtual
from windtunnel.harness.verdict.views.coverage import filled_gaps
from windtunnel.harness.verdict.views.fill_evidence import accepted_ends, due_ns, fill_rule
from windtunnel.harness.verdict.views.pauses import pauses_of
from windtunnel.harness.verdict.views.series import stream_series

PROMPT = "gap_fills_prompt"

LIMIT_NS = 100_000_000
"""Tolerance for late fills. Aeron's drivers count a longer duty cycle as exceeding their threshold,
so a healthy driver scans for gaps more often."""
VIRTUAL_LIMIT_NS = 10_000_000
"""The same in a simulation, whose counters are sampled each millisecond."""
EVIDENCE_LIMIT_NS = 2_000_000
"""The same for a gap that is filled on evidence, whose last datagram the limit must distinguish
from later ones. The time of reading is compared, too."""


def gap_fills_prompt(evidence: Evidence, traffic: TrafficCase) -> Finding:
    """A gap of an unreliable stream is filled as soon as it can be detected or, in a simulation,
    as soon as the evidence for which its receiver waits is complete.
    """
    wire, planned, frames = present(
        evidence.wire(traffic), evidence.planned(traffic), evidence.frames_seen(traffic)
    )
    rule = fill_rule(evidence, traffic)
    if traffic.reliable:
        text = "not applicable: gaps are repaired"
        return Finding(PROMPT, Outcome.INCONCLUSIVE, text, traffic.id)
    if rule is not None and (not is_virtual(evidence.case) or len(wire.forged.starts)):
        text = "not compared: gaps are filled on evidence"
        return passed(PROMPT, text, traffic.id)
    series = stream_series(evidence, traffic.to_host, counter_key.RECEIVER_POSITION, wire)
    pauses = present(pauses_of(evidence, traffic.to_host))
    starts, spans, read_ns = filled_gaps(frames, planned)
    ends = starts + spans
    times_ns, tops = accepted_ends(wire, planned.log.start_position)
    tops = np.maximum.accumulate(tops)
    shown_ns = np.append(times_ns, END_OF_TIME_NS)[np.searchsorted(tops, ends)]
    passed_ns = np.append(series.times_ns, 0)[np.searchsorted(series.values, ends)]
    limit_ns = VIRTUAL_LIMIT_NS if is_virtual(evidence.case) else LIMIT_NS
    if rule is not None:
        shown_ns = due_ns(wire, planned.log.start_position, rule, starts)
        passed_ns = np.minimum(passed_ns, read_ns)
        limit_ns = EVIDENCE_LIMIT_NS
    waited_ns = passed_ns - shown_ns - pauses.within_ns(shown_ns, passed_ns)
    where = (
        evidence.name_of(evidence.folder.host(traffic.to_host).counter_samples),
        evidence.name_of(evidence.folder.capture(traffic.to_host)),
    )
    since = "it could be detected" if rule is None else rule.text
    late = np.flatnonzero(waited_ns > limit_ns)
    if len(late):
        position, waited_ms = int(starts[late[0]]), int(waited_ns[late[0]]) // 1_000_000
        text = (
            f"the gap at position {position} was filled {waited_ms} ms after {since} "
            f"(limit {limit_ns // 1_000_000} ms); {len(late)} of {len(starts)} were late"
        )
        return failed(PROMPT, text, traffic.id, evidence=where, position=position)
    text = f"{len(starts)} {noun_for(len(starts), 'gap')}, each filled within "
    text += f"{limit_ns // 1_000_000} ms"
    return passed(PROMPT, text, traffic.id, evidence=where)
