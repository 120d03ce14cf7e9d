"""run.json: the manifest of a run: command, versions, phases, and the exit of each process."""

from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from windtunnel.harness.artifact.document_values import parse
from windtunnel.harness.artifact.documents import Document, read_as, write_document

SCHEMA = "windtunnel-run/1"
NUMERIC_FACTS = ("steal_ticks", "ticks_per_second")
"""Keys of `host_facts` that are integers."""


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
    "As in Popen.returncode: negative for a signal; None if it was still running at the end."
    asked: bool
    "Whether the harness had requested its shutdown before it ended."
    log: str
    "Path of its log within the run folder, or empty."
    last_log_line: str
    late_s: float = 0.0
    "How long the harness waited after the shutdown request before killing it; 0 if not killed."


_DRIVERS = {"pyaeron": "aeron-c", "aeronmd": "aeron-c", "java": "aeron-java"}
"""Names of drivers by the peer that provides them."""


@dataclass
class SubjectFacts:
    """The subject on one host."""

    side: str
    "`publisher` or `subscriber`."
    peer: str
    "The name used to select it, such as `ours`."
    version: str = ""
    "The version that its driver reports; empty if unknown."

    @property
    def driver(self) -> str:
        """The name of the driver: `ours`, `aeron-c` or `aeron-java`, regardless of its peer."""
        return _DRIVERS.get(self.peer.partition(":")[0], self.peer)


@dataclass
class Manifest:
    """The facts of a run that have no file of their own."""

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
    "Errors of the harness itself, in order; failures of the subject are not included."
    stopped: str = ""
    "Why the run was stopped early, other than an error of the harness."
    unsupported: str = ""
    "Why this run is not supported here; empty if it is."
    overran: str = ""
    "Why the harness ended the traffic early: its time budget was exceeded. Empty otherwise."
    sabotage: str = ""
    "Name of the deliberate defect of the subject, in a run that tests the judge."
    mutant: str = ""
    "Name of the mutant of the driver, in a run that tests the judge."
    replays: str = ""
    "Id of the run whose decisions this one replays; empty if its own rules decided."
    complete: bool = False
    "Set by the last step of a run: every phase completed."
    subjects: dict[str, SubjectFacts] = field(default_factory=dict)
    "The subjects, by host."

    def write(self, path: Path) -> None:
        write_document(path, {"schema": SCHEMA, **asdict(self)})

    @classmethod
    def read(cls, path: Path) -> "Manifest | None":
        """Return the manifest, or None if the file is missing; raise DocumentError if damaged."""
        return read_as(cls, path, SCHEMA, _checked)


def _checked(document: Document) -> Document:
    """Check those facts of the machine with which the judge computes."""
    found = document.get("host_facts")
    for name in NUMERIC_FACTS:
        if isinstance(found, dict) and name in found:
            parse(int, found[name], f"host_facts.{name}")
    return document
