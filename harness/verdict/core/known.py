"""Known failures of drivers: suites do not count them, and report entries that have expired or no
longer fail.

all violations of a run known, none expired     KNOWN, does not count
a known violation has expired                   FAIL, with a remark
no run has the known violation any more         report that the entry can be removed
"""

import datetime
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from windtunnel.harness.artifact.run.manifest import SubjectFacts
from windtunnel.harness.scenario.known import KnownFailure
from windtunnel.harness.scenario.schema.applies import applies_to

KNOWN = "KNOWN"
"""Outcome of a run in place of FAIL if all its violations are known."""


@dataclass(frozen=True)
class RunOutcome:
    """The parts of a run's outcome that are compared with known failures."""

    scenario: str
    subjects: tuple[SubjectFacts, ...]
    "The drivers on both sides. A failure is known if an entry applies to either driver."
    violated: tuple[str, ...]
    "Names of the checks that failed."
    is_conclusive: bool
    "Whether the run passed or failed."


class KnownFailureList:
    """The entries of a known-failures file, and which of them a suite has tried and reproduced."""

    def __init__(self, entries: Sequence[KnownFailure], today: datetime.date) -> None:
        self._entries = tuple(entries)
        self._today = today
        self._tried: set[KnownFailure] = set()
        self._seen: set[KnownFailure] = set()

    def match(self, run: RunOutcome) -> tuple[bool, str]:
        """Return whether all violations of a run are known, and a remark about them."""
        bound = [each for each in self._entries if _binds(each, run)]
        if run.is_conclusive:
            self._tried.update(bound)
        hit = [each for each in bound if each.check in run.violated]
        self._seen.update(hit)
        if not hit:
            return False, ""
        expired = [each for each in hit if each.expires <= self._today]
        if expired:
            return False, f"known failure has expired: {_text(expired)}"
        unknown = sorted(set(run.violated) - {each.check for each in hit})
        if unknown:
            return False, f"not known: {', '.join(unknown)}; known: {_text(hit)}"
        return True, f"known failure: {_text(hit)}"

    def no_longer_failing(self) -> list[str]:
        """Return one line for each entry whose scenario ran without the known failure."""
        tried = [each for each in self._entries if each in self._tried - self._seen]
        return [
            f"{each.scenario}: {each.check} passed for {each.subject}, but is listed as a known "
            f"failure: {_text([each])}; remove the entry"
            for each in tried
        ]

    def expired(self) -> list[str]:
        """Return one line for each expired entry, whether or not its failure occurred."""
        return [
            f"{each.scenario}: the known failure of {each.subject} has expired: {_text([each])}"
            for each in self._entries
            if each.expires <= self._today
        ]


def _binds(entry: KnownFailure, run: RunOutcome) -> bool:
    if entry.scenario != run.scenario:
        return False
    return any(
        applies_to([entry.subject], each.driver, each.version) is True for each in run.subjects
    )


def _text(entries: Iterable[KnownFailure]) -> str:
    return "; ".join(
        f"{each.check} ({each.owner}, {each.issue}, until {each.expires})" for each in entries
    )
