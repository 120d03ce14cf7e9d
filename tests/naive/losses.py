"""Reference implementation of the C driver's deterministic loss generators, frame by frame."""


class FixedLoss:
    """Drops the first transmission of all data below `limit`, from the first position seen."""

    def __init__(self, term_id: int, limit: int) -> None:
        self.term_id, self.limit = term_id, limit
        self.reached: dict[tuple[int, int], int] = {}

    def loses(self, stream: tuple[int, int], term_id: int, offset: int, length: int) -> bool:
        if term_id != self.term_id:
            return False
        reached = self.reached.setdefault(stream, offset)
        if reached >= self.limit or not offset <= reached < offset + length:
            return False
        self.reached[stream] = offset + length
        return True


class MultiGapLoss:
    """Drops data that overlaps a gap at a multiple of the radix, except the first."""

    def __init__(self, term_id: int, radix: int, gap_length: int, gaps: int) -> None:
        self.term_id, self.gap_length = term_id, gap_length
        self.limit = radix * gaps + gap_length
        self.radix = 1
        while self.radix < radix:
            self.radix *= 2
        self.reached: dict[tuple[int, int], int] = {}

    def loses(self, stream: tuple[int, int], term_id: int, offset: int, length: int) -> bool:
        if term_id != self.term_id or offset > self.limit:
            return False
        reached = self.reached.setdefault(stream, offset)
        if reached > offset:
            return False
        first = offset // self.radix * self.radix
        for gap in (first, first + self.radix):
            end = gap + self.gap_length
            begins_there = offset == gap
            if gap > 0 and ((offset < end and gap < offset + length) or begins_there):
                self.reached[stream] = offset + length
                return True
        return False
