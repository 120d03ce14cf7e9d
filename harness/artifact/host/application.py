"""The documents that publishers and subscribers write when they end, with facts about their
streams.

A workload that is killed earlier writes no document, which the judge treats as missing evidence.
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
    """What one publisher reports about its publication."""

    session_id: int
    stream_id: int
    initial_term_id: int
    term_length: int
    mtu: int
    start_position: int
    "Initial position of the publication. It is 0 unless the channel specifies a position."
    end_position: int
    "The publication's position after the last accepted message."
    message_count: int
    back_pressure_count: int
    admin_action_count: int
    started_ns: int
    ended_ns: int
    error: str | None
    not_connected_count: int = 0
    "Number of offers that returned NOT_CONNECTED and were repeated."
    back_pressured_ns: int = 0
    "Time from offers that returned BACK_PRESSURED to the next offers."
    not_connected_ns: int = 0
    "Time from offers that returned NOT_CONNECTED to the next offers."

    def write(self, path: Path) -> None:
        write_document(path, {"schema": PUBLISHER_SCHEMA, **asdict(self)})

    @classmethod
    def read(cls, path: Path) -> "PublisherFacts | None":
        return read_as(cls, path, PUBLISHER_SCHEMA)


@dataclass
class Part:
    """One of several images of a stream that a subscriber has read one after another."""

    session_id: int
    join_position: int
    end_position: int
    "The image's position when the subscriber stopped reading it."
    eos_seen: bool
    joined_ns: int
    left_ns: int


@dataclass
class SubscriberFacts:
    """What one subscriber reports about its image, or about the last of several images."""

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
    "A `Part` for each image in order of joining, for a stream that rejoins."
    merged_position: int = -1
    "The position at which a ReplayMerge switched to the live stream, or -1 if it did not."

    @property
    def own_parts(self) -> list[Part]:
        """The facts about each image of the stream, as `Part` values. Raises ValueTypeError if one
        of them is invalid.
        """
        return parse(list[Part], self.parts, "parts")

    def write(self, path: Path) -> None:
        write_document(path, {"schema": SUBSCRIBER_SCHEMA, **asdict(self)})

    @classmethod
    def read(cls, path: Path) -> "SubscriberFacts | None":
        return read_as(cls, path, SUBSCRIBER_SCHEMA, _checked)


def _checked(document: Document) -> Document:
    parse(list[Part], document.get("parts", []), "parts")
    return document
