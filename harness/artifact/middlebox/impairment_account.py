"""Account of the relay's impairments on one link direction, in datagrams.

received + duplicated - lost - overflowed == sent        sent includes the corrupted ones
"""

from dataclasses import asdict, dataclass, field

from windtunnel.harness.artifact.documents import Document


@dataclass
class ImpairmentAccount:
    """The account of one link direction, for datagrams that passed the fault rules."""

    received: int = 0
    lost: int = 0
    overflowed: int = 0
    "Dropped because the specified queue was full."
    duplicated: int = 0
    corrupted: int = 0
    reordered: int = 0
    "Sent immediately, before datagrams that arrived earlier."
    sent: int = 0
    waiting_at_end: int = 0
    no_room: int = 0
    "Included in overflowed: dropped because the relay's own buffer was full."
    frames_lost: dict[str, int] = field(default_factory=dict)
    "By frame class name: frames of datagrams that were not sent."
    frames_duplicated: dict[str, int] = field(default_factory=dict)
    frames_corrupted: dict[str, int] = field(default_factory=dict)
    late_ns: dict[str, int] = field(default_factory=dict)
    "Delay of the actual departure after the scheduled one: p50, p99, max."

    @property
    def unaccounted(self) -> int:
        """Datagrams that were received or duplicated, but neither sent nor lost."""
        return self.received + self.duplicated - self.lost - self.overflowed - self.sent

    @property
    def whole(self) -> int:
        """Datagrams that were sent uncorrupted."""
        return self.sent - self.corrupted

    def frames_whole(self, kind: str, received: int) -> int:
        """Return how many of a number of received frames of a class were sent uncorrupted."""
        added = self.frames_duplicated.get(kind, 0)
        gone = self.frames_lost.get(kind, 0) + self.frames_corrupted.get(kind, 0)
        return received + added - gone

    def as_document(self) -> Document:
        return asdict(self)
