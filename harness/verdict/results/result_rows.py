"""The results of a run: one row of figures for each subscriber of each stream.

    offered --> accepted --> sent --> lost --> sent again --> arrived --> delivered
    |<- back pressure ->|                                                     |
    |<------------------------- delivery latency --------------------------->|

A message is due when the publisher offers it for the first time, at its pace. Times are those of
the run's clock, which is virtual in a simulation. A figure that the evidence does not show is
absent. In a simulation, `within_envelope` compares the figures with those of sound drivers.
"""

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from windtunnel.harness.artifact.middlebox.decision import DUPLICATE
from windtunnel.harness.artifact.middlebox.impairment_account import ImpairmentAccount
from windtunnel.harness.artifact.run.observed import Stall
from windtunnel.harness.artifact.run.result_row import ResultRow
from windtunnel.harness.scenario.resolved.case import Case, TrafficCase
from windtunnel.harness.verdict.core.completeness import missing_packets
from windtunnel.harness.verdict.core.evidence import UNKNOWN_NS, Evidence
from windtunnel.harness.verdict.core.evidence_contents import Delivered, Planned
from windtunnel.harness.verdict.core.finding import Missing, or_missing, present
from windtunnel.harness.verdict.core.wire import status_messages
from windtunnel.harness.verdict.views.reader_gaps import (
    NEVER_NS,
    ReaderGaps,
    reader_gaps,
)
from windtunnel.harness.verdict.views.sessions import is_read_from_one_image
from windtunnel.harness.verdict.views.stalls.stalled_time import (
    STALL_NS,
    WINDOW,
    stalled_ns,
    stalls,
)
from windtunnel.harness.verdict.views.stalls.window_limit import WindowLimit, window_limit

NS_PER_S = 1_000_000_000
KILL, SUBSCRIBER = "kill", "subscriber"


@dataclass(frozen=True)
class Reading:
    """What one subscriber of a stream read: its figures, and the times behind them."""

    flow: TrafficCase
    row: ResultRow
    times_ns: NDArray[np.int64] = field(default_factory=lambda: np.zeros(0, dtype=np.int64))
    "Times of the deliveries in order, or none if they are unknown."
    stalls: tuple[Stall, ...] = ()
    gaps: ReaderGaps | None = None
    "The gaps that its host saw, or None if the captures cannot show them."
    window_limit: WindowLimit | None = None
    "The receiver's window, if it limited the rate of the stream."
    unknown: Missing | None = None
    "Why the figures of the link are unknown."


def readings(evidence: Evidence, case: Case) -> list[Reading]:
    """Return one reading for each subscriber of each stream."""
    return [
        _reading(evidence, case, traffic.between(traffic.from_host, host))
        for traffic in case.traffic
        for host in traffic.subscribers
    ]


def _reading(evidence: Evidence, case: Case, flow: TrafficCase) -> Reading:
    planned, delivered = evidence.planned(flow), evidence.delivered(flow)
    values: dict[str, Any] = {}
    published = _published_messages(evidence, flow)
    if published is not None:
        values["published_messages"] = published
    if not isinstance(planned, Missing):
        least_ns = flow.pace.least_ns(flow.total_bytes)
        if least_ns > 0:
            values["asked_bytes_per_s"] = flow.total_bytes * NS_PER_S / least_ns
            values["asked_messages_per_s"] = planned.plan.count * NS_PER_S / least_ns
    found = _gaps(evidence, case, flow)
    gaps = None if isinstance(found, Missing) else found
    wire = evidence.wire(flow)
    if gaps is not None and not isinstance(wire, Missing):
        values |= link_figures(gaps)
        values["status_messages"] = len(status_messages(wire.feedback_sent))
    times: dict[str, Any] = {}
    if not isinstance(planned, Missing) and not isinstance(delivered, Missing):
        figures, times = _delivery_figures(evidence, flow, planned, delivered, gaps)
        values |= figures
    row = ResultRow(flow.id, flow.from_host, flow.to_host, **values)
    limit = _window_limit(evidence, flow, row, gaps, delivered)
    unknown = found if isinstance(found, Missing) else None
    return Reading(
        flow,
        row,
        gaps=gaps,
        window_limit=limit,
        unknown=unknown,
        **times,
    )


def _published_messages(evidence: Evidence, flow: TrafficCase) -> int | None:
    """Return the number of published messages, or None if it is not known. That of a replay, which
    knows only positions, is the number of messages that it has sent to their end.
    """
    publisher, planned = evidence.publisher(flow), evidence.planned(flow)
    if isinstance(publisher, Missing) or len(flow.publishers) > 1:
        return None
    if not flow.replays:
        return publisher.message_count
    if isinstance(planned, Missing):
        return None
    return int((planned.log.message_ends <= publisher.end_position).sum())


