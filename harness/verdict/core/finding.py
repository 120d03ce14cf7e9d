"""The result of one gate or check for one stream, host or link, with its evidence.

    evidence.wire(flow)             a Wire, or Missing
    present(evidence.wire(flow))    a Wire; otherwise raises EvidenceMissing
    finding_of(name, about, check)  the check's finding; INCONCLUSIVE after EvidenceMissing

A check that can do without a piece of evidence tests for Missing instead.
"""

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from enum import StrEnum
from functools import wraps
from typing import Any, ParamSpec, TypeVar, overload

from windtunnel.harness.verdict.core.kind import BROKEN_RUN_KINDS, Kind
from windtunnel.harness.verdict.core.outcome import Outcome

_Arguments = ParamSpec("_Arguments")
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

    def as_error(self) -> "EvidenceMissing":
        error = EvidenceMissing(f"{self.source}: {self.reason}", self.damaged)
        error.missing = self
        return error


class EvidenceMissing(Exception):
    """Raised if a run lacks the evidence that a check needs, such as a capture. The check is
    then INCONCLUSIVE, or HARNESS if a file is damaged.
    """

    def __init__(self, text: str, damaged: bool = False) -> None:
        super().__init__(text)
        self.damaged = damaged
        self.missing = Missing("", text, damaged)


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


def finding_of(
    name: str,
    about: str,
    check: Callable[_Arguments, Finding],
    /,
    *arguments: _Arguments.args,
    **named: _Arguments.kwargs,
) -> Finding:
    """Return what a check finds about one subject, which is inconclusive if evidence is missing."""
    try:
        return check(*arguments, **named)
    except EvidenceMissing as error:
        return inconclusive(name, error.missing, about)


def or_missing(read: Callable[_Arguments, _A]) -> Callable[_Arguments, _A | Missing]:
    """Make a function return Missing instead of raising EvidenceMissing."""

    @wraps(read)
    def get(*arguments: _Arguments.args, **named: _Arguments.kwargs) -> _A | Missing:
        try:
            return read(*arguments, **named)
        except EvidenceMissing as error:
            return error.missing

    return get


@overload
def present(a: _A | Missing, /) -> _A: ...
@overload
def present(a: _A | Missing, b: _B | Missing, /) -> tuple[_A, _B]: ...
@overload
def present(a: _A | Missing, b: _B | Missing, c: _C | Missing, /) -> tuple[_A, _B, _C]: ...
@overload
def present(
    a: _A | Missing, b: _B | Missing, c: _C | Missing, d: _D | Missing, /
) -> tuple[_A, _B, _C, _D]: ...
def present(*parts: Any) -> Any:
    """Return all parts of the evidence, or raise EvidenceMissing for the first missing part."""
    for part in parts:
        if isinstance(part, Missing):
            raise part.as_error()
    return parts if len(parts) > 1 else parts[0]
