"""What one gate or check came to, about one stream, host or link, and what shows it."""

from dataclasses import dataclass, field, replace
from typing import Any, TypeVar, overload

from windtunnel.harness.verdict.core.kind import OF_A_BROKEN_RUN, Kind
from windtunnel.harness.verdict.core.outcome import Outcome

_A = TypeVar("_A")
_B = TypeVar("_B")
_C = TypeVar("_C")
_D = TypeVar("_D")


@dataclass(frozen=True)
class Missing:
    """Evidence that is not there; it takes the place of the value."""

    what: str
    "Path within the run folder."
    why: str
    damaged: bool = False
    "It is there, but cannot be understood: our own defect."


@dataclass(frozen=True)
class Finding:
    """One sentence of a verdict."""

    name: str
    "Of the gate or check."
    outcome: Outcome
    text: str
    about: str = ""
    "The traffic, host or link it is about; empty for the whole run."
    evidence: tuple[str, ...] = ()
    "Paths within the run folder that show it."
    message: int | None = None
    "Index in the traffic plan of the first offending message."
    byte_offset: int | None = None
    "Within that message."
    position: int | None = None
    "First offending stream position."
    conclusive: bool = False
    "A violation proven by the bytes themselves, which no broken gate can excuse."
    excuses: bool = True
    "Of a gate that is broken: whether a violation seen behind it may be its doing."
    excuses_kinds: frozenset[Kind] = OF_A_BROKEN_RUN
    "Of a gate that is broken: the kinds of violations that may be its doing."
    advisory: bool = False
    "Of a gate: when it is broken, a run in which nothing was violated is none the worse for it."
    difference: bool = False
    "Of a check: it does not hold, and for this subject it need not."
    kind: Kind | None = None
    "Of a check's finding: what sort of promise it is about."
    facts: dict[str, int] = field(default_factory=dict)
    "Numbers behind the text."

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
        return {**document, "facts": self.facts} if self.facts else document

    def as_difference(self, subject: str) -> "Finding":
        """This violation where it is no promise of the subject."""
        text = f"a difference of {subject}, which need not hold this: {self.text}"
        return replace(self, outcome=Outcome.PASS, text=text, conclusive=False, difference=True)

    def may_excuse(self, violation: "Finding") -> bool:
        """Whether this broken gate may be the cause of a violation."""
        if violation.conclusive or not self.excuses:
            return False
        return violation.kind is None or violation.kind in self.excuses_kinds

    def excused(self, gate: "Finding") -> "Finding":
        """This violation as it counts while a gate is broken."""
        text = f"cannot be trusted, since gate {gate.name} is broken: {self.text}"
        return replace(self, outcome=Outcome.INCONCLUSIVE, text=text)


def passed(name: str, text: str, about: str = "", **more: Any) -> Finding:
    """A finding that something holds."""
    return Finding(name, Outcome.PASS, text, about, **more)


def failed(name: str, text: str, about: str = "", **more: Any) -> Finding:
    """A finding that the subject broke a promise."""
    return Finding(name, Outcome.FAIL, text, about, **more)


def could_not_look(name: str, missing: Missing, about: str = "") -> Finding:
    """A finding that evidence is missing."""
    outcome = Outcome.HARNESS if missing.damaged else Outcome.INCONCLUSIVE
    text = f"{missing.what}: {missing.why}"
    return Finding(name, outcome, text, about, evidence=(missing.what,))


@overload
def together(a: _A | Missing, b: _B | Missing, /) -> tuple[_A, _B] | Missing: ...
@overload
def together(
    a: _A | Missing, b: _B | Missing, c: _C | Missing, /
) -> tuple[_A, _B, _C] | Missing: ...
@overload
def together(
    a: _A | Missing, b: _B | Missing, c: _C | Missing, d: _D | Missing, /
) -> tuple[_A, _B, _C, _D] | Missing: ...
def together(*parts: Any) -> Any:
    """All the evidence that a look needs, or the first part that is missing."""
    gaps = [part for part in parts if isinstance(part, Missing)]
    return gaps[0] if gaps else parts
