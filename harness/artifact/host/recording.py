"""The document that a recorder writes. A recorder is the workload that makes an archive record a
stream.

    during the recording    the highest position that the archive reported as recorded
    at the end              start and stop position of each recording of the stream

A recorder that is killed before its end writes no document.
"""

from dataclasses import dataclass, field
from typing import ClassVar

from windtunnel.harness.artifact.documents import StoredDocument


@dataclass
class Recorded:
    """One recording, as the archive reported it."""

    recording_id: int
    session_id: int
    start_position: int
    stop_position: int
    "Stop position, or -1 if the recording has not stopped."
    told_position: int
    "The highest position that the archive reported as recorded while the recording was active."


@dataclass
class RecorderFacts(StoredDocument):
    """What one recorder reports about its stream's recordings."""

    SCHEMA: ClassVar[str] = "windtunnel-recorder/1"

    stream_id: int
    started_ns: int
    ended_ns: int
    error: str | None
    recordings: list[Recorded] = field(default_factory=list)
    "The recordings of the stream, in the order of their ids."