def _window_limit(
    evidence: Evidence,
    flow: TrafficCase,
    row: ResultRow,
    gaps: ReaderGaps | None,
    delivered: Delivered | Missing,
) -> WindowLimit | None:
    """Return the receiver's window if it limited a stream that did not reach its pace, or whose
    messages had to wait.
    """
    wire, rate = evidence.wire(flow), row.reached_bytes_per_s
    if gaps is None or isinstance(wire, Missing) or isinstance(delivered, Missing):
        return None
    waited = (row.stalled_ns or {}).get(WINDOW, 0) >= STALL_NS
    if not rate or not row.delivered_bytes or (row.kept_pace and not waited):
        return None
    last_position = int(delivered.deliveries["position"].max())
    stream_bytes = last_position - evidence.join_position(flow)
    return window_limit(wire, gaps, rate * stream_bytes / row.delivered_bytes)


@or_missing
def _gaps(evidence: Evidence, case: Case, flow: TrafficCase) -> ReaderGaps | Missing:
    """Return the gaps that a subscriber's host saw, or why the captures cannot show them."""
    # A wire covers one session of one publisher.
    is_whole = is_read_from_one_image(evidence, flow)
    if not is_whole or flow.merges is not None or len(flow.publishers) > 1:
        return Missing("the stream", "may have several images or publishers at this subscriber")
    wire, planned, subscriber = present(
        evidence.wire(flow), evidence.planned(flow), evidence.subscriber(flow)
    )
    for host in (flow.from_host, flow.to_host):
        captured = present(evidence.capture(host), evidence.capture_statistics(host))
        if problem := missing_packets(*captured):
            return Missing(f"the capture at {host}", f"is incomplete: {problem}")
    if not np.isin(wire.sent.starts, planned.log.frames["position"]).all():
        return Missing("the publisher", "did not follow its plan")
    return reader_gaps(
        wire,
        planned.log,
        subscriber.join_position,
        has_copies=makes_copies(evidence, case, flow),
        closed_ns=NEVER_NS if subscriber.eos_seen else subscriber.ended_ns,
    )


def makes_copies(evidence: Evidence, case: Case, flow: TrafficCase) -> bool:
    """Return whether the link may have duplicated frames of a flow, which makes lost ones
    uncountable.
    """
    copies = any(each.duplicate_ppb for each in evidence.impairments)
    decisions = evidence.decisions
    if isinstance(decisions, Missing) or copies or (decisions["action"] == DUPLICATE).any():
        copies = True
    return copies and not _passed_all(evidence, case, flow)


def _passed_all(evidence: Evidence, case: Case, flow: TrafficCase) -> bool:
    """Return whether the middlebox lost and damaged nothing on a flow's link."""
    ledger, link = evidence.ledger, case.link_between(flow.from_host, flow.to_host)
    if isinstance(ledger, Missing) or isinstance(evidence.decisions, Missing) or link < 0:
        return False
    if any(case.backend_of(each.link) == "netem" for each in case.impairments):
        return False  # What netem loses is not in the ledger.
    account = ledger.links.get(case.link_names[link])
    if account is None:
        return False
    impaired = account.impairments or ImpairmentAccount()
    gone = impaired.lost + impaired.overflowed + impaired.corrupted + impaired.waiting_at_end
    kept = account.kernel_drops + account.send_failures + account.datagrams_held_at_end
    dropped = sum(each.dropped + each.damaged_from for each in account.frames.values())
    return not gone and not kept and not dropped


def link_figures(gaps: ReaderGaps) -> dict[str, Any]:
    """Return the figures of a link by field name: losses, retransmits, NAKs and repairs."""
    repairs = gaps.repair_ns
    values: dict[str, Any] = {
        "resent_frames": gaps.resent_frames,
        "resent_bytes": gaps.resent_bytes,
        "gaps": gaps.count,
        "naks": gaps.naks,
        "requested_gaps": gaps.requested,
        "rejected_frames": gaps.rejected_frames,
        "unneeded_frames": gaps.unneeded_frames,
        "lost_frames": gaps.lost_frames,
        "lost_bytes": gaps.lost_bytes,
    }
    if len(repairs):
        values["repair_p50_ns"] = percentile(repairs, 50)
        values["repair_p99_ns"] = percentile(repairs, 99)
    return values


