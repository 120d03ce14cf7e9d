"""A limit that a scenario can set to losses which a check permits."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from windtunnel.harness.scenario.schema.units import format_bytes
from windtunnel.harness.verdict.core.finding import AtFault, Finding
from windtunnel.harness.verdict.core.outcome import Outcome


@dataclass(frozen=True)
class Limit:
    """An argument of a check that limits losses in bytes."""

    argument: str
    fact: str
    "Name of the finding's fact that counts the lost bytes."
    lost_text: Callable[[Mapping[str, Any]], str]
    "Describes the losses, given a finding's facts."

    def apply(self, finding: Finding, at_most_bytes: int) -> Finding:
        """Turn a passing finding into a FAIL if more bytes are lost than the scenario permits.

        A finding that does not count losses is returned unchanged.
        """
        lost_bytes = finding.facts.get(self.fact, 0)
        if finding.outcome is not Outcome.PASS or lost_bytes <= at_most_bytes:
            return finding
        text = f"{self.lost_text(finding.facts)}; the scenario permits "
        text += f"{format_bytes(at_most_bytes)} ({self.argument}): {finding.text}"
        return replace(finding, outcome=Outcome.FAIL, text=text, at_fault=AtFault.SCENARIO)
