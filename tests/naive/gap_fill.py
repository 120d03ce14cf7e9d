"""Reference implementation of filling an unreliable stream's gaps on evidence, slot by slot."""

from dataclasses import dataclass, field

SLOT = 32


@dataclass
class GapFill:
    """The slots of a term: missing, data, or padding. Positions are offsets in the term."""

    datagrams: int
    delay: int
    hwm: int = 0
    count: int = 0
    data: set[int] = field(default_factory=set)
    pads: set[int] = field(default_factory=set)
    seen: dict[int, tuple[int, int]] = field(default_factory=dict)
    """For each missing slot, when it was seen to be missing: (time, number of datagrams)."""
    fills: list[list[int]] = field(default_factory=list)
    """The slots of each filled gap. Emptied when the gap turned out to be filled too early."""
    early: int = 0

    def arrive(self, begin: int, end: int) -> None:
        """A datagram arrives; only one that finds its first slot empty is stored."""
        if end > self.hwm:
            self.count += 1
            self.hwm = end
        for fill in self.fills:
            if begin in fill:
                self.early += 1
                fill.clear()
        if begin not in self.data | self.pads:
            self.data |= set(range(begin, end, SLOT))

    def turn(self, now: int) -> None:
        """Fill all slots for which there is enough evidence."""
        for slot in range(0, self.hwm, SLOT):
            if slot not in self.data | self.pads:
                self.seen.setdefault(slot, (now, self.count))
        due = [slot for slot in sorted(self.seen) if self._is_due(slot, now)]
        last = None
        for slot in due:
            # Slots that were seen together, and are adjacent, are one gap.
            if last != slot - SLOT or self.seen[last] != self.seen[slot]:
                self.fills.append([])
            self.fills[-1].append(slot)
            last = slot
        self.pads |= set(due)

    def _is_due(self, slot: int, now: int) -> bool:
        if slot in self.data | self.pads:
            return False
        time, count = self.seen[slot]
        is_enough = self.datagrams > 0 and self.count >= count + self.datagrams - 1
        return is_enough or now >= time + self.delay

    @property
    def reached(self) -> int:
        """Return the first missing slot, or the high-water mark."""
        missing = [at for at in range(0, self.hwm, SLOT) if at not in self.data | self.pads]
        return min(missing, default=self.hwm)
