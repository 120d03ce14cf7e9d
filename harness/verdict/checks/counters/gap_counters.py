"""Check that the counters of an image's gaps agree with the capture and the image's log.

    rcv-gaps-open, rcv-oldest-gap    0 after the whole stream was read; in a simulation, at any time
                                     what the capture shows (`gap_ages`)
    rcv-nak-retries                  NAKs whose first byte an earlier NAK had requested
    rcv-repair-time                  between the shortest and the longest repair
    rcv-gaps-filled-early            filled gaps in which a datagram begins that arrived

Only images that send NAKs for all gaps, or fill gaps on evidence, have these counters. A datagram
in a filled gap arrived after the gap was filled, because padding does not overwrite data. The NAKs
of several images cannot be separated, so they are compared if there is one image.
"""

from collections.abc import Iterable, Sequence

import numpy as np
from numpy.typing import NDArray

from windtunnel.harness.artifact.host.counter_sample import CounterFacts
from windtunnel.harness.dissect.driver_files import counter_key
from windtunnel.harness.scenario.resolved.case import TrafficCase
from windtunnel.harness.verdict.checks.counters.gap_ages import wrong_ages
from windtunnel.harness.verdict.checks.retransmission.all_gaps import (
    REPAIR_NS_MAX,
    earlier_naks,
    has_all_gaps,
)
from windtunnel.harness.verdict.checks.retransmission.recovery import socket_drops
from windtunnel.harness.verdict.core.evidence import Evidence
from windtunnel.harness.verdict.core.finding import (
    Finding,
    Missing,
    failed,
    inconclusive,
    passed,
    present,
)
from windtunnel.harness.verdict.core.outcome import Outcome
from windtunnel.harness.verdict.core.virtual import is_virtual
from windtunnel.harness.verdict.core.wire import Wire
from windtunnel.harness.verdict.views.acceptance import certainly_accepted
from windtunnel.harness.verdict.views.coverage import filled_gaps
from windtunnel.harness.verdict.views.fill_evidence import fill_rule
from windtunnel.harness.verdict.views.pauses import Pauses, pauses_of
from windtunnel.harness.verdict.views.series import highest_by, known_at

AGREE = "gap_counters_agree"

SLACK_NS = 5_000_000
"""Tolerance for the repair time: a scheduler time slice between clock, capture and log."""
ROWS = 1_024
"""Number of gaps that a receiver follows at a time. Source: docs/loss-recovery.md."""
REMEMBERED = 64
"""Number of filled gaps that a receiver remembers. Source: docs/loss-recovery.md."""

Violation = tuple[str, int, str]
"""The name of a counter, its value, and the expected value."""


def gap_counters_agree(evidence: Evidence, traffic: TrafficCase) -> Finding:
    """The counters of an image's gaps agree with the capture, and only images with one of the modes
    have them.
    """
    wire, planned, frames, subscriber = present(
        evidence.wire(traffic),
        evidence.planned(traffic),
        evidence.frames_seen(traffic),
        evidence.subscriber(traffic),
    )
    counted, pauses = present(
        evidence.counters_of_streams(traffic.to_host), pauses_of(evidence, traffic.to_host)
    )
    where = (
        evidence.name_of(evidence.folder.host(traffic.to_host).counters),
        evidence.name_of(evidence.folder.capture(traffic.to_host)),
    )
    values, images = _values(wire, counted.counters)
    stream = wire.facts.session_id, wire.facts.stream_id
    if not counter_key.of_stream(counted.counters, counter_key.RECEIVER_POSITION, *stream):
        return inconclusive(AGREE, Missing(where[0], "has no image of the session"), traffic.id)
    expected = _expected_types(evidence, traffic)
    if set(values) != expected:
        text = f"the image has counters of type {_listed(values)}, expected {_listed(expected)}"
        return failed(AGREE, text, traffic.id, evidence=where)
    is_whole = subscriber.end_position == planned.log.end_position
    violations = _open_gaps(values) if is_whole else []
    is_alone = images == 1 and len(traffic.publishers) == 1 and len(traffic.ports) <= 1
    if counter_key.NAK_RETRIES in values and is_alone:
        violations += _naks(wire, values, pauses)
    if counter_key.GAPS_FILLED_EARLY in values:
        starts, spans, _ = filled_gaps(frames, planned)
        early = values[counter_key.GAPS_FILLED_EARLY]
        violations += _early(wire, starts, spans, planned.log.start_position, early)
    texts = [f"counter {name} is {value}, expected {wanted}" for name, value, wanted in violations]
    if is_alone and is_virtual(evidence.case):
        start = max(planned.log.start_position, evidence.join_position(traffic))
        rule = fill_rule(evidence, traffic)
        delay_ns = None if rule is None else rule.delay_ns
        texts.append(wrong_ages(wire, counted, start, delay_ns, pauses))
    for text in filter(None, texts):
        dropped = socket_drops(evidence, traffic.to_host)
        if dropped:
            text += f"; however, the host's sockets dropped {dropped} captured datagrams"
            return Finding(AGREE, Outcome.INCONCLUSIVE, text, traffic.id, where)
        return failed(AGREE, text, traffic.id, evidence=where)
    shown = ", ".join(f"{counter_key.GAP_NAMES[each]} {value}" for each, value in values.items())
    return passed(AGREE, shown or "no counters of gaps, and none expected", traffic.id)


