"""Reference implementation of the counters manager: a list of records."""

from dataclasses import dataclass

UNUSED, ALLOCATED, RECLAIMED = 0, 1, -1


@dataclass
class NaiveCounter:
    """One counter record."""

    state: int
    type_id: int
    registration_id: int


def find(records: list[NaiveCounter], type_id: int, registration_id: int) -> int | None:
    """Return the first allocated counter of that type and registration before an UNUSED record."""
    for counter_id, record in enumerate(records):
        if record.state == UNUSED:
            return None
        if record == NaiveCounter(ALLOCATED, type_id, registration_id):
            return counter_id
    return None


class NaiveManager:
    """Allocates ids: the first freed one after its reuse timeout, else a new one."""

    def __init__(self, capacity: int, reuse_timeout_ms: int) -> None:
        self.capacity = capacity
        self.reuse_timeout_ms = reuse_timeout_ms
        self.given = 0
        self.resting: list[tuple[int, int]] = []

    def allocate(self, now_ms: int) -> int | None:
        for resting in self.resting:
            if resting[1] <= now_ms:
                self.resting.remove(resting)
                return resting[0]
        if self.given == self.capacity:
            return None
        self.given += 1
        return self.given - 1

    def free(self, counter_id: int, now_ms: int) -> None:
        self.resting.append((counter_id, now_ms + self.reuse_timeout_ms))
