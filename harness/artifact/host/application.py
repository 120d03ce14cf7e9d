"""Documents that a publisher and a subscriber write about themselves when they end.

A workload that is killed before writes no document; the judge treats it as missing evidence.
"""

from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from windtunnel.harness.artifact.document_values import parse
from windtunnel.harness.artifact.documents import Document, read_as, write_document

PUBLISHER_SCHEMA = "windtunnel-publisher/1"
SUBSCRIBER_SCHEMA = "windtunnel-subscriber/1"


@dataclass
class PublisherFacts:
    """The facts of one publisher."""

    session_id: int
    stream_id: int
    initial_term_id: int
    term_length: int
    mtu: int
    start_position: int
    "Initial position of the publication; 0 unless the channel specifies a later term or offset."
    end_position: int
    "The publication's position after the last accepted message."
    message_count: int
    back_pressure_count: int
    admin_action_count: int
    started_ns: int
    ended_ns: int
    error: str | None
    not_connected_count: int = 0
    "Offers that returned NOT_CONNECTED, of a stream that rejoins."

    def write(self, path: Path) -> None:
        write_document(path, {"schema": PUBLISHER_SCHEMA, **asdict(self)})

    @classmethod
    def read(cls, path: Path) -> "PublisherFacts | None":
        return read_as(cls, path, PUBLISHER_SCHEMA)


@dataclass
class Part:
    """One image of a stream whose image was lost and replaced."""

    session_id: int
    join_position: int
    end_position: int
    "The image's position when the subscriber stopped reading it."
    eos_seen: bool
    joined_ns: int
    left_ns: int


@dataclass
class SubscriberFacts:
    """The facts of one subscriber and its image; of several images, the last one."""

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
    "Of a stream that rejoins, a `Part` for each image in order of joining."
    merged_position: int = -1
    "The position at which a ReplayMerge switched to the live stream; -1 if it did not."

    @property
    def own_parts(self) -> list[Part]:
        """The parts as `Part` values; raises ValueTypeError for an invalid one."""
        return parse(list[Part], self.parts, "parts")

    def write(self, path: Path) -> None:
        write_document(path, {"schema": SUBSCRIBER_SCHEMA, **asdict(self)})

    @classmethod
    def read(cls, path: Path) -> "SubscriberFacts | None":
        return read_as(cls, path, SUBSCRIBER_SCHEMA, _checked)


def _checked(document: Document) -> Document:
    parse(list[Part], document.get("parts", []), "parts")
    return document
