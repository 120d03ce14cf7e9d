"""The document that a recorder writes. A recorder is the workload that makes an archive record a
stream.

    during the recording    the highest position that the archive reported as recorded
    at the end              start and stop position of each recording of the stream

A recorder that is killed before its end writes no document.
"""

from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from windtunnel.harness.artifact.document_values import parse
from windtunnel.harness.artifact.documents import Document, read_as, write_document

SCHEMA = "windtunnel-recorder/1"


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
class RecorderFacts:
    """What one recorder reports about its stream's recordings."""

    stream_id: int
    started_ns: int
    ended_ns: int
    error: str | None
    recordings: list[dict[str, Any]] = field(default_factory=list)
    "A `Recorded` for each recording of the stream, in the order of the recording ids."

    @property
    def own_recordings(self) -> list[Recorded]:
        """The recordings in the document, as `Recorded` values. Raises ValueTypeError if one of
        them is invalid.
        """
        return parse(list[Recorded], self.recordings, "recordings")

    def write(self, path: Path) -> None:
        write_document(path, {"schema": SCHEMA, **asdict(self)})

    @classmethod
    def read(cls, path: Path) -> "RecorderFacts | None":
        return read_as(cls, path, SCHEMA, _checked)


def _checked(document: Document) -> Document:
    parse(list[Recorded], document.get("recordings", []), "recordings")
    return document
