"""What a publisher and a subscriber say about themselves when they end.

Whoever is killed before that leaves no such document, and the judge takes its absence as a fact.
"""

from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from windtunnel.harness.artifact.documents import DocumentError, read_document, write_document

PUBLISHER_SCHEMA = "windtunnel-publisher/1"
SUBSCRIBER_SCHEMA = "windtunnel-subscriber/1"


@dataclass
class PublisherFacts:
    """What one publisher did."""

    session_id: int
    stream_id: int
    initial_term_id: int
    term_length: int
    mtu: int
    start_position: int
    "Where the publication began; 0 unless the channel asked for a later term or offset."
    end_position: int
    "The publication's position after the last accepted message."
    message_count: int
    back_pressure_count: int
    admin_action_count: int
    started_ns: int
    ended_ns: int
    error: str | None
    not_connected_count: int = 0
    "How many offers found nobody who listened, of a stream that rejoins."

    def write(self, path: Path) -> None:
        write_document(path, {"schema": PUBLISHER_SCHEMA, **asdict(self)})

    @classmethod
    def read(cls, path: Path) -> "PublisherFacts | None":
        document = read_document(path, PUBLISHER_SCHEMA)
        if document is None:
            return None
        try:
            return cls(**{key: value for key, value in document.items() if key != "schema"})
        except TypeError as error:
            raise DocumentError(f"{path.name}: {error}") from error


@dataclass
class Part:
    """What one image brought of a stream that was cut and went on."""

    session_id: int
    join_position: int
    end_position: int
    "The image's position when it was left."
    eos_seen: bool
    joined_ns: int
    left_ns: int


@dataclass
class SubscriberFacts:
    """What one subscriber saw of its one image; of several, of the one that it left last."""

    session_id: int
    stream_id: int
    join_position: int
    end_position: int
    "The image's position when the subscriber stopped reading."
    eos_seen: bool
    message_count: int
    message_bytes: int
    started_ns: int
    ended_ns: int
    error: str | None
    parts: list[dict[str, Any]] = field(default_factory=list)
    "Of a stream that rejoins, a `Part` for each image in the order in which they came."
    merged_position: int = -1
    "Where a reader that merges left its replay for the live stream; -1 if it did not."

    @property
    def own_parts(self) -> list[Part]:
        """The parts as values; raises TypeError for what is none."""
        return [Part(**each) for each in self.parts]

    def write(self, path: Path) -> None:
        write_document(path, {"schema": SUBSCRIBER_SCHEMA, **asdict(self)})

    @classmethod
    def read(cls, path: Path) -> "SubscriberFacts | None":
        document = read_document(path, SUBSCRIBER_SCHEMA)
        if document is None:
            return None
        try:
            return cls(**{key: value for key, value in document.items() if key != "schema"})
        except TypeError as error:
            raise DocumentError(f"{path.name}: {error}") from error
