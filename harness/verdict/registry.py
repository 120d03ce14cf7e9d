"""Registry of all gates and checks by name. Scenarios list the names of checks in `expect`."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from windtunnel.harness.scenario import frame_expectation
from windtunnel.harness.scenario.resolved.case import TrafficCase
from windtunnel.harness.verdict.checks.archive import recording
from windtunnel.harness.verdict.checks.counters import (
    client_heartbeats,
    gap_counters,
    identities,
    loss_reports,
    mapped_bytes,
    packet_counts,
    positions,
    rejected_datagrams,
    sums,
)
from windtunnel.harness.verdict.checks.delivery import (
    delivery,
    end_of_stream,
    gap_filling,
    parts,
    prompt_filling,
    replay_merge,
    stream_setup,
)
from windtunnel.harness.verdict.checks.flow_control import (
    acknowledgement,
    back_pressure,
    cubic_windows,
    feedback_intervals,
    heartbeat_checks,
    limits,
    receiver_counts,
    status_message_checks,
    window,
)
from windtunnel.harness.verdict.checks.logs import active_transports, log_comparison
from windtunnel.harness.verdict.checks.retransmission import (
    nak_checks,
    nak_response,
    nak_times,
    recovery,
    retransmit_checks,
    retransmit_spacing,
    round_trips,
)
from windtunnel.harness.verdict.checks.timed.expected_frames import expected_frames
from windtunnel.harness.verdict.core.evidence import Evidence
from windtunnel.harness.verdict.core.finding import AtFault, Finding, finding_of
from windtunnel.harness.verdict.core.kind import Kind
from windtunnel.harness.verdict.core.limit import Limit
from windtunnel.harness.verdict.core.outcome import Outcome
from windtunnel.harness.verdict.gates import (
    event_gates,
    impairment_gates,
    ledger_gates,
    overload,
    run_gates,
)
from windtunnel.harness.verdict.views import coverage, stretch, undelivered, unrecorded

Gate = Callable[[Evidence], list[Finding]]
StreamCheck = Callable[[Evidence, TrafficCase], Finding]
RunCheck = Callable[[Evidence, list[TrafficCase]], list[Finding]]
ArgumentCheck = Callable[[Evidence, Mapping[str, Any]], list[Finding]]


@dataclass(frozen=True)
class Check:
    """A condition that the driver under test must meet."""

    name: str
    kind: Kind
    run: RunCheck
    limit: Limit | None = None
    """How a scenario can limit losses that the check permits, or None if it permits none."""

    run_with: ArgumentCheck | None = None
    """The function of a check that is given its arguments in place of streams, or None."""

    @property
    def about(self) -> str:
        """The first sentence of the check function's docstring."""
        return first_sentence(self.run_with or self.run)


def first_sentence(function: Callable[..., object]) -> str:
    """Return the first sentence of a function's docstring as a single line."""
    text = " ".join((function.__doc__ or "").partition("\n\n")[0].split())
    end = text.find(". ")
    return text if end < 0 else text[: end + 1]


def _each(name: str, kind: Kind, check: StreamCheck, limit: Limit | None = None) -> Check:
    """Turn a check of one flow (a stream to one subscriber) into a check of several flows."""

    def run(evidence: Evidence, traffics: list[TrafficCase]) -> list[Finding]:
        return [_named(found(evidence, flow), flow) for flow in traffics]

    def found(evidence: Evidence, flow: TrafficCase) -> Finding:
        if flow.merges is not None and name in OF_CAPTURED_IMAGE:
            return Finding(name, Outcome.INCONCLUSIVE, MERGES, flow.id)
        return finding_of(name, flow.id, check, evidence, flow)

    run.__doc__ = check.__doc__
    return Check(name, kind, run, limit)


def _of_no_stream(evidence: Evidence, traffics: list[TrafficCase]) -> list[Finding]:
    return []


