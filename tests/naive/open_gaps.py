"""Reference implementation of the NAKs for all gaps of an image, in its first term."""

from dataclasses import dataclass, field, replace

from tests.naive import smoothed_time
from tests.naive import term as naive_term

INITIAL_REPAIR = 333_000_000
DEVIATION_MIN = 1_000_000
RETRY_MAX = 5_000_000_000


@dataclass
class Gap:
    """One gap, with the times at which a NAK was first sent and is next due."""

    begin: int
    end: int
    deadline: int
    naks: int = 0
    in_row: int = 0
    first_nak: int | None = None


def missing(term: bytearray, begin: int, end: int) -> list[tuple[int, int]]:
    """Return all ranges without a frame between two offsets."""
    found: list[tuple[int, int]] = []
    at = begin
    while at < end:
        length = naive_term.slot(term, at)
        step = naive_term.aligned(length) if length else 32
        if length == 0:
            if found and found[-1][1] == at:
                found[-1] = (found[-1][0], at + 32)
            else:
                found.append((at, at + 32))
        at += step
    return found


@dataclass
class OpenGaps:
    """All gaps of an image with a fixed NAK delay."""

    delay: int
    retry: int
    gaps_max: int
    gaps: list[Gap] = field(default_factory=list)
    scanned: int = 0
    packet: int = 0
    samples: list[int] = field(default_factory=list)
    repair: int = 0
    deviation: int = 0

    def on_packet(self, packet: int) -> None:
        """Reset the doublings of all gaps if no packet arrived for 250 ms before this one."""
        for gap in self.gaps if packet - self.packet >= 250_000_000 else []:
            if gap.in_row:
                gap.deadline += self._timeout(1) - self._timeout(gap.in_row)
                gap.in_row = 0
        self.packet = packet

    def scan(
        self, term: bytearray, hwm: int, may_send_nak: bool, now: int
    ) -> tuple[int, bool, tuple[int, int] | None]:
        """Return (rebuilt offset, whether a gap is new, the range of the NAK to send now)."""
        was_measured = self.repair > 0
        for gap in self.gaps:
            left = missing(term, gap.begin, gap.end)
            begin = left[0][0] if left else gap.end
            if begin > gap.begin and gap.naks > 0:
                self._measure(gap, now)
                gap.deadline = max(gap.deadline, now + self._timeout(gap.in_row))
            gap.begin = begin
        self.gaps = [gap for gap in self.gaps if gap.begin < gap.end]
        if self.repair > 0 and not was_measured:
            self._replace_assumption(now)
        is_new = self._find(term, hwm, now)
        reached = self.gaps[0].begin if self.gaps else self.scanned
        return reached, is_new, self._next_nak(term, now) if may_send_nak else None

    def _measure(self, gap: Gap, now: int) -> None:
        if gap.first_nak is not None and (gap.naks == 1 or self.repair == 0):
            self.samples.append(now - gap.first_nak)
            self.repair, self.deviation = smoothed_time.smoothed(self.samples)
        gap.first_nak = None

    def _replace_assumption(self, now: int) -> None:
        """Use the first measurement, if it is shorter than the assumption, for all NAKs sent."""
        for gap in self.gaps:
            if gap.naks and self._expected() < INITIAL_REPAIR:
                assumed = self._timeout(gap.in_row, INITIAL_REPAIR)
                gap.deadline += self._timeout(gap.in_row) - assumed
                if gap.first_nak is None:
                    gap.deadline = max(gap.deadline, now + self._timeout(1))

    def _expected(self) -> int:
        if not self.repair:
            return INITIAL_REPAIR
        return self.repair + max(4 * self.deviation, self.repair // 16, DEVIATION_MIN)

    def _timeout(self, naks: int, repair: int | None = None) -> int:
        repair = self._expected() if repair is None else repair
        doubled = min(repair * 2 ** min(max(naks - 1, 0), 6), RETRY_MAX)
        return max(self.retry, repair, doubled)

    def _find(self, term: bytearray, hwm: int, now: int) -> bool:
        is_new = False
        for begin, end in missing(term, self.scanned, hwm):
            last = self.gaps[-1] if self.gaps else None
            if last is not None and last.end == begin and last.naks == 0:
                last.end = end
            elif len(self.gaps) == self.gaps_max:
                self.scanned = begin
                return is_new
            else:
                self.gaps.append(Gap(begin, end, now + self.delay))
            is_new = True
        self.scanned = max(self.scanned, hwm)
        return is_new

    def _next_nak(self, term: bytearray, now: int) -> tuple[int, int] | None:
        for row, gap in enumerate(self.gaps):
            if now < gap.deadline:
                continue
            left = missing(term, gap.begin, gap.end)
            if len(left) == 1:
                gap.end = left[0][1]
            elif len(self.gaps) < self.gaps_max:
                rest = replace(gap, begin=left[1][0])
                self.gaps.insert(row + 1, rest)
                gap.end = left[0][1]
            gap.naks += 1
            gap.in_row += 1
            if gap.naks == 1:
                gap.first_nak = now
            gap.deadline = now + self._timeout(gap.in_row)
            return left[0]
        return None
