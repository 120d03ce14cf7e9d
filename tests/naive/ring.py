"""Reference implementation of the command ring buffer: a list of records instead of bytes."""

from dataclasses import dataclass

CLAIMED, COMMITTED, PADDING, DEAD = "claimed", "committed", "padding", "dead"
HEADER = 8


@dataclass
class Record:
    """One record of the ring; DEAD means claimed by a producer that never wrote a length."""

    position: int
    size: int
    state: str
    type_id: int = -1
    payload: bytes = b""


class NaiveRing:
    """A ring of `capacity` bytes, as a list of its records, oldest first."""

    def __init__(self, capacity: int) -> None:
        self.capacity = capacity
        self.head = 0
        self.tail = 0
        self.records: list[Record] = []

    def claim(self, type_id: int, payload: bytes, dies: bool = False) -> Record | None:
        """Claim space for a message: at the tail, or at the start after a pad."""
        size = (len(payload) + HEADER + 7) // 8 * 8
        if size > self.capacity - (self.tail - self.head):
            return None
        to_end = self.capacity - self.tail % self.capacity
        if size > to_end:
            if size > self.head % self.capacity:
                return None
            self._append(to_end, DEAD if dies else PADDING)
        return self._append(size, DEAD if dies else CLAIMED, type_id, payload)

    def read(self) -> tuple[int, bytes] | None:
        """Return the oldest message, if it is complete; skip padding before it."""
        while self.records and self.records[0].state == PADDING:
            self._consume()
        if not self.records or self.records[0].state != COMMITTED:
            return None
        record = self._consume()
        return record.type_id, record.payload

    def unblock(self) -> bool:
        """Replace a blocked record at the head with padding, as far as its extent is known."""
        if not self.records:
            return False
        first = self.records[0]
        if first.state == CLAIMED:
            first.state = PADDING
            return True
        if first.state != DEAD:
            return False
        dead = 0
        lap = first.position // self.capacity
        for record in self.records:
            if record.state != DEAD or record.position // self.capacity != lap:
                break
            dead += 1
        if dead == len(self.records):
            return False
        size = sum(record.size for record in self.records[:dead])
        self.records[:dead] = [Record(first.position, size, PADDING)]
        return True

    def _append(self, size: int, state: str, type_id: int = -1, payload: bytes = b"") -> Record:
        record = Record(self.tail, size, state, type_id, payload)
        self.records.append(record)
        self.tail += size
        return record

    def _consume(self) -> Record:
        record = self.records.pop(0)
        self.head += record.size
        return record
