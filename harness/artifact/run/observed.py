"""What the applications of a run saw, in verdict.json: sentences, stalls and filled gaps.

    interruptions    cut, pause, kill,     when the scenario stopped or impaired links, or stopped
                     partition, impair     processes
    readers          one per subscriber    sentences, stalls, ranges that padding filled

The judge writes the sentences. The terminal and the report page print them unchanged. Times are
those of the run's clock, which is virtual in a simulation.
"""

from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from typing import Any

NS_PER_S = 1_000_000_000
LISTED_MAX = 1_000
"""Maximum number of stalls and of filled ranges in the document, for each subscriber. Sentences
state the total numbers.
"""


@dataclass(frozen=True)
class Interruption:
    """A time range in which the scenario cut or impaired links, or paused or killed processes."""

    kind: str
    "`cut`, `pause`, `kill`, `partition` or `impair`."
    id: str
    "Id of the fault rule or the host event."
    what: str
    "The link directions, or the processes and their host."
    began_ns: int
    ended_ns: int
    "Time at which the links were as before, or the processes continued or were restarted."


@dataclass(frozen=True)
class Stall:
    """A time in which a subscriber waited for a message that was due."""

    began_ns: int
    ended_ns: int
    causes: dict[str, int]
    "Nanoseconds by cause."

    @property
    def lasted_ns(self) -> int:
        return self.ended_ns - self.began_ns


@dataclass(frozen=True)
class FilledRange:
    """A range of stream positions that the receiver filled with padding."""

    position: int
    length: int
    read_ns: int
    "Time at which the application read the first padding frame."
    lost_frames: int | None = None
    "Frames of the range that did not arrive."
    late_frames: int | None = None
    "Frames of the range that arrived too late, so that the receiver discarded them."
    rejected_frames: int = 0
    "Frames of the range that arrived, but ended beyond the receiver's window."


@dataclass(frozen=True)
class ReaderObservations:
    """What the application of one subscriber saw."""

    traffic: str
    host: str
    sentences: list[str] = field(default_factory=list)
    stalls: list[Stall] = field(default_factory=list)
    filled: list[FilledRange] = field(default_factory=list)


@dataclass(frozen=True)
class Observations:
    """What all applications of a run saw."""

    start_ns: int = 0
    "Time of the first offer, which times in sentences are relative to."
    is_virtual: bool = False
    "Whether the times are those of a simulation."
    interruptions: list[Interruption] = field(default_factory=list)
    sentences: list[str] = field(default_factory=list)
    "Sentences about publications, streams with several subscribers, observed streams, and links."
    readers: list[ReaderObservations] = field(default_factory=list)
    details: list[str] = field(default_factory=list)
    "Sentences about each observed stream, if `sentences` summarize them. They are not shown."

    @property
    def all_sentences(self) -> list[str]:
        """All sentences, in the order in which they are shown."""
        return [*(text for each in self.readers for text in each.sentences), *self.sentences]

    @property
    def title(self) -> str:
        """The title of the sentences. What applications read of observed streams is unknown."""
        return f"what the {'application' if self.readers else 'hosts'} saw"

    def as_document(self) -> dict[str, Any]:
        return asdict(self)


def clock_text(time_ns: int) -> str:
    """Return a time such as `2026-01-31 12:00:03.123 UTC`, or the number if it is out of range."""
    try:
        moment = datetime.fromtimestamp(time_ns // NS_PER_S, UTC)
    except (OverflowError, ValueError, OSError):
        return f"{time_ns} ns"
    return f"{moment:%Y-%m-%d %H:%M:%S}.{time_ns % NS_PER_S // 1_000_000:03} UTC"
