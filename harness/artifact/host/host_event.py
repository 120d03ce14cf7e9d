"""What really befell the hosts of a run, and when: written by who did it, read by the judge.

A pause is noted as longer than it was: it begins before the signal is sent and ends after the
processes were told to go on.
"""

from dataclasses import asdict, dataclass
from pathlib import Path

from windtunnel.harness.artifact.documents import DocumentError, read_document, write_document

SCHEMA = "windtunnel-host-events/1"


@dataclass
class HappenedEvent:
    """One event that came."""

    id: str
    host: str
    action: str
    "`pause` or `kill`."
    processes: list[str]
    "Roles of those that it befell: driver, publisher, subscriber, archive, recorder."
    began_ns: int
    ended_ns: int
    "When the processes went on, or their successors were started; 0 if that never came."


def write_happened(path: Path, events: list[HappenedEvent]) -> None:
    write_document(path, {"schema": SCHEMA, "events": [asdict(each) for each in events]})


def read_happened(path: Path) -> list[HappenedEvent] | None:
    """The events of a run in the order in which they began, or None where nobody noted any."""
    document = read_document(path, SCHEMA)
    if document is None:
        return None
    try:
        return [HappenedEvent(**each) for each in document["events"]]
    except (KeyError, TypeError) as error:
        raise DocumentError(f"{path.name}: {error}") from error
