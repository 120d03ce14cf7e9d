"""All gates, and all checks by the names that scenarios use in `expect`."""

from collections.abc import Callable
from dataclasses import dataclass, replace

from harness.scenario.case import TrafficCase
from harness.verdict import (
    accounts,
    acknowledging,
    answering,
    asking,
    beating,
    coverage,
    delivery,
    ending,
    event_gates,
    filling,
    forensics,
    ledger_gates,
    limits,
    merging,
    opening,
    overload,
    parts,
    positions,
    recording,
    recovery,
    refusing,
    repeating,
    resending,
    run_gates,
    stretch,
    weather_gates,
    window,
)
from harness.verdict.evidence import Evidence
from harness.verdict.finding import Finding
from harness.verdict.kind import Kind

Gate = Callable[[Evidence], list[Finding]]
StreamCheck = Callable[[Evidence, TrafficCase], Finding]
RunCheck = Callable[[Evidence, list[TrafficCase]], list[Finding]]


@dataclass(frozen=True)
class Check:
    """A condition of the subject."""

    name: str
    kind: Kind
    look: RunCheck

    @property
    def about(self) -> str:
        """What it checks, in one sentence."""
        return (self.look.__doc__ or "").strip().splitlines()[0]


def _each(check: StreamCheck) -> RunCheck:
    """A check of one stream on its way to one reader, made for each of them."""

    def look(evidence: Evidence, traffics: list[TrafficCase]) -> list[Finding]:
        return [_named(check(evidence, flow), flow) for flow in traffics]

    look.__doc__ = check.__doc__
    return look


def _named(finding: Finding, flow: TrafficCase) -> Finding:
    """The finding with the host that it is about, where the stream has several."""
    return replace(finding, about=flow.role) if finding.about == flow.id else finding


GATES: dict[str, Gate] = {
    "manifest_complete": run_gates.manifest_complete,
    "captures_whole": run_gates.captures_whole,
    "ledger_balanced": ledger_gates.ledger_balanced,
    "sockets_dropped_nothing": run_gates.sockets_dropped_nothing,
    "both_sides_talked": run_gates.both_sides_talked,
    "faults_happened": ledger_gates.faults_happened,
    event_gates.NAME: event_gates.events_happened,
    weather_gates.NAME: weather_gates.weather_applied,
    overload.NAME: overload.host_was_not_overloaded,
}

CHECKS: dict[str, Check] = {
    check.name: check
    for check in (
        Check(delivery.ONCE, Kind.SAFETY, _each(delivery.delivered_once)),
        Check(delivery.INTACT, Kind.SAFETY, _each(delivery.delivered_intact)),
        Check(stretch.UNBROKEN, Kind.SAFETY, _each(stretch.delivered_unbroken)),
        Check(parts.IN_PARTS, Kind.SAFETY, _each(parts.delivered_in_parts)),
        Check(coverage.COVERED, Kind.SAFETY, _each(coverage.positions_covered)),
        Check(coverage.PADDED, Kind.SAFETY, _each(coverage.pad_only_where_lost)),
        Check(forensics.EQUAL, Kind.SAFETY, _each(forensics.image_log_equals_publication)),
        Check(merging.MERGED, Kind.LIVENESS, merging.merged_into_live),
        Check(recording.EQUAL, Kind.SAFETY, recording.recording_equals_published),
        Check(recovery.NO_NAKS, Kind.LAW, _each(recovery.no_naks)),
        Check(asking.ONLY_GAPS, Kind.LAW, _each(asking.naks_only_for_gaps)),
        Check(asking.PACED, Kind.TIMING, _each(asking.naks_paced)),
        Check(resending.ONLY_ASKED, Kind.LAW, _each(resending.retransmits_only_if_asked)),
        Check(recovery.AGREE, Kind.STATE, recovery.naks_and_retransmits_agree),
        Check(accounts.AGREE, Kind.STATE, accounts.counters_agree_with_packets),
        Check(recovery.IDENTICAL, Kind.LAW, _each(recovery.retransmits_identical)),
        Check(window.WITHIN, Kind.LAW, _each(window.sends_within_window)),
        Check(answering.ON_TIME, Kind.TIMING, _each(answering.status_messages_on_time)),
        Check(answering.BACKED, Kind.LAW, _each(answering.status_messages_backed)),
        Check(beating.SILENCE, Kind.TIMING, _each(beating.heartbeats_in_silence)),
        Check(positions.REACHES_END, Kind.LIVENESS, _each(positions.rcv_pos_reaches_end)),
        Check(ending.EOS, Kind.LIVENESS, _each(ending.eos_reaches_end)),
        Check(positions.MONOTONIC, Kind.LAW, _each(positions.rcv_pos_monotonic)),
        Check(positions.HWM, Kind.LAW, _each(positions.rcv_hwm_from_wire)),
        Check(positions.INVALID, Kind.LAW, positions.invalid_packets_zero),
        Check(repeating.WHOLE, Kind.LAW, _each(repeating.naks_answered_whole)),
        Check(repeating.COUNTED, Kind.LAW, repeating.retransmits_counted),
        Check(repeating.SPACED, Kind.TIMING, _each(repeating.retransmits_spaced)),
        Check(limits.SENDER, Kind.LAW, _each(limits.snd_lmt_follows_status)),
        Check(limits.PUBLISHER, Kind.LAW, _each(limits.pub_lmt_follows_snd_pos)),
        Check(opening.SETUPS, Kind.TIMING, _each(opening.setups_until_answered)),
        Check(acknowledging.CONSUMED, Kind.LAW, _each(acknowledging.status_messages_consumed)),
        Check(acknowledging.STRIDES, Kind.LAW, _each(acknowledging.status_messages_in_strides)),
        Check(refusing.RUNS, Kind.LAW, refusing.runs_counted),
        Check(refusing.INVALID, Kind.LAW, refusing.invalid_packets_counted),
        Check(filling.COUNTED, Kind.LAW, filling.gap_fills_counted),
        Check(filling.EMPTY, Kind.SAFETY, _each(filling.gap_fills_cover_nothing)),
    )
}
