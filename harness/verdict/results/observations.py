"""What the applications of a run saw, as sentences for the terminal and the report page.

    orders: cut 'outage' (a->b and b->a) from 2.000 s to 7.000 s: no delivery for 5.21 s, until
    209 ms after its end

Each sentence states what the records of the applications, the captures and the decision log show.
What they do not show is left out. Sentences are never part of a verdict.
"""

from collections.abc import Iterator, Sequence

from windtunnel.harness.artifact.run.observed import (
    LISTED_MAX,
    Interruption,
    Observations,
    ReaderObservations,
)
from windtunnel.harness.scenario.resolved.case import Case, TrafficCase
from windtunnel.harness.verdict.core.evidence import UNKNOWN_NS, Evidence
from windtunnel.harness.verdict.core.finding import Missing
from windtunnel.harness.verdict.results.observed_rows import ObservedWire, observed_wires
from windtunnel.harness.verdict.results.result_rows import Reading
from windtunnel.harness.verdict.results.sentences.image_sentences import image_sentences
from windtunnel.harness.verdict.results.sentences.link_sentences import link_sentences
from windtunnel.harness.verdict.results.sentences.observed_sentences import observed_sentences
from windtunnel.harness.verdict.results.sentences.publication_sentences import (
    awaited_sentence,
    lost_feedback_sentence,
    pace_sentence,
    publication_sentences,
    window_sentence,
)
from windtunnel.harness.verdict.results.sentences.reading_sentences import (
    fill_sentence,
    group_sentences,
    interruption_sentences,
    stall_sentence,
)
from windtunnel.harness.verdict.results.sentences.recovery_sentences import recovery_sentences
from windtunnel.harness.verdict.views.filled_ranges import filled_ranges
from windtunnel.harness.verdict.views.interruptions import (
    concerns,
    first_data_ns,
    interruptions,
)


def observations(
    evidence: Evidence, case: Case, readings: Sequence[Reading]
) -> Iterator[Observations]:
    """Yield one document: what the applications of all streams saw."""
    observed = list(observed_wires(evidence, case))
    start_ns = _start_ns(evidence, case, readings, observed)
    happened = interruptions(evidence, case)
    is_virtual = case.fidelity == "sim"
    shown, details = observed_sentences(case, observed, happened, start_ns)
    by_stream: dict[str, list[Reading]] = {}
    for reading in readings:
        by_stream.setdefault(reading.flow.id, []).append(reading)
    yield Observations(
        start_ns=start_ns,
        is_virtual=is_virtual,
        interruptions=happened,
        sentences=[
            text
            for each in by_stream.values()
            for text in _stream_sentences(evidence, case.traffic_by_id(each[0].flow.id), each)
        ]
        + shown
        + list(link_sentences(evidence, case)),
        details=details,
        readers=[
            _reader(evidence, case, reading, happened, start_ns, is_virtual) for reading in readings
        ],
    )


def _stream_sentences(
    evidence: Evidence, traffic: TrafficCase, readings: Sequence[Reading]
) -> Iterator[str]:
    yield from publication_sentences(evidence, traffic)
    yield from pace_sentence(evidence, traffic)
    yield from awaited_sentence(evidence, traffic)
    yield from lost_feedback_sentence(evidence, traffic)
    yield from group_sentences(readings, traffic)


def _start_ns(
    evidence: Evidence,
    case: Case,
    readings: Sequence[Reading],
    observed: Sequence[ObservedWire],
) -> int:
    """Return the time of the first offer of any stream, or 0 if it is unknown.

    If a publisher was killed, only the offers of its successor are recorded. The first DATA frame
    then replaces the first offer, and always that of an observed stream.
    """
    firsts = (each.wire.sent.frames["time_ns"] for each in observed)
    found = [int(times_ns.min()) for times_ns in firsts if len(times_ns)]
    for reading in readings:
        due_ns = evidence.due_ns(reading.flow)
        if not isinstance(due_ns, Missing) and (due_ns != UNKNOWN_NS).any():
            found.append(int(due_ns[due_ns != UNKNOWN_NS].min()))
    data_ns = first_data_ns(evidence, case)
    return min(found if data_ns is None else [*found, data_ns], default=0)


def _reader(
    evidence: Evidence,
    case: Case,
    reading: Reading,
    happened: Sequence[Interruption],
    start_ns: int,
    is_virtual: bool,
) -> ReaderObservations:
    flow = reading.flow
    own = [each for each in happened if concerns(case, flow, each)]
    filled = filled_ranges(evidence, flow)
    is_grouped = _is_grouped(case, flow)
    texts = [
        *interruption_sentences(reading.times_ns, own if start_ns else [], start_ns),
        *image_sentences(evidence, case, flow, own, start_ns),
    ]
    if filled:
        texts.append(fill_sentence(filled, reading.row))
    if reading.stalls and not is_grouped:
        texts.append(stall_sentence(reading.stalls, reading.row, start_ns, is_virtual))
    texts += [*window_sentence(reading), *recovery_sentences(reading, is_grouped=is_grouped)]
    longest = sorted(reading.stalls, key=lambda each: -each.lasted_ns)[:LISTED_MAX]
    return ReaderObservations(
        traffic=flow.id,
        host=flow.to_host,
        sentences=[f"{_name(case, flow)}: {text}" for text in texts],
        stalls=sorted(longest, key=lambda each: each.began_ns),
        filled=filled[:LISTED_MAX],
    )


def _name(case: Case, flow: TrafficCase) -> str:
    return f"{flow.id} at {flow.to_host}" if _is_grouped(case, flow) else flow.id


def _is_grouped(case: Case, flow: TrafficCase) -> bool:
    """Return whether a stream has several subscribers, whose stalls one sentence compares."""
    return len(case.traffic_by_id(flow.id).subscribers) > 1
