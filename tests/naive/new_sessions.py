"""Reference implementation of the decision about SETUPs of sessions without an image."""

from dataclasses import dataclass, field

MS = 1_000_000
REFUSED, FIRST, REPEATED, PERSISTENT = -1, 0, 1, 2


@dataclass
class NewSessions:
    """Remembers the times of all SETUPs of each session since it was accepted."""

    restricted_until: dict[tuple[int, int, int], int] = field(default_factory=dict)
    times: dict[tuple[int, int, int], list[int]] = field(default_factory=dict)

    def restrict(self, stream: tuple[int, int], level: int, until: int) -> None:
        """Restrict a stream up to a level."""
        for each in (FIRST, REPEATED):
            if each <= level:
                self.restricted_until[(*stream, each)] = until

    def lift(self, stream: tuple[int, int]) -> None:
        """End the restrictions of a stream."""
        for each in (FIRST, REPEATED):
            self.restricted_until.pop((*stream, each), None)

    def admit(self, stream: tuple[int, int], session: int, is_answer: bool, now: int) -> int:
        """Decide about a SETUP."""
        if now >= self.restricted_until.get((*stream, FIRST), 0):
            return REPEATED if is_answer else FIRST
        times = self.times.setdefault((*stream, session), [])
        if times and now - times[-1] > 500 * MS:
            times.clear()
        times.append(now)
        level = REPEATED if is_answer or now - times[0] >= 50 * MS else FIRST
        if now - times[0] >= 1_000 * MS:
            level = PERSISTENT
        if now < self.restricted_until.get((*stream, level), 0):
            return REFUSED
        times[:] = [now]
        return level
