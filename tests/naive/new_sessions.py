"""Reference implementation of the decision about SETUPs of sessions without an image."""

from dataclasses import dataclass, field

MS = 1_000_000
REFUSED, UNCONFIRMED, CONFIRMED = 0, 1, 2


@dataclass
class NewSessions:
    """Remembers every refused SETUP."""

    refusing_until: dict[tuple[int, int], int] = field(default_factory=dict)
    restricted_until: dict[tuple[int, int], int] = field(default_factory=dict)
    remembered: dict[tuple[int, int, int], int] = field(default_factory=dict)

    def restrict(self, stream: tuple[int, int], now: int, refusing: int, restricted: int) -> None:
        """Restrict a stream for two times."""
        if refusing:
            self.refusing_until[stream] = now + refusing
        if restricted:
            self.restricted_until[stream] = now + restricted

    def lift(self, stream: tuple[int, int]) -> None:
        """End the restrictions of a stream."""
        self.refusing_until.pop(stream, None)
        self.restricted_until.pop(stream, None)

    def admit(self, stream: tuple[int, int], session: int, now: int) -> int:
        """Decide about a SETUP."""
        if now >= self.restricted_until.get(stream, 0):
            return UNCONFIRMED
        key = (*stream, session)
        if key not in self.remembered or now - self.remembered[key] > 500 * MS:
            self.remembered[key] = now
            return REFUSED
        if now - self.remembered[key] < 50 * MS or now < self.refusing_until.get(stream, 0):
            return REFUSED
        self.remembered[key] = now
        return CONFIRMED
