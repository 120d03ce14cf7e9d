"""Reference implementation of the broadcast buffer: a list of all messages with positions."""

from dataclasses import dataclass, field

HEADER = 8
LAPPED = "lapped"


@dataclass
class NaiveBroadcast:
    """All transmitted messages, and the transmitter's position."""

    capacity: int
    tail: int = 0
    latest: int = 0
    messages: list[tuple[int, int, int, bytes]] = field(default_factory=list)
    """Start position for a receiver (before a pad), end position, type, payload."""

    def transmit(self, type_id: int, payload: bytes) -> None:
        size = (len(payload) + HEADER + 7) // 8 * 8
        start = self.tail
        to_end = self.capacity - start % self.capacity
        self.latest = start + to_end if size > to_end else start
        self.tail = self.latest + size
        self.messages.append((start, self.tail, type_id, payload))


class NaiveReceiver:
    """Reads messages in order until the transmitter laps it."""

    def __init__(self, broadcast: NaiveBroadcast) -> None:
        self.broadcast = broadcast
        self.next = broadcast.latest

    def receive(self) -> tuple[int, bytes] | str | None:
        """Return a message, None, or LAPPED, after which it is at the latest message."""
        broadcast = self.broadcast
        if self.next >= broadcast.tail:
            return None
        if broadcast.tail - self.next >= broadcast.capacity:
            self.next = broadcast.latest
            return LAPPED
        for start, end, type_id, payload in broadcast.messages:
            if start <= self.next < end:
                self.next = end
                return type_id, payload
        raise AssertionError(f"no message begins at {self.next}")
