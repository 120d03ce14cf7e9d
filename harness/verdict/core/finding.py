"""The result of one gate or check for one stream, host or link, with its evidence."""

from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import Any, TypeVar, overload

from windtunnel.harness.verdict.core.kind import BROKEN_RUN_KINDS, Kind
from windtunnel.harness.verdict.core.outcome import Outcome

_A = TypeVar("_A")
_B = TypeVar("_B")
_C = TypeVar("_C")
_D = TypeVar("_D")


class AtFault(StrEnum):
    """The party that has to change something for a run to pass."""

    DRIVER = "driver"
    APPLICATION = "application"
    SCENARIO = "scenario"
    MACHINE = "machine"
    HARNESS = "windtunnel"


@dataclass(frozen=True)
class Missing:
    """The reason why a piece of evidence is missing, returned in place of the evidence."""

    source: str
    "Path within the run folder, or a description."
    reason: str
    damaged: bool = False
    "Whether the file exists but cannot be parsed. This is a defect of the harness."


@dataclass(frozen=True)
class Finding:
    """The result of one gate or check, with one sentence of explanation."""

    name: str
    "Name of the gate or check."
    outcome: Outcome
    text: str
    about: str = ""
    "The stream, host or link concerned, or an empty string for the whole run."
    evidence: tuple[str, ...] = ()
    "Paths of the relevant files within the run folder."
    message: int | None = None
    "Index of the first wrong message in the message plan."
    byte_offset: int | None = None
    "Offset of the first wrong byte within that message."
    position: int | None = None
    "First wrong stream position."
    conclusive: bool = False
    "Whether the recorded bytes prove the violation, so that no failed gate can excuse it."
    excuses: bool = True
    "For a failed gate: whether its cause may also have caused violations."
    excuses_kinds: frozenset[Kind] = BROKEN_RUN_KINDS
    "For a failed gate: the kinds of violations that it may excuse."
    advisory: bool = False
    "For a failed gate: whether it only excuses violations. A run without violations still passes."
    difference: bool = False
    "For a check: whether it was violated, but does not apply to this subject."
    kind: Kind | None = None
    "For a check: the kind of requirement that it tests."
    at_fault: AtFault | None = None
    "The party at fault, if it is not the usual one for the outcome (the driver for a FAIL)."
    facts: dict[str, int] = field(default_factory=dict)
    "The numbers in the text, by name."

    def as_document(self) -> dict[str, Any]:
        document: dict[str, Any] = {
            "name": self.name,
            "about": self.about,
            "outcome": str(self.outcome),
            "text": self.text,
            "evidence": list(self.evidence),
        }
        for key in ("message", "byte_offset", "position"):
            if getattr(self, key) is not None:
                document[key] = getattr(self, key)
        if self.difference:
            document["difference"] = True
        if self.kind is not None:
            document["kind"] = str(self.kind)
        if self.at_fault is not None:
            document["at_fault"] = str(self.at_fault)
        return {**document, "facts": self.facts} if self.facts else document

    def as_difference(self, subject: str) -> "Finding":
        """Return this violation as a PASS, because the check does not apply to the driver. It is
        marked as a known difference.
        """
        text = f"known difference (this check does not apply to {subject}): {self.text}"
        return replace(self, outcome=Outcome.PASS, text=text, conclusive=False, difference=True)

    def may_excuse(self, violation: "Finding") -> bool:
        """Return whether the failure of this gate (a precondition of the run) may explain a
        violation.
        """
        if violation.conclusive or not self.excuses:
            return False
        return violation.kind is None or violation.kind in self.excuses_kinds

    def excused(self, gate: "Finding") -> "Finding":
        """Return this violation downgraded to INCONCLUSIVE, because the failure of `gate` may
        explain it.
        """
        text = f"inconclusive because gate {gate.name} failed: {self.text}"
        return replace(self, outcome=Outcome.INCONCLUSIVE, text=text)


def passed(name: str, text: str, about: str = "", **more: Any) -> Finding:
    """Return a PASS finding."""
    return Finding(name, Outcome.PASS, text, about, **more)


def failed(name: str, text: str, about: str = "", **more: Any) -> Finding:
    """Return a FAIL finding: the driver under test violated a requirement."""
    return Finding(name, Outcome.FAIL, text, about, **more)


def inconclusive(name: str, missing: Missing, about: str = "") -> Finding:
    """Return the finding for missing evidence: INCONCLUSIVE, or HARNESS if a file is damaged."""
    outcome = Outcome.HARNESS if missing.damaged else Outcome.INCONCLUSIVE
    text = f"{missing.source}: {missing.reason}"
    return Finding(name, outcome, text, about, evidence=(missing.source,))


@overload
def all_or_missing(a: _A | Missing, b: _B | Missing, /) -> tuple[_A, _B] | Missing: ...
@overload
def all_or_missing(
    a: _A | Missing, b: _B | Missing, c: _C | Missing, /
) -> tuple[_A, _B, _C] | Missing: ...
@overload
def all_or_missing(
    a: _A | Missing, b: _B | Missing, c: _C | Missing, d: _D | Missing, /
) -> tuple[_A, _B, _C, _D] | Missing: ...
def all_or_missing(*parts: Any) -> Any:
    """Return all parts of the evidence, or the first missing part."""
    missing = [part for part in parts if isinstance(part, Missing)]
    return missing[0] if missing else parts
