"""Reference implementation of the ranges that a sender retransmits, by sets of 32-byte units."""

from dataclasses import dataclass, field

UNIT = 32


@dataclass
class Part:
    """A part of a NAK's range: the units that it contains, and those that wait to be sent."""

    units: list[int]
    waiting: list[int]
    due: int
    until: int = 0


@dataclass
class RetransmitRanges:
    """The parts of one stream that are waiting or in flight."""

    most: int
    parts: list[Part] = field(default_factory=list)

    def request(self, begin: int, end: int, due: int) -> tuple[int, bool]:
        """Return (bytes that are already waiting or in flight, whether there was no room)."""
        known = {unit for part in self.parts for unit in part.units}
        contained, run = 0, None
        for unit in range(begin // UNIT, end // UNIT):
            if unit in known:
                contained, run = contained + UNIT, None
            elif run is None:
                if len(self.parts) == self.most:
                    return contained, True
                run = Part([unit], [unit], due)
                self.parts.append(run)
            else:
                run.units.append(unit)
                run.waiting.append(unit)
        self.parts.sort(key=lambda part: part.units)
        return contained, False

    def send(self, now: int, linger: int, most: int) -> list[int]:
        """Return the next units to send, at most `most`, which are then in flight."""
        sent: list[int] = []
        for part in self.parts:
            if part.waiting and part.due <= now:
                count = min(most - len(sent), len(part.waiting))
                sent += part.waiting[:count]
                part.waiting = part.waiting[count:]
                if count and not part.waiting:
                    part.until = now + linger
        return sent

    def time_passes(self, now: int, lowest: int) -> None:
        self.parts = [
            part
            for part in self.parts
            if (part.waiting[0] * UNIT >= lowest if part.waiting else part.until > now)
        ]
