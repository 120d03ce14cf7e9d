"""Known failures beside what runs came to: which do not count, have expired, or are cured.

all violations of a run known, none expired     KNOWN       does not count
one of them expired                             FAIL        and says so
an entry that nothing violated                              told: take it out
"""

import datetime
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from windtunnel.harness.artifact.run.manifest import SubjectFacts
from windtunnel.harness.scenario.known import KnownFailure
from windtunnel.harness.scenario.schema.applies import applies_to

KNOWN = "KNOWN"
"""Stands for FAIL where all that is wrong is known."""


@dataclass(frozen=True)
class Judged:
    """What one run came to, as far as known failures are concerned."""

    scenario: str
    subjects: tuple[SubjectFacts, ...]
    "The drivers on both sides; a failure is known if it is of either."
    violated: tuple[str, ...]
    "Names of the checks that failed."
    is_conclusive: bool
    "It passed or failed."


class KnownBook:
    """The entries of a file, and what has been seen of them in a suite."""

    def __init__(self, entries: Sequence[KnownFailure], today: datetime.date) -> None:
        self._entries = tuple(entries)
        self._today = today
        self._tried: set[KnownFailure] = set()
        self._seen: set[KnownFailure] = set()

    def look_up(self, run: Judged) -> tuple[bool, str]:
        """Whether all violations of a run are known, and what is to be said of them."""
        bound = [each for each in self._entries if _binds(each, run)]
        if run.is_conclusive:
            self._tried.update(bound)
        hit = [each for each in bound if each.check in run.violated]
        self._seen.update(hit)
        if not hit:
            return False, ""
        expired = [each for each in hit if each.expires <= self._today]
        if expired:
            return False, f"known no more, {_text(expired)}"
        unknown = sorted(set(run.violated) - {each.check for each in hit})
        if unknown:
            return False, f"not known: {', '.join(unknown)}; known: {_text(hit)}"
        return True, f"known, {_text(hit)}"

    def cured(self) -> list[str]:
        """A line for each entry whose runs were made and did not violate it."""
        tried = [each for each in self._entries if each in self._tried - self._seen]
        return [
            f"{each.scenario} {each.check} of {each.subject} passed, though it is known to fail: "
            f"{_text([each])}; take it out of the file"
            for each in tried
        ]

    def expired(self) -> list[str]:
        """A line for each entry that counts no more, whether it was seen or not."""
        return [
            f"{each.scenario} {each.check} of {each.subject} has expired: {_text([each])}"
            for each in self._entries
            if each.expires <= self._today
        ]


def _binds(entry: KnownFailure, run: Judged) -> bool:
    if entry.scenario != run.scenario:
        return False
    return any(
        applies_to([entry.subject], each.driver, each.version) is True for each in run.subjects
    )


def _text(entries: Iterable[KnownFailure]) -> str:
    return "; ".join(
        f"{each.check}: {each.owner}, {each.issue}, until {each.expires}" for each in entries
    )
