"""Allocates and frees counters. Only the driver's conductor may use this module.

A freed id is not reused for a second. Until then, a reader that is not yet aware of this still
reads the old counter.
"""

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from windtunnel.driver.base.arith import I64_MAX
from windtunnel.driver.base.atomics import (
    get_i32,
    put_i32,
    put_i32_release,
    put_i64,
    put_i64_release,
    zero,
)
from windtunnel.driver.base.clock import Clock
from windtunnel.driver.base.errors import StorageError
from windtunnel.driver.cnc import counters

FREE_TO_REUSE_TIMEOUT_MS = 1_000

_METADATA = np.dtype(
    {
        "names": ["state", "type_id", "deadline_ms", "key", "label_length", "label"],
        "formats": ["<i4", "<i4", "<i8", "<i4", "<i4", f"S{counters.LABEL_LENGTH_MAX}"],
        "offsets": [
            counters.STATE,
            counters.TYPE_ID,
            counters.FREE_FOR_REUSE_DEADLINE_MS,
            counters.KEY,
            counters.LABEL_LENGTH,
            counters.LABEL,
        ],
        "itemsize": counters.METADATA_LENGTH,
    }
)
"""A metadata record whose key is a number."""


def as_label(text: str, length_max: int = counters.LABEL_LENGTH_MAX) -> bytes:
    """Encode a label in UTF-8 and truncate it to `length_max` bytes at a character boundary."""
    return text.encode("utf-8", "replace")[:length_max].decode("utf-8", "ignore").encode()


def append_label(metadata: np.ndarray, counter_id: int, text: str) -> int:
    """Append `text` to the label of an allocated counter. Returns the number of bytes appended.

    This is the only metadata that a client changes: it appends its name to the label of its
    heartbeat counter.
    """
    at = counter_id * counters.METADATA_LENGTH
    length = int(get_i32(metadata, at + counters.LABEL_LENGTH))
    length = max(0, min(length, counters.LABEL_LENGTH_MAX))
    more = as_label(text, counters.LABEL_LENGTH_MAX - length)
    _store(metadata, at + counters.LABEL + length, more)
    put_i32_release(metadata, at + counters.LABEL_LENGTH, length + len(more))
    return len(more)


@dataclass(slots=True)
class _FreedCounter:
    """The id of a freed counter, and the time from which the id can be reused."""

    counter_id: int
    deadline_ms: int


