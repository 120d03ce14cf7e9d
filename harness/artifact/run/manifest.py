"""run.json: the manifest of a run, with its command, versions, phases and process exits."""

from dataclasses import dataclass, field
from typing import Any, ClassVar

from windtunnel.harness.artifact.document_values import parse
from windtunnel.harness.artifact.documents import Document, StoredDocument

CANNOT_START, NOT_READY = "cannot-start", "not-ready"
LOG_TOO_LONG, LOG_LOST = "log-too-long", "log-lost"
"""Problems with an application because of which the harness has ended it."""
NUMERIC_FACTS = ("steal_ticks", "ticks_per_second")
"""Keys of `host_facts` whose values are integers."""


@dataclass
class Phase:
    """One phase of a run, such as its traffic, with its start and end time."""

    name: str
    started_ns: int
    ended_ns: int


@dataclass
class ProcessExit:
    """How one process in a run ended."""

    name: str
    "The process's name, unique within the run, such as `a/driver` or `b/subscriber-term-64k`."
    role: str
    "One of driver, publisher, subscriber, application, relay, capture, sampler."
    exit_code: int | None
    "Exit code as in Popen.returncode: negative for a signal, None if still running at the end."
    asked: bool
    "Whether the harness requested the shutdown before the process ended."
    log: str
    "Path of the process's log within the run folder, or an empty string."
    last_log_line: str
    late_s: float = 0.0
    "Time in seconds from the shutdown request until the harness killed the process, or 0."
    problem: str = ""
    "Why the harness ended an application: one of the problems above, or an empty string."
    virtual_ns: int | None = None
    "When a driver crashed in a simulation: virtual time since its start in ns. None if it did not."
    part: str = ""
    "The part of the driver that crashed in a simulation, such as `receiver`, or an empty string."


OURS, AERON_C, AERON_JAVA = "ours", "aeron-c", "aeron-java"
KINDS = (OURS, AERON_C, AERON_JAVA)
"""Names of the drivers that the judge knows."""
_DRIVERS = {"pyaeron": AERON_C, "aeronmd": AERON_C, "image": AERON_C, "java": AERON_JAVA}
"""Names of the drivers, by the peer that provides them."""


@dataclass
class SubjectFacts:
    """The software under test on one host."""

    side: str
    "`publisher` or `subscriber`."
    peer: str
    "The name used to select the driver, such as `ours`."
    version: str = ""
    "The version that the driver reports, or an empty string if it is unknown."
    settings: dict[str, str] = field(default_factory=dict)
    "Environment variables with settings of the driver."
    kind: str = ""
    "The name of the driver, if an image says which one it contains."

    @property
    def driver(self) -> str:
        """The name of the driver: `ours`, `aeron-c` or `aeron-java`."""
        return self.kind or _DRIVERS.get(self.peer.partition(":")[0], self.peer)

    @property
    def is_aerons(self) -> bool:
        """Whether the driver is one of Aeron's, which do not have Windtunnel's modes."""
        return self.driver in (AERON_C, AERON_JAVA)


_OWN_COMMIT = " commit=windtunnel"
"""Suffix of the version that the built-in driver reports."""


def version_text(version: str, own: str = "") -> str:
    """Return a driver's version in the form to display, such as `1.53.0 (Windtunnel 0.1.0)`.

    The built-in driver reports the Aeron version that it is compatible with, and a label instead of
    a commit. `own` is Windtunnel's version, or an empty string if it is unknown.
    """
    if not version.endswith(_OWN_COMMIT):
        return version
    # If a checkout is not installed, its version is a sentence instead of a number.
    known = f" {own}" if own[:1].isdigit() else ""
    return f"{version.removesuffix(_OWN_COMMIT)} (Windtunnel{known})"


@dataclass
class Manifest(StoredDocument):
    """The facts about a run that are not in any other file."""

    SCHEMA: ClassVar[str] = "windtunnel-run/1"

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
    "Errors of the harness itself, in order. Failures of the software under test are not included."
    stopped: str = ""
    "The reason why the run was stopped early, unless the harness failed."
    unsupported: str = ""
    "The reason why this run is not supported here, or an empty string."
    overran: str = ""
    "How the traffic exceeded its time budget and was ended early, or an empty string."
    sabotage: str = ""
    "Name of the deliberate defect of the software under test, in a run that tests the judge."
    mutant: str = ""
    "Name of the mutant of the driver, in a run that tests the judge."
    receive: dict[str, str] = field(default_factory=dict)
    "Channel parameters of all subscriptions that override those in the scenario."
    replays: str = ""
    "Id of the run whose decisions this run replays, or an empty string."
    complete: bool = False
    "Whether every phase has completed. The last step of a run sets this."
    subjects: dict[str, SubjectFacts] = field(default_factory=dict)
    "The software under test, by host."

    @staticmethod
    def _adapted(document: Document) -> Document:
        """Raise ValueTypeError if a fact about the machine that the judge uses in calculations is
        not an integer.
        """
        found = document.get("host_facts")
        for name in NUMERIC_FACTS:
            if isinstance(found, dict) and name in found:
                parse(int, found[name], f"host_facts.{name}")
        return document
