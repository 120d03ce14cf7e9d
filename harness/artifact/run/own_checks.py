"""own-checks.json: what the user's own checks have found in a run.

The run executes the files that its scenario names, and stores this document. The judge only reads
it: a run folder may come from another person, so no program that it names is executed.
"""

from dataclasses import dataclass, field
from typing import ClassVar, Literal

from windtunnel.harness.artifact.documents import StoredDocument

PASS: Literal["PASS"] = "PASS"
FAIL: Literal["FAIL"] = "FAIL"
HARNESS: Literal["HARNESS"] = "HARNESS"
INCONCLUSIVE: Literal["INCONCLUSIVE"] = "INCONCLUSIVE"
OwnOutcome = Literal["PASS", "FAIL", "HARNESS", "INCONCLUSIVE"]


@dataclass(frozen=True)
class OwnCheck:
    """The result of one check."""

    name: str
    "Name of the function."
    line: int
    "Line of the file in which it is defined."
    outcome: OwnOutcome = HARNESS
    texts: list[str] = field(default_factory=list)
    "What is wrong, or why the check could not be completed."


@dataclass(frozen=True)
class OwnCheckFile:
    """The results of the checks in one file."""

    file: str
    "Path of the file, as in the scenario."
    checks: list[OwnCheck] = field(default_factory=list)
    error: str = ""
    "Why checks of this file are missing, or an empty string."


@dataclass(frozen=True)
class OwnChecks(StoredDocument):
    """The results of all files."""

    SCHEMA: ClassVar[str] = "windtunnel-own-checks/1"

    files: list[OwnCheckFile]
