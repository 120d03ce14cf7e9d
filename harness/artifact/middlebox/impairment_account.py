"""What the relay's own weather did to one link direction, datagram by datagram.

received + duplicated - lost - overflowed == sent        corrupted ones are among those sent
"""

from dataclasses import asdict, dataclass, field

from windtunnel.harness.artifact.documents import Document


@dataclass
class WeatherAccount:
    """The account of one link direction, of datagrams that have passed the fault rules."""

    received: int = 0
    lost: int = 0
    overflowed: int = 0
    "Lost since the ordered queue was full."
    duplicated: int = 0
    corrupted: int = 0
    reordered: int = 0
    "Sent at once, before others that came earlier."
    sent: int = 0
    waiting_at_end: int = 0
    no_room: int = 0
    "Among those overflowed: the memory that was full is the relay's own."
    frames_lost: dict[str, int] = field(default_factory=dict)
    "By frame class name: of datagrams that never left."
    frames_duplicated: dict[str, int] = field(default_factory=dict)
    frames_corrupted: dict[str, int] = field(default_factory=dict)
    late_ns: dict[str, int] = field(default_factory=dict)
    "Time from the ordered moment of departure to the real one: p50, p99, max."

    @property
    def unaccounted(self) -> int:
        """Datagrams that came in or were made, and neither left nor were lost."""
        return self.received + self.duplicated - self.lost - self.overflowed - self.sent

    @property
    def whole(self) -> int:
        """Datagrams that left and that their receiver takes."""
        return self.sent - self.corrupted

    def frames_whole(self, kind: str, received: int) -> int:
        """Of so many frames of a class, how many left and are taken."""
        added = self.frames_duplicated.get(kind, 0)
        gone = self.frames_lost.get(kind, 0) + self.frames_corrupted.get(kind, 0)
        return received + added - gone

    def as_document(self) -> Document:
        return asdict(self)
