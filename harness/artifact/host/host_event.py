"""Host events that were applied in a run, with their times.

The recorded pause is longer than the actual one: it begins before the stop signal is sent, and ends
after the continue signal was sent.
"""

from dataclasses import asdict, dataclass
from pathlib import Path

from windtunnel.harness.artifact.documents import read_as, write_document

SCHEMA = "windtunnel-host-events/1"


@dataclass
class AppliedEvent:
    """One applied host event."""

    id: str
    host: str
    action: str
    "`pause` or `kill`."
    processes: list[str]
    "Roles of the affected processes: driver, publisher, subscriber, archive, recorder."
    began_ns: int
    ended_ns: int
    "When the processes were continued, or restarted; 0 if neither happened."


@dataclass(frozen=True)
class _AppliedEvents:
    events: list[AppliedEvent]


def write_applied_events(path: Path, events: list[AppliedEvent]) -> None:
    write_document(path, {"schema": SCHEMA, "events": [asdict(each) for each in events]})


def read_applied_events(path: Path) -> list[AppliedEvent] | None:
    """Return the events of a run in order of their begin, or None if the file is missing."""
    found = read_as(_AppliedEvents, path, SCHEMA)
    return None if found is None else found.events
