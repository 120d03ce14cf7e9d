"""Reads counters with their keys and labels while other processes update them."""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from windtunnel.driver.base.atomics import get_i32_acquire
from windtunnel.driver.cnc import counters


@dataclass(frozen=True, slots=True)
class Counter:
    """The fields of one allocated counter at the time of reading."""

    counter_id: int
    type_id: int
    value: int
    registration_id: int
    owner_id: int
    reference_id: int
    key: bytes
    """The key field, always 112 bytes. The counter type determines how many of them are used."""
    label: str


class CountersReader:
    """Reads the counters sections of a mapped `cnc.dat`. Read access is sufficient."""

    def __init__(self, metadata: np.ndarray, values: np.ndarray) -> None:
        self.metadata = metadata
        self.values = values
        self.capacity = int(counters.capacity(metadata, values))

    def __iter__(self) -> Iterator[Counter]:
        """Yield all allocated counters in the order of their ids."""
        for counter_id in range(self.capacity):
            state = counters.state(self.metadata, counter_id)
            if state == counters.UNUSED:
                return
            counter = self.read(counter_id) if state == counters.ALLOCATED else None
            if counter is not None:
                yield counter

    def read(self, counter_id: int) -> Counter | None:
        """Return a counter, or None if it is not allocated or was reused during the read."""
        if not 0 <= counter_id < self.capacity:
            return None
        if counters.state(self.metadata, counter_id) != counters.ALLOCATED:
            return None
        registration_id = int(counters.registration_id(self.values, counter_id))
        counter = Counter(
            counter_id=counter_id,
            type_id=int(counters.type_id(self.metadata, counter_id)),
            value=int(counters.get_acquire(self.values, counter_id)),
            registration_id=registration_id,
            owner_id=int(counters.owner_id(self.values, counter_id)),
            reference_id=int(counters.reference_id(self.values, counter_id)),
            key=self.key(counter_id),
            label=self.label(counter_id),
        )
        still = counters.is_active(self.metadata, self.values, counter_id, registration_id)
        return counter if still else None

    def value(self, counter_id: int) -> int:
        """Return the current value of a counter. Raises IndexError for an id out of range."""
        return int(counters.get_acquire(self.values, self._in_range(counter_id)))

    def key(self, counter_id: int) -> bytes:
        """Return all bytes of a counter's key field. Raises IndexError for an id out of range."""
        at = self._in_range(counter_id) * counters.METADATA_LENGTH + counters.KEY
        return self.metadata[at : at + counters.KEY_LENGTH_MAX].tobytes()

    def label(self, counter_id: int) -> str:
        """Return the label of a counter. An invalid label length is limited to the size of the
        field.
        """
        at = self._in_range(counter_id) * counters.METADATA_LENGTH
        length = int(get_i32_acquire(self.metadata, at + counters.LABEL_LENGTH))
        length = max(0, min(length, counters.LABEL_LENGTH_MAX))
        start = at + counters.LABEL
        return self.metadata[start : start + length].tobytes().decode("utf-8", "replace")

    def find(self, type_id: int, registration_id: int) -> int | None:
        """Return the id of the first allocated counter with this type and registration id, or
        None.
        """
        found = int(counters.find(self.metadata, self.values, type_id, registration_id))
        return None if found == counters.NULL_COUNTER_ID else found

    def is_active(self, counter_id: int, registration_id: int) -> bool:
        """Return whether a counter is allocated and still has the given registration id."""
        return bool(counters.is_active(self.metadata, self.values, counter_id, registration_id))

    def _in_range(self, counter_id: int) -> int:
        if not 0 <= counter_id < self.capacity:
            raise IndexError(f"counter id {counter_id}: expected 0 to {self.capacity - 1}")
        return counter_id