def _named(finding: Finding, flow: TrafficCase) -> Finding:
    """Return the finding, naming the subscriber's host if the stream has several subscribers."""
    return replace(finding, about=flow.role) if finding.about == flow.id else finding


GATES: dict[str, Gate] = {
    "manifest_complete": run_gates.manifest_complete,
    "captures_complete": run_gates.captures_complete,
    "ledger_balanced": ledger_gates.ledger_balanced,
    "sockets_dropped_nothing": run_gates.sockets_dropped_nothing,
    "both_sides_talked": run_gates.both_sides_talked,
    "faults_happened": ledger_gates.faults_happened,
    event_gates.NAME: event_gates.events_happened,
    impairment_gates.NAME: impairment_gates.impairments_applied,
    overload.NAME: overload.host_was_not_overloaded,
}

BLAMED_ON = {
    "captures_complete": AtFault.MACHINE,
    "sockets_dropped_nothing": AtFault.MACHINE,
    overload.NAME: AtFault.MACHINE,
    "faults_happened": AtFault.SCENARIO,
    event_gates.NAME: AtFault.SCENARIO,
}
"""The party at fault if one of these gates makes a run INCONCLUSIVE. Other gates identify
none."""

OF_CAPTURED_IMAGE = frozenset(
    {
        *(coverage.COVERED, coverage.PADDED, active_transports.COUNTED, loss_reports.AGREES),
        *(nak_checks.ONLY_GAPS, nak_checks.PACED, nak_times.IN_TIME, cubic_windows.WINDOWS),
        *(status_message_checks.ON_TIME, status_message_checks.BACKED),
        *(acknowledgement.CONSUMED, acknowledgement.STEPS, gap_counters.AGREE),
    }
)
"""Checks that compare what was captured at the receiver's host with one image and its reader. If a
subscriber merges, its host has two images of the session, one of the archive and one of the
subscriber. The latter also got frames of a replay over the loopback, and has no tap.
"""
MERGES = (
    "not applicable: the subscriber and its archive have an image each, and the subscriber's also "
    "got frames over the loopback, which is not captured"
)

