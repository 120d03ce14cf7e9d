"""Counts of the datagrams that the relay's impairments affected in one link direction.

received + duplicated - lost - overflowed == sent        sent includes corrupted datagrams
"""

from dataclasses import asdict, dataclass, field

from windtunnel.harness.artifact.documents import Document


@dataclass
class ImpairmentAccount:
    """Effects of the relay's impairments in one link direction, after the fault rules."""

    received: int = 0
    lost: int = 0
    overflowed: int = 0
    "Datagrams dropped because the specified queue was full."
    duplicated: int = 0
    corrupted: int = 0
    reordered: int = 0
    "Datagrams sent immediately, ahead of datagrams that arrived earlier."
    sent: int = 0
    waiting_at_end: int = 0
    no_room: int = 0
    "Datagrams dropped because the relay's buffer was full; included in `overflowed`."
    frames_lost: dict[str, int] = field(default_factory=dict)
    "Frames in datagrams that were not sent, by frame class name."
    frames_duplicated: dict[str, int] = field(default_factory=dict)
    frames_corrupted: dict[str, int] = field(default_factory=dict)
    late_ns: dict[str, int] = field(default_factory=dict)
    "Time between scheduled and actual departure: p50, p99, max."

    @property
    def unaccounted(self) -> int:
        """Number of datagrams that were received or duplicated, but neither sent nor dropped."""
        return self.received + self.duplicated - self.lost - self.overflowed - self.sent

    @property
    def whole(self) -> int:
        """Number of datagrams that were sent uncorrupted."""
        return self.sent - self.corrupted

    def frames_whole(self, kind: str, received: int) -> int:
        """Return how many frames of a class were sent uncorrupted, given how many were received."""
        added = self.frames_duplicated.get(kind, 0)
        gone = self.frames_lost.get(kind, 0) + self.frames_corrupted.get(kind, 0)
        return received + added - gone

    def as_document(self) -> Document:
        return asdict(self)
