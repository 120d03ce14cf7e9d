"""Which log buffers of a host's driver lie in the run folder, and why another does not.

A log is called by its folder and its registration id, such as `images/23`. Its file has its whole
length, with holes where it holds nothing but zeros.
"""

from dataclasses import asdict, dataclass
from pathlib import Path

from windtunnel.harness.artifact.documents import (
    DocumentError,
    check_types,
    read_document,
    write_document,
)

SCHEMA = "windtunnel-logs/1"
PUBLICATIONS = "publications"
IMAGES = "images"
FOLDERS = (PUBLICATIONS, IMAGES)
"""Subfolders of a driver's directory."""
SUFFIX = ".logbuffer"


@dataclass(frozen=True)
class HeldLog:
    """One log buffer that a driver had."""

    folder: str
    "PUBLICATIONS or IMAGES."
    registration_id: int
    "Of the publication, or the correlation id of the image: the stem of the file's name."
    length: int
    left_out: str
    "Why the log was not copied; empty when it was."


def write_held_logs(path: Path, logs: list[HeldLog]) -> None:
    """Write what logs there were."""
    write_document(path, {"schema": SCHEMA, "logs": [asdict(each) for each in logs]})


def read_held_logs(path: Path) -> list[HeldLog] | None:
    """What logs there were, or None when the file is missing."""
    document = read_document(path, SCHEMA)
    if document is None:
        return None
    try:
        logs = [HeldLog(**each) for each in document["logs"]]
        for each in logs:
            check_types(each)
        return logs
    except (KeyError, TypeError) as error:
        raise DocumentError(f"{path.name}: {error}") from error
