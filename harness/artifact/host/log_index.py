"""Index of the log buffers of a host's driver: which were copied to the run folder, and why not.

A log is identified by its folder and its registration id, such as `images/23`. Its copy has the
full length, and is sparse where it holds only zeros.
"""

from dataclasses import asdict, dataclass
from pathlib import Path

from windtunnel.harness.artifact.documents import read_as, write_document

SCHEMA = "windtunnel-logs/1"
PUBLICATIONS = "publications"
IMAGES = "images"
FOLDERS = (PUBLICATIONS, IMAGES)
"""Subfolders of a driver's directory."""
SUFFIX = ".logbuffer"


@dataclass(frozen=True)
class LogFacts:
    """One log buffer of a driver."""

    folder: str
    "PUBLICATIONS or IMAGES."
    registration_id: int
    "Registration id of the publication, or correlation id of the image; the file name's stem."
    length: int
    left_out: str
    "Why the log was not copied; empty when it was."


@dataclass(frozen=True)
class _LogIndex:
    logs: list[LogFacts]


def write_log_index(path: Path, logs: list[LogFacts]) -> None:
    """Write the index of a driver's log buffers."""
    write_document(path, {"schema": SCHEMA, "logs": [asdict(each) for each in logs]})


def read_log_index(path: Path) -> list[LogFacts] | None:
    """Return the index of a driver's log buffers, or None if the file is missing."""
    found = read_as(_LogIndex, path, SCHEMA)
    return None if found is None else found.logs
