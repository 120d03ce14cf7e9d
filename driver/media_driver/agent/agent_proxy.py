"""Passes commands from the conductor to the sender or the receiver through a queue.

If the queue is full, the failure is counted and the conductor waits, because a lost command would
leak a socket or a log buffer. An agent executes one command per duty cycle, so a full queue means
that the agent is thousands of duty cycles behind.
"""

from functools import cache
from operator import length_hint

import numpy as np

from windtunnel.driver.base import handoff, system
from windtunnel.driver.cnc import counters
from windtunnel.driver.command.command_type import ErrorCode
from windtunnel.driver.media_driver.command_error import CommandError


class AgentProxy:
    """Queues the conductor's commands for the sender or the receiver."""

    def __init__(self, commands: np.ndarray, values: np.ndarray, fails_id: int) -> None:
        self._commands = commands
        self._values = values
        self._fails_id = fails_id
        self._record = handoff.make_record()
        self.on_full = lambda: system.sleep_ns(100_000)
        """Function that is called while the queue is full. It runs the agent in an INVOKER
        driver."""

    def offer(self, operation: int, *words: int) -> None:
        """Queue a command that consists of an operation code and its arguments `words`. Waits while
        the queue is full.
        """
        self._record[0] = operation
        self._record[1 : 1 + len(words)] = words
        while not handoff.put(self._commands, self._record):
            counters.increment(self._values, self._fails_id)
            self.on_full()


class FreeIndexes:
    """The indexes of unused records, of which the one that was released last is taken first."""

    def __init__(self, capacity: int) -> None:
        self._released: list[int] = []
        self._never_taken = iter(range(capacity))

    def __len__(self) -> int:
        return len(self._released) + length_hint(self._never_taken)

    def take(self) -> int:
        """Take an index. There must be one."""
        return self._released.pop() if self._released else next(self._never_taken)

    def release(self, index: int) -> None:
        self._released.append(index)


class SlotPool:
    """Allocates slots, which are the indexes of records in an array."""

    def __init__(self, capacity: int, record_kind: str) -> None:
        self._free = FreeIndexes(capacity)
        self._record_kind = record_kind
        self._capacity = capacity

    def acquire(self) -> int:
        """Allocate a slot. Raises CommandError if all slots are in use."""
        if not self._free:
            raise CommandError(
                f"all {self._capacity} {self._record_kind} are in use",
                ErrorCode.RESOURCE_TEMPORARILY_UNAVAILABLE,
            )
        return self._free.take()

    @property
    def capacity(self) -> int:
        """The number of slots, free or not."""
        return self._capacity

    @property
    def free_count(self) -> int:
        """The number of free slots."""
        return len(self._free)

    def release(self, slot: int) -> None:
        """Return a slot to the pool of free slots."""
        self._free.release(slot)


def fill_record(record: np.record, **values: int) -> None:
    """Set the given fields of a record and zero all others."""
    record.setfield(_zeroed(record.dtype), record.dtype)
    for name, value in values.items():
        record[name] = value


@cache
def _zeroed(dtype: np.dtype) -> np.record:
    """Return a record with these fields, all zero."""
    zeroed: np.record = np.zeros(1, dtype)[0]
    return zeroed


def append_slot(slots: np.ndarray, agent: np.record, count_field: str, slot: int) -> None:
    """Append a slot (the index of a record) to a list of active slots. The calling thread must own
    the list.
    """
    slots[agent[count_field]] = slot
    agent[count_field] += 1


def remove_slot(slots: np.ndarray, agent: np.record, count_field: str, slot: int) -> None:
    """Remove a slot (the index of a record) from a list of active slots, keeping the order of the
    other slots.
    """
    count = int(agent[count_field])
    kept = [int(other) for other in slots[:count] if other != slot]
    slots[: len(kept)] = kept
    agent[count_field] = len(kept)
