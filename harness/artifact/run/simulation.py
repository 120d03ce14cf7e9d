"""simulation.json: the facts of a simulated run, in addition to the files of every run.

A simulated world is one process; it reports the exit of each process that it simulates.
"""

from dataclasses import asdict, dataclass, field
from pathlib import Path

from windtunnel.harness.artifact.documents import read_as, write_document
from windtunnel.harness.artifact.run.manifest import ProcessExit

SCHEMA = "windtunnel-simulation/1"


@dataclass
class Simulation:
    """The facts of one simulated run."""

    digest: str
    "Digest of all datagrams and counter changes, with their times: equal for equal seeds."
    datagrams: int
    "Datagrams sent and received by all hosts."
    changes: int
    "Number of counter changes."
    simulated_ns: int
    "How long the run took on its own clock."
    traffic_started_ns: int = 0
    "When the publishers began, on the clock of all timestamps of the run; 0 if they did not."
    traffic_ended_ns: int = 0
    overran: str = ""
    "Why the traffic was ended early; empty otherwise."
    exits: list[ProcessExit] = field(default_factory=list)
    "The exits of the simulated drivers, publishers and subscribers."

    def write(self, path: Path) -> None:
        write_document(path, {"schema": SCHEMA, **asdict(self)})

    @classmethod
    def read(cls, path: Path) -> "Simulation | None":
        """Return the facts, or None if the file is missing; raise DocumentError if damaged."""
        return read_as(cls, path, SCHEMA)