def _delivery_figures(
    evidence: Evidence,
    flow: TrafficCase,
    planned: Planned,
    delivered: Delivered,
    gaps: ReaderGaps | None,
) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return the row's figures of deliveries, and the times in the reading, by field name."""
    ends = planned.log.message_ends
    index, is_planned = _message_index(ends, delivered.deliveries["position"].astype(np.int64))
    if not is_planned.all():
        return (
            {},
            {},
        )  # The publisher did not follow its plan, or the subscriber's records are wrong.
    different = np.unique(index)
    length_bytes = int(planned.plan.lengths[different].astype(np.int64).sum())
    values: dict[str, Any] = {
        "delivered_messages": len(different),
        "delivered_bytes": length_bytes,
    }
    due_ns, times_ns = evidence.due_ns(flow), evidence.delivery_times_ns(flow)
    if isinstance(due_ns, Missing) or isinstance(times_ns, Missing):
        return values, {}
    known = due_ns[index] != UNKNOWN_NS
    messages, times_ns = index[known], times_ns[known]
    if len(messages) == 0:
        return values, {}
    latency_ns = times_ns - due_ns[messages]
    if latency_ns.min() < 0:
        # The clock was set during the run, or the two hosts do not share one.
        return values, {}
    start_ns = int(due_ns[due_ns != UNKNOWN_NS].min())
    finished_ns = int(times_ns.max())
    given_up_ns = _given_up_ns(evidence, flow, int(messages.max()), due_ns)
    ended_ns = max(finished_ns, given_up_ns)
    waits_ns = np.diff(times_ns, prepend=start_ns, append=ended_ns)
    values |= {
        "latency_p50_ns": percentile(latency_ns, 50),
        "latency_p99_ns": percentile(latency_ns, 99),
        "latency_max_ns": int(latency_ns.max()),
        "longest_silence_ns": int(waits_ns.max()),
        "finished_ns": finished_ns - start_ns,
    }
    if ended_ns > finished_ns:
        values["ended_ns"] = ended_ns - start_ns
    if ended_ns > start_ns:
        values["reached_bytes_per_s"] = length_bytes * NS_PER_S / (ended_ns - start_ns)
        values["reached_messages_per_s"] = len(different) * NS_PER_S / (ended_ns - start_ns)
    times: dict[str, Any] = {"times_ns": times_ns}
    happened = evidence.host_events
    if gaps is not None and not isinstance(happened, Missing):
        hosts = flow.from_host, flow.to_host
        paused = [each for each in happened if each.processes and each.host in hosts]
        given_up_ns = ended_ns if ended_ns > finished_ns else 0
        found = stalls(gaps, planned.log, messages, times_ns, due_ns, paused, given_up_ns)
        values["stalled_ns"] = stalled_ns(found)
        times["stalls"] = tuple(found)
    return values, times


def _given_up_ns(
    evidence: Evidence, flow: TrafficCase, last_message: int, due_ns: NDArray[np.int64]
) -> int:
    """Return until when a subscriber that did not receive the end of a stream waited for it: until
    the last offer, or its own end. Returns 0 if it received the end.
    """
    known = np.flatnonzero(due_ns != UNKNOWN_NS)
    publisher, subscriber = evidence.publisher(flow), evidence.subscriber(flow)
    if isinstance(publisher, Missing) or len(flow.publishers) > 1 or flow.merges is not None:
        return 0
    known = known[known < publisher.message_count]
    if len(known) == 0 or last_message >= known[-1]:
        return 0
    ends_ns = [int(due_ns[known[-1]])]
    if not isinstance(subscriber, Missing) and not subscriber.eos_seen:
        ends_ns.append(subscriber.ended_ns)
    happened = evidence.host_events
    for each in [] if isinstance(happened, Missing) else happened:
        if each.host == flow.to_host and each.action == KILL and not each.ended_ns:
            ends_ns += [each.began_ns] if SUBSCRIBER in each.processes else []
    return min(ends_ns)


def _message_index(
    ends: NDArray[np.int64], positions: NDArray[np.int64]
) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
    """Return the index of the planned message that ends at each position, and whether there is such
    a message.
    """
    index = np.searchsorted(ends, positions)
    is_planned = np.isin(positions, ends)
    return np.where(is_planned, index, 0), is_planned


def percentile(values: NDArray[np.int64], percent: int) -> int:
    """Return the smallest value such that at least `percent` percent of all values are at most this
    value.
    """
    rank = max(1, -(-len(values) * percent // 100))
    return int(np.sort(values)[rank - 1])
