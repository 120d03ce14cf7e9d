"""run.json: what was run, with which versions, how long it took, how each process ended."""

from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from windtunnel.harness.artifact.documents import (
    DocumentError,
    check_types,
    read_document,
    write_document,
)

SCHEMA = "windtunnel-run/1"


@dataclass
class Phase:
    """One phase of a run."""

    name: str
    started_ns: int
    ended_ns: int


@dataclass
class ProcessExit:
    """How one process of a run ended."""

    name: str
    "Unique within the run, such as `a/driver` or `b/subscriber-term-64k`."
    role: str
    "One of driver, publisher, subscriber, relay, capture, sampler."
    exit_code: int | None
    "As Popen gives it: negative for a signal; None when it was still running at the end."
    asked: bool
    "Whether the harness had asked it to end before it did."
    log: str
    "Path of its log within the run folder, or empty."
    last_log_line: str
    late_s: float = 0.0
    "How long it was waited for in vain after it had been asked, until it was killed; 0 if not."


_DRIVERS = {"pyaeron": "aeron-c", "aeronmd": "aeron-c", "java": "aeron-java"}
"""Names of drivers by the peer that brings them."""


@dataclass
class SubjectFacts:
    """Who was tested on one host."""

    side: str
    "`publisher` or `subscriber`."
    peer: str
    "The name it was asked for by, such as `ours`."
    version: str = ""
    "What its driver says of its build; empty when it says nothing or was never seen."

    @property
    def driver(self) -> str:
        """Which driver that is: `ours`, `aeron-c` or `aeron-java`, wherever it came from."""
        return _DRIVERS.get(self.peer.partition(":")[0], self.peer)


@dataclass
class Manifest:
    """All facts of a run that are not evidence of their own."""

    run_id: str
    scenario: str
    seed: int
    fidelity: str
    command: list[str]
    "The command line that reproduces the run."
    versions: dict[str, str] = field(default_factory=dict)
    host_facts: dict[str, Any] = field(default_factory=dict)
    phases: list[Phase] = field(default_factory=list)
    processes: list[ProcessExit] = field(default_factory=list)
    errors: list[str] = field(default_factory=list)
    "What went wrong in the harness itself, in order; what its subject did is no part of it."
    stopped: str = ""
    "Why the run ended before its end, when that is no error of the harness."
    unsupported: str = ""
    "Why this run cannot be made here; empty when it can."
    overran: str = ""
    "Why the harness ended the traffic before its own end: its budget was over. Empty otherwise."
    sabotage: str = ""
    "Name of the deliberate defect of the subject, in a run that tests the judge."
    mutant: str = ""
    "Name of the defect that was planted in the driver, in a run that tests the judge."
    replays: str = ""
    "Id of the run whose decisions this one repeats; empty when its rules decided."
    complete: bool = False
    "Set by the last step of a run: every phase was walked to its end."
    subjects: dict[str, SubjectFacts] = field(default_factory=dict)
    "Who was tested, by host."

    def write(self, path: Path) -> None:
        write_document(path, {"schema": SCHEMA, **asdict(self)})

    @classmethod
    def read(cls, path: Path) -> "Manifest | None":
        """The manifest, or None when there is none; DocumentError when it cannot be understood."""
        document = read_document(path, SCHEMA)
        if document is None:
            return None
        plain = {key: value for key, value in document.items() if key != "schema"}
        try:
            plain["phases"] = [Phase(**each) for each in plain.get("phases", [])]
            plain["processes"] = [ProcessExit(**each) for each in plain.get("processes", [])]
            subjects = plain.get("subjects", {})
            plain["subjects"] = {host: SubjectFacts(**each) for host, each in subjects.items()}
            made = cls(**plain)
            for each in (made, *made.subjects.values()):
                check_types(each)
            return made
        except (AttributeError, TypeError) as error:
            raise DocumentError(f"{path.name}: {error}") from error
