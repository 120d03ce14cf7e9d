"""simulation.json: facts that only a simulated run has, such as its digest and its simulated
duration.

The simulator is a single process, which reports the exit of each process that it simulates.
"""

from dataclasses import dataclass, field
from typing import ClassVar

from windtunnel.harness.artifact.documents import StoredDocument
from windtunnel.harness.artifact.run.manifest import ProcessExit

SUBJECT_FAILED, STUCK = 1, 3
"""Exit codes of the simulator if a program under test, or the simulator itself, did not end its
turn.
"""


@dataclass
class Simulation(StoredDocument):
    """Facts that only a simulated run has, such as its digest and its simulated duration."""

    SCHEMA: ClassVar[str] = "windtunnel-simulation/1"

    digest: str
    "Digest of all datagrams and counter changes with their times. Equal seeds give equal digests."
    datagrams: int
    "Number of datagrams sent and received by all hosts."
    changes: int
    "Number of counter changes."
    simulated_ns: int
    "Duration of the run on the simulated clock."
    traffic_started_ns: int = 0
    "Time at which the publishers began, on the run's clock, or 0 if they did not."
    traffic_ended_ns: int = 0
    overran: str = ""
    "The reason why the traffic was ended early, or an empty string."
    exits: list[ProcessExit] = field(default_factory=list)
    "The exits of the simulated drivers, publishers and subscribers."