class CountersManager:
    """Allocates and frees the counters of one `cnc.dat` file."""

    def __init__(
        self,
        metadata: np.ndarray,
        values: np.ndarray,
        clock: Clock,
        reuse_timeout_ms: int = FREE_TO_REUSE_TIMEOUT_MS,
    ) -> None:
        self.metadata = metadata
        self.values = values
        self.capacity = int(counters.capacity(metadata, values))
        self._clock = clock
        self._reuse_timeout_ms = reuse_timeout_ms
        self._freed: deque[_FreedCounter] = deque()
        self._allocated: set[int] = set()
        self._high_water_mark = -1

    def allocate(
        self,
        type_id: int,
        key: bytes,
        label: str,
        registration_id: int = 0,
        owner_id: int = 0,
        reference_id: int = 0,
        value: int = 0,
    ) -> int:
        """Allocate a counter and return its id. A key longer than 112 bytes is truncated.

        All fields, including the initial value, are stored before the state becomes ALLOCATED.
        """
        counter_id = self._next_id()
        self._allocated.add(counter_id)
        at = counter_id * counters.COUNTER_LENGTH
        put_i64(self.values, at + counters.OWNER_ID, owner_id)
        put_i64(self.values, at + counters.REFERENCE_ID, reference_id)
        put_i64_release(self.values, at + counters.VALUE, value)
        put_i64_release(self.values, at + counters.REGISTRATION_ID, registration_id)

        at = counter_id * counters.METADATA_LENGTH
        text = as_label(label)
        put_i32(self.metadata, at + counters.TYPE_ID, type_id)
        put_i64(self.metadata, at + counters.FREE_FOR_REUSE_DEADLINE_MS, I64_MAX)
        _store(self.metadata, at + counters.KEY, key[: counters.KEY_LENGTH_MAX])
        _store(self.metadata, at + counters.LABEL, text)
        put_i32_release(self.metadata, at + counters.LABEL_LENGTH, len(text))
        put_i32_release(self.metadata, at + counters.STATE, counters.ALLOCATED)
        return counter_id

    def allocate_first(self, type_id: int, labels: Sequence[str], owner_id: int) -> None:
        """Allocate the first counters, one for each label. Their ids are also their keys and
        registration ids. Must be called before the file has readers.
        """
        assert self._high_water_mark == -1, "no counter has been allocated"
        count = len(labels)
        if count > self.capacity:
            raise self._exhausted()
        encoded = [as_label(each) for each in labels]
        records = np.zeros(count, dtype=_METADATA)
        records["state"], records["type_id"] = counters.ALLOCATED, type_id
        records["deadline_ms"], records["key"] = I64_MAX, np.arange(count)
        records["label_length"], records["label"] = [len(each) for each in encoded], encoded
        self.metadata[: count * counters.METADATA_LENGTH] = records.view(np.uint8)
        words = self.values[: count * counters.COUNTER_LENGTH].view(np.int64).reshape(count, -1)
        words[:, counters.REGISTRATION_ID // 8] = np.arange(count)
        words[:, counters.OWNER_ID // 8] = owner_id
        self._allocated.update(range(count))
        self._high_water_mark = count - 1

    def require_free(self, count: int) -> None:
        """Raise StorageError unless `count` more counters can be allocated."""
        remaining = self.capacity - self._high_water_mark - 1
        if remaining < count:
            now_ms = self._clock.now_ms()
            remaining += sum(freed.deadline_ms <= now_ms for freed in self._freed)
        if remaining < count:
            raise self._exhausted()

    def _exhausted(self) -> StorageError:
        return StorageError(
            f"no free counter: all {self.capacity} are in use or were freed less than a second "
            f"ago; counters_values_buffer_length={self.values.size}"
        )

    def free(self, counter_id: int) -> None:
        """Free a counter. Its value remains readable until the id is reused."""
        # Do not trust the state in the file, because any client may have overwritten it.
        assert counter_id in self._allocated, f"counter {counter_id} is not in use"
        self._allocated.remove(counter_id)
        at = counter_id * counters.METADATA_LENGTH
        deadline_ms = self._clock.now_ms() + self._reuse_timeout_ms
        put_i32_release(self.metadata, at + counters.STATE, counters.RECLAIMED)
        zero(self.metadata, at + counters.KEY, counters.KEY_LENGTH_MAX)
        put_i64(self.metadata, at + counters.FREE_FOR_REUSE_DEADLINE_MS, deadline_ms)
        self._freed.append(_FreedCounter(counter_id, deadline_ms))

    def update_label(self, counter_id: int, text: str) -> None:
        """Replace the label of a counter. A concurrent reader may see a mixture of both labels."""
        at, label = counter_id * counters.METADATA_LENGTH, as_label(text)
        _store(self.metadata, at + counters.LABEL, label)
        put_i32_release(self.metadata, at + counters.LABEL_LENGTH, len(label))

    def append_label(self, counter_id: int, text: str) -> int:
        """Append `text` to the label of a counter. Returns the number of bytes appended."""
        return append_label(self.metadata, counter_id, text)

    def _next_id(self) -> int:
        # The oldest is the first that can be reused. A client can free thousands in a second.
        if self._freed:
            left_ms = self._freed[0].deadline_ms - self._clock.now_ms()
            # More time than it was freed for is left only if the clock has been set back.
            if left_ms <= 0 or left_ms > self._reuse_timeout_ms:
                return self._freed.popleft().counter_id
        if self._high_water_mark + 1 >= self.capacity:
            raise self._exhausted()
        self._high_water_mark += 1
        return self._high_water_mark


def _store(target: np.ndarray, at: int, content: bytes) -> None:
    target.data[at : at + len(content)] = content
