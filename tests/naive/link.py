"""Reference implementation of `driver.media.link`: lists of datagrams, with ring accounting."""

from dataclasses import dataclass, field

HEADER_LENGTH = 72


@dataclass
class Ring:
    """A bounded queue that accounts for bytes exactly as a ring of `capacity` bytes does."""

    capacity: int
    head: int = 0
    tail: int = 0
    records: list[tuple[int, object]] = field(default_factory=list)

    def put(self, length: int, value: object) -> bool:
        if not self.records:
            self.head = self.tail = 0
        needed = (HEADER_LENGTH + length + 7) // 8 * 8
        to_end = self.capacity - self.tail % self.capacity
        filler = to_end if needed > to_end else 0
        if filler + needed > self.capacity - (self.tail - self.head):
            return False
        self.tail += filler + needed
        self.records.append((self.tail, value))
        return True

    def take(self) -> object | None:
        if not self.records:
            # A kernel steps over a filler only when it looks behind it for a datagram.
            return None
        self.head, value = self.records.pop(0)
        return value


@dataclass
class Mailbox:
    """One endpoint of the naive link."""

    local: bytes
    peer: bytes
    inbound: Ring
    outbound: Ring

    def put_outbound(self, name: bytes, datagram: bytes) -> bool:
        to = name or self.peer
        return bool(to) and self.outbound.put(len(datagram), (to, datagram))

    def deliver(self, source: bytes, datagram: bytes) -> str:
        if self.peer and source != self.peer:
            return "not for us"
        return "taken" if self.inbound.put(len(datagram), (source, datagram)) else "full"
