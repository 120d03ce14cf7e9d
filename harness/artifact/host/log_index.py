"""Index of a driver's log files: which files were copied to the run folder, and why other files
were not.

A log is identified by its folder and its registration id, such as `images/23`. The copy has the
full length, and is sparse where the log contains only zeros.
"""

from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

from windtunnel.harness.artifact.documents import StoredDocument

PUBLICATIONS = "publications"
IMAGES = "images"
FOLDERS = (PUBLICATIONS, IMAGES)
"""Subfolders of a driver's directory that contain log files."""
SUFFIX = ".logbuffer"


@dataclass(frozen=True)
class LogFacts:
    """One of a driver's log files. If the file was not copied to the run folder, the reason is
    given.
    """

    folder: str
    "Subfolder of the log: PUBLICATIONS or IMAGES."
    registration_id: int
    "Registration id of the publication or correlation id of the image. It is the file's name."
    length: int
    left_out: str
    "The reason why the log was not copied, or an empty string if it was copied."


@dataclass(frozen=True)
class _LogIndex(StoredDocument):
    SCHEMA: ClassVar[str] = "windtunnel-logs/1"

    logs: list[LogFacts]


def write_log_index(path: Path, logs: list[LogFacts]) -> None:
    """Write the index of a driver's log files."""
    _LogIndex(logs).write(path)


def read_log_index(path: Path) -> list[LogFacts] | None:
    """Read the index of a driver's log files. Returns None if the file is missing."""
    found = _LogIndex.read(path)
    return None if found is None else found.logs
