"""Counters as a person or a tool wants them: values with text, read while writers go on."""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from windtunnel.driver.base.atomics import get_i32_acquire
from windtunnel.driver.cnc import counters


@dataclass(frozen=True, slots=True)
class Counter:
    """One living counter as it was at the moment of reading."""

    counter_id: int
    type_id: int
    value: int
    registration_id: int
    owner_id: int
    reference_id: int
    key: bytes
    """All 112 bytes; where the key of this type ends is its own affair."""
    label: str


class CountersReader:
    """Reads the two counters sections of a mapped file; needs no write access."""

    def __init__(self, metadata: np.ndarray, values: np.ndarray) -> None:
        self.metadata = metadata
        self.values = values
        self.capacity = int(counters.capacity(metadata, values))

    def __iter__(self) -> Iterator[Counter]:
        """Living counters by ascending id; the first unused record ends the list."""
        for counter_id in range(self.capacity):
            state = counters.state(self.metadata, counter_id)
            if state == counters.UNUSED:
                return
            counter = self.read(counter_id) if state == counters.ALLOCATED else None
            if counter is not None:
                yield counter

    def read(self, counter_id: int) -> Counter | None:
        """The counter of that id; None where none lives or it changed hands meanwhile."""
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
        """The present value; the id must be in range."""
        return int(counters.get_acquire(self.values, self._in_range(counter_id)))

    def key(self, counter_id: int) -> bytes:
        """The whole key area of a record."""
        at = self._in_range(counter_id) * counters.METADATA_LENGTH + counters.KEY
        return self.metadata[at : at + counters.KEY_LENGTH_MAX].tobytes()

    def label(self, counter_id: int) -> str:
        """The label; a damaged length is cut to what a record can hold."""
        at = self._in_range(counter_id) * counters.METADATA_LENGTH
        length = int(get_i32_acquire(self.metadata, at + counters.LABEL_LENGTH))
        length = max(0, min(length, counters.LABEL_LENGTH_MAX))
        start = at + counters.LABEL
        return self.metadata[start : start + length].tobytes().decode("utf-8", "replace")

    def find(self, type_id: int, registration_id: int) -> int | None:
        """The id of the first living counter of that type and registration."""
        found = int(counters.find(self.metadata, self.values, type_id, registration_id))
        return None if found == counters.NULL_COUNTER_ID else found

    def is_active(self, counter_id: int, registration_id: int) -> bool:
        """Whether that id still names a living counter of that registration."""
        return bool(counters.is_active(self.metadata, self.values, counter_id, registration_id))

    def _in_range(self, counter_id: int) -> int:
        if not 0 <= counter_id < self.capacity:
            raise IndexError(f"counter id {counter_id} is not in 0..{self.capacity - 1}")
        return counter_id
