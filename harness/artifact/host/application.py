"""The documents that publishers and subscribers write when they end, with facts about their
streams.

A workload that is killed earlier writes no document, which the judge treats as missing evidence.
"""

from dataclasses import dataclass, field
from typing import ClassVar

from windtunnel.harness.artifact.documents import StoredDocument


@dataclass
class PublisherFacts(StoredDocument):
    """What one publisher reports about its publication."""

    SCHEMA: ClassVar[str] = "windtunnel-publisher/1"

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
class SubscriberFacts(StoredDocument):
    """What one subscriber reports about its image, or about the last of several images."""

    SCHEMA: ClassVar[str] = "windtunnel-subscriber/1"

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
    parts: list[Part] = field(default_factory=list)
    "The images in order of joining, for a stream that rejoins."
    merged_position: int = -1
    "The position at which a ReplayMerge switched to the live stream, or -1 if it did not."
