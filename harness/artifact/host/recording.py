"""What the one says who had an archive record a stream: what he asked for, and what he was told.

    told while it went on     the furthest position that the archive said is recorded
    told at the end           each recording of the stream, from where to where

Whoever is killed before that leaves no such document.
"""

from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from windtunnel.harness.artifact.documents import DocumentError, read_document, write_document

SCHEMA = "windtunnel-recorder/1"


@dataclass
class Recorded:
    """One recording, as the archive tells of it."""

    recording_id: int
    session_id: int
    start_position: int
    stop_position: int
    "-1 if it has not stopped."
    told_position: int
    "The furthest position that the archive said was recorded, while it still recorded."


@dataclass
class RecorderFacts:
    """What one recorder saw of its stream's recordings."""

    stream_id: int
    started_ns: int
    ended_ns: int
    error: str | None
    recordings: list[dict[str, Any]] = field(default_factory=list)
    "A `Recorded` for each recording of the stream, in the order of their ids."

    @property
    def own_recordings(self) -> list[Recorded]:
        """The recordings as values; raises TypeError for what is none."""
        return [Recorded(**each) for each in self.recordings]

    def write(self, path: Path) -> None:
        write_document(path, {"schema": SCHEMA, **asdict(self)})

    @classmethod
    def read(cls, path: Path) -> "RecorderFacts | None":
        document = read_document(path, SCHEMA)
        if document is None:
            return None
        try:
            found = cls(**{key: value for key, value in document.items() if key != "schema"})
            _ = found.own_recordings
        except TypeError as error:
            raise DocumentError(f"{path.name}: {error}") from error
        return found
