"""Checks of your own: functions over the evidence of a run, in a file that a scenario names.

    from windtunnel.harness.checks import Evidence, check

    @check
    def no_errors_on_the_wire(evidence: Evidence) -> str | None:
        for frame in evidence.frames("a", type="ERR"):
            return f"{frame.source} sent an error: {frame.payload!r}"
        return None

A check returns None if nothing is wrong, or a text, or several texts, or yields them. Each is a
FAIL. An exception, and any other value, is HARNESS. See docs/own-checks.md.
"""

from windtunnel.harness.checks.check import check
from windtunnel.harness.checks.evidence import Decision, Event, Evidence, Stream
from windtunnel.harness.checks.frame import Frame
from windtunnel.harness.checks.series import Counter
from windtunnel.harness.verdict.core.finding import EvidenceMissing

__all__ = [
    "Counter",
    "Decision",
    "Event",
    "Evidence",
    "EvidenceMissing",
    "Frame",
    "Stream",
    "check",
]
