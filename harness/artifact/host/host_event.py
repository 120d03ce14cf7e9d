"""Host events (pauses, kills, partitions, impairments and steps of clocks) that were applied in a
run, with their times.

A recorded pause is longer than the actual pause: it begins before the stop signal is sent, and ends
after the continue signal has been sent.
"""

from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

from windtunnel.harness.artifact.documents import StoredDocument


@dataclass
class AppliedEvent:
    """One host event that was applied in a run."""

    id: str
    host: str
    "The host, or empty if the event affected only link directions."
    action: str
    "`pause`, `kill`, `partition`, `impair` or `step_clock`."
    processes: list[str]
    "Roles of the affected processes, such as driver, subscriber or application."
    began_ns: int
    ended_ns: int
    "Time at which the processes were continued or restarted, or the links were as before. 0 if "
    "none of these happened."


@dataclass(frozen=True)
class _AppliedEvents(StoredDocument):
    SCHEMA: ClassVar[str] = "windtunnel-host-events/1"

    events: list[AppliedEvent]


def write_applied_events(path: Path, events: list[AppliedEvent]) -> None:
    _AppliedEvents(events).write(path)


def read_applied_events(path: Path) -> list[AppliedEvent] | None:
    """Read a run's events in order of their start times. Returns None if the file is missing."""
    found = _AppliedEvents.read(path)
    return None if found is None else found.events
