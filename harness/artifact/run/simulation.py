"""simulation.json: what a simulated run says of itself, beside the files of every run.

A simulated world is one process, so it tells how each of the processes that it stands for ended.
"""

from dataclasses import asdict, dataclass, field
from pathlib import Path

from windtunnel.harness.artifact.documents import DocumentError, read_document, write_document
from windtunnel.harness.artifact.run.manifest import ProcessExit

SCHEMA = "windtunnel-simulation/1"


@dataclass
class Simulation:
    """The facts of one simulated run."""

    digest: str
    "Of all datagrams and all changes of counters, with their times: equal for equal seeds."
    datagrams: int
    "Sent and received, by all hosts."
    changes: int
    "Of counters."
    simulated_ns: int
    "How long the run took on its own clock."
    traffic_started_ns: int = 0
    "When the publishers began, on the clock of all stamps of the run; 0 when they did not."
    traffic_ended_ns: int = 0
    overran: str = ""
    "Why the traffic was ended before its end; empty otherwise."
    exits: list[ProcessExit] = field(default_factory=list)
    "Of the drivers, publishers and subscribers that the world stands for."

    def write(self, path: Path) -> None:
        write_document(path, {"schema": SCHEMA, **asdict(self)})

    @classmethod
    def read(cls, path: Path) -> "Simulation | None":
        """The facts, or None when there are none; DocumentError when they are not understood."""
        document = read_document(path, SCHEMA)
        if document is None:
            return None
        plain = {key: value for key, value in document.items() if key != "schema"}
        try:
            plain["exits"] = [ProcessExit(**each) for each in plain.get("exits", [])]
            return cls(**plain)
        except TypeError as error:
            raise DocumentError(f"{path.name}: {error}") from error