CHECKS: dict[str, Check] = {
    check.name: check
    for check in (
        _each(delivery.ONCE, Kind.SAFETY, delivery.delivered_once),
        _each(delivery.INTACT, Kind.SAFETY, delivery.delivered_intact, undelivered.LIMIT),
        _each(stretch.UNBROKEN, Kind.SAFETY, stretch.delivered_unbroken, undelivered.LIMIT),
        _each(parts.IN_PARTS, Kind.SAFETY, parts.delivered_in_parts, undelivered.LIMIT),
        _each(coverage.COVERED, Kind.SAFETY, coverage.positions_covered),
        _each(coverage.PADDED, Kind.SAFETY, coverage.pad_only_where_lost),
        _each(log_comparison.EQUAL, Kind.SAFETY, log_comparison.image_log_equals_publication),
        Check(replay_merge.MERGED, Kind.LIVENESS, replay_merge.merged_into_live),
        Check(recording.EQUAL, Kind.SAFETY, recording.recording_equals_published, unrecorded.LIMIT),
        _each(recovery.NO_NAKS, Kind.PROTOCOL, recovery.no_naks),
        _each(nak_checks.ONLY_GAPS, Kind.PROTOCOL, nak_checks.naks_only_for_gaps),
        _each(nak_checks.PACED, Kind.TIMING, nak_checks.naks_paced),
        _each(nak_times.IN_TIME, Kind.TIMING, nak_times.naks_in_time),
        _each(
            retransmit_checks.ONLY_REQUESTED,
            Kind.PROTOCOL,
            retransmit_checks.retransmits_only_if_asked,
        ),
        Check(recovery.AGREE, Kind.STATE, recovery.naks_and_retransmits_agree),
        Check(packet_counts.AGREE, Kind.STATE, packet_counts.counters_agree_with_packets),
        _each(recovery.IDENTICAL, Kind.PROTOCOL, recovery.retransmits_identical),
        _each(window.WITHIN, Kind.PROTOCOL, window.sends_within_window),
        _each(
            status_message_checks.ON_TIME,
            Kind.TIMING,
            status_message_checks.status_messages_on_time,
        ),
        _each(
            status_message_checks.BACKED,
            Kind.PROTOCOL,
            status_message_checks.status_messages_backed,
        ),
        _each(heartbeat_checks.SILENCE, Kind.TIMING, heartbeat_checks.heartbeats_in_silence),
        Check(feedback_intervals.SPACED, Kind.TIMING, feedback_intervals.feedback_spaced),
        _each(positions.REACHES_END, Kind.LIVENESS, positions.rcv_pos_reaches_end),
        _each(end_of_stream.EOS, Kind.LIVENESS, end_of_stream.eos_reaches_end),
        _each(positions.MONOTONIC, Kind.PROTOCOL, positions.rcv_pos_monotonic),
        _each(positions.HWM, Kind.PROTOCOL, positions.rcv_hwm_from_wire),
        Check(positions.INVALID, Kind.PROTOCOL, positions.invalid_packets_zero),
        _each(nak_response.WHOLE, Kind.PROTOCOL, nak_response.naks_answered_whole),
        Check(nak_response.COUNTED, Kind.PROTOCOL, nak_response.retransmits_counted),
        _each(retransmit_spacing.SPACED, Kind.TIMING, retransmit_spacing.retransmits_spaced),
        _each(round_trips.MEASURED, Kind.PROTOCOL, round_trips.round_trips_measured),
        _each(limits.SENDER, Kind.PROTOCOL, limits.snd_lmt_follows_status),
        _each(limits.PUBLISHER, Kind.PROTOCOL, limits.pub_lmt_follows_snd_pos),
        _each(back_pressure.COUNTED, Kind.STATE, back_pressure.back_pressure_counted),
        _each(cubic_windows.WINDOWS, Kind.PROTOCOL, cubic_windows.cubic_windows_shrink),
        _each(stream_setup.SETUPS, Kind.TIMING, stream_setup.setups_until_answered),
        _each(acknowledgement.CONSUMED, Kind.PROTOCOL, acknowledgement.status_messages_consumed),
        _each(acknowledgement.STEPS, Kind.PROTOCOL, acknowledgement.status_messages_in_strides),
        Check(
            rejected_datagrams.OVER_UNDER_RUNS,
            Kind.PROTOCOL,
            rejected_datagrams.over_under_runs_counted,
        ),
        Check(
            rejected_datagrams.INVALID, Kind.PROTOCOL, rejected_datagrams.invalid_packets_counted
        ),
        _each(identities.IDENTIFY, Kind.STATE, identities.counters_identify_streams),
        Check(mapped_bytes.COUNTED, Kind.STATE, mapped_bytes.mapped_bytes_counted),
        Check(client_heartbeats.WRITTEN, Kind.STATE, client_heartbeats.heartbeats_of_clients),
        Check(sums.ADD_UP, Kind.STATE, sums.system_counters_add_up),
        _each(receiver_counts.COUNTED, Kind.STATE, receiver_counts.group_receivers_counted),
        _each(active_transports.COUNTED, Kind.STATE, active_transports.transports_counted),
        _each(loss_reports.AGREES, Kind.STATE, loss_reports.loss_report_agrees),
        _each(gap_counters.AGREE, Kind.STATE, gap_counters.gap_counters_agree),
        Check(gap_filling.COUNTED, Kind.PROTOCOL, gap_filling.gap_fills_counted),
        _each(prompt_filling.PROMPT, Kind.TIMING, prompt_filling.gap_fills_prompt),
        _each(gap_filling.EMPTY, Kind.SAFETY, gap_filling.gap_fills_cover_nothing),
        Check(frame_expectation.NAME, Kind.TIMING, _of_no_stream, run_with=expected_frames),
    )
}