def _values(wire: Wire, counters: Sequence[CounterFacts]) -> tuple[dict[int, int], int]:
    """Return the sum of a stream's counters of each type, and the number of its images."""
    facts = wire.facts
    values, images = {}, 0
    for type_id in sorted(counter_key.GAP_TYPES):
        found = counter_key.of_stream(counters, type_id, facts.session_id, facts.stream_id)
        if found:
            values[type_id] = sum(each.final_value for each in found)
            images = max(images, len(found))
    return values, images


def _expected_types(evidence: Evidence, traffic: TrafficCase) -> set[int]:
    both = {counter_key.GAPS_OPEN, counter_key.OLDEST_GAP}
    if traffic.reliable and has_all_gaps(evidence, traffic):
        return {*both, counter_key.NAK_RETRIES, counter_key.REPAIR_TIME}
    if fill_rule(evidence, traffic) is not None:
        return {*both, counter_key.GAPS_FILLED_EARLY}
    return set()


def _listed(types: Iterable[int]) -> str:
    return ", ".join(str(each) for each in sorted(types)) or "none"


def _open_gaps(values: dict[int, int]) -> list[Violation]:
    return [
        (counter_key.GAP_NAMES[each], values[each], "0 at the end of the stream")
        for each in (counter_key.GAPS_OPEN, counter_key.OLDEST_GAP)
        if values.get(each)
    ]


def _naks(wire: Wire, values: dict[int, int], pauses: Pauses) -> list[Violation]:
    """Compare the retries and the repair time with the NAKs and the repairs."""
    naks = wire.naks(wire.feedback_sent)
    starts = wire.nak_positions(naks)
    times_ns = naks["time_ns"].astype(np.int64)
    earlier = earlier_naks(times_ns, starts, starts + naks["nak_length"])
    retries = int((earlier.counts > 0).sum())
    found: list[Violation] = []
    value = values[counter_key.NAK_RETRIES]
    # Without a free row, the parts of a gap share one, and its NAKs are counted together.
    is_exact = len(starts) - retries <= ROWS
    if value < retries or (is_exact and value > retries):
        found.append((counter_key.GAP_NAMES[counter_key.NAK_RETRIES], value, str(retries)))
    took_ns, most_ns = _repair_times_ns(wire, starts, times_ns, pauses)
    value = values[counter_key.REPAIR_TIME]
    least = most = 0
    if len(took_ns):
        least = max(0, min(int(took_ns.min()), REPAIR_NS_MAX) - SLACK_NS)
        most = min(int(most_ns.max()) + SLACK_NS, REPAIR_NS_MAX)
    # A stream may end before the driver has measured its only repair.
    if not least <= value <= most and not (value == 0 and len(took_ns) <= 1):
        name = counter_key.GAP_NAMES[counter_key.REPAIR_TIME]
        found.append((name, value, f"{least} to {most}"))
    return found


def _repair_times_ns(
    wire: Wire, starts: NDArray[np.int64], times_ns: NDArray[np.int64], pauses: Pauses
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return the times from each NAK to the arrival of a frame at its position: the shortest that
    the driver may have measured, and the longest, up to the end of a pause.

    A frame that arrived shortly before the NAK may be the one that the driver noticed after it.
    """
    frame_ns = wire.arrived.frames["time_ns"].astype(np.int64)
    order = np.lexsort((frame_ns, wire.arrived.starts))
    keys, frame_ns = wire.arrived.starts[order], frame_ns[order]
    least, most = [], []
    for start, time_ns in zip(starts.tolist(), times_ns.tolist(), strict=True):
        low, high = np.searchsorted(keys, [start, start + 1])
        later = frame_ns[low:high][frame_ns[low:high] >= time_ns - SLACK_NS]
        if len(later):
            least.append(max(0, int(later[0]) - time_ns))
            most.append(max(0, int(pauses.due_ns(later[:1], SLACK_NS)[0]) - SLACK_NS - time_ns))
    return np.array(least, dtype=np.int64), np.array(most, dtype=np.int64)


def _early(
    wire: Wire, starts: NDArray[np.int64], spans: NDArray[np.int64], start: int, value: int
) -> list[Violation]:
    """Compare the number of gaps that were filled too early with the datagrams that arrived."""
    arrived = wire.arrived
    rows = _rows_of(starts, spans, arrived.starts)
    is_late = (np.diff(arrived.frames["datagram"], prepend=-1) != 0) & (rows >= 0)
    times_ns = arrived.frames["time_ns"].astype(np.int64)
    last_ns = int(wire.feedback_sent["time_ns"].max(initial=0))
    # Later gaps up to the highest position may have been filled before the datagram arrived.
    begun = np.searchsorted(starts, known_at(*highest_by(wire), times_ns, start), side="left")
    is_remembered = begun - rows <= REMEMBERED
    is_sure = is_late & certainly_accepted(wire, start) & (times_ns <= last_ns) & is_remembered
    forged = _rows_of(starts, spans, wire.forged.starts)
    least = len(np.unique(rows[is_sure]))
    most = len(np.unique(np.append(rows[is_late], forged[forged >= 0])))
    if least <= value <= most:
        return []
    name = counter_key.GAP_NAMES[counter_key.GAPS_FILLED_EARLY]
    return [(name, value, f"{least} to {most}")]


def _rows_of(
    starts: NDArray[np.int64], spans: NDArray[np.int64], places: NDArray[np.int64]
) -> NDArray[np.int64]:
    """Return for each position the index of the filled gap that contains it, or -1."""
    rows = np.searchsorted(starts, places, side="right") - 1
    ends = np.append(starts + spans, -1)
    return np.where(places < ends[rows], rows, -1)
