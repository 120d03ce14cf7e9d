"""All gates, and all checks by the names that scenarios use in `expect`."""

from collections.abc import Callable
from dataclasses import dataclass

from harness.scenario.case import TrafficCase
from harness.verdict import (
    coverage,
    delivery,
    ledger_gates,
    positions,
    recovery,
    run_gates,
    weather_gates,
)
from harness.verdict.evidence import Evidence
from harness.verdict.finding import Finding

Gate = Callable[[Evidence], list[Finding]]
StreamCheck = Callable[[Evidence, TrafficCase], Finding]
RunCheck = Callable[[Evidence, list[TrafficCase]], list[Finding]]


@dataclass(frozen=True)
class Check:
    """A condition of the subject."""

    name: str
    look: RunCheck

    @property
    def about(self) -> str:
        """What it checks, in one sentence."""
        return (self.look.__doc__ or "").strip().splitlines()[0]


def _each(check: StreamCheck) -> RunCheck:
    """A check of one stream, made for each of them."""

    def look(evidence: Evidence, traffics: list[TrafficCase]) -> list[Finding]:
        return [check(evidence, traffic) for traffic in traffics]

    look.__doc__ = check.__doc__
    return look


GATES: dict[str, Gate] = {
    "manifest_complete": run_gates.manifest_complete,
    "captures_whole": run_gates.captures_whole,
    "ledger_balanced": ledger_gates.ledger_balanced,
    "sockets_dropped_nothing": run_gates.sockets_dropped_nothing,
    "both_sides_talked": run_gates.both_sides_talked,
    "faults_happened": ledger_gates.faults_happened,
    weather_gates.NAME: weather_gates.weather_applied,
}

CHECKS: dict[str, Check] = {
    check.name: check
    for check in (
        Check(delivery.ONCE, _each(delivery.delivered_once)),
        Check(delivery.INTACT, _each(delivery.delivered_intact)),
        Check(coverage.COVERED, _each(coverage.positions_covered)),
        Check(coverage.PADDED, _each(coverage.pad_only_where_lost)),
        Check(recovery.NO_NAKS, _each(recovery.no_naks)),
        Check(recovery.AGREE, recovery.naks_and_retransmits_agree),
        Check(recovery.IDENTICAL, _each(recovery.retransmits_identical)),
        Check(positions.REACHES_END, _each(positions.rcv_pos_reaches_end)),
        Check(positions.MONOTONIC, _each(positions.rcv_pos_monotonic)),
        Check(positions.HWM, _each(positions.rcv_hwm_from_wire)),
        Check(positions.INVALID, positions.invalid_packets_zero),
    )
}
