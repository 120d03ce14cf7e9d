"""Runs one check or gate as the judge does: without its evidence, it is inconclusive."""

from collections.abc import Callable

from windtunnel.harness.scenario.resolved.case import TrafficCase
from windtunnel.harness.verdict.core.evidence import Evidence
from windtunnel.harness.verdict.core.finding import (
    EvidenceMissing,
    Finding,
    finding_of,
    inconclusive,
)
from windtunnel.harness.verdict.registry import Gate

_Check = Callable[[Evidence, TrafficCase], Finding]


def judged(check: _Check, evidence: Evidence, traffic: TrafficCase) -> Finding:
    return finding_of(check.__name__, traffic.id, check, evidence, traffic)


def gated(gate: Gate, evidence: Evidence) -> list[Finding]:
    try:
        return gate(evidence)
    except EvidenceMissing as error:
        return [inconclusive(gate.__name__, error.missing)]
