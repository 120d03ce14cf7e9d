"""How the conductor asks its agents for something: a record in the queue that the agent drains.

An agent takes one command a turn, so a full queue means thousands of turns of work ahead of it:
that is counted and the conductor waits, since a lost command would leave a socket or a log behind
for ever.
"""

import numpy as np

from windtunnel.driver.base import handoff, system
from windtunnel.driver.cnc import counters
from windtunnel.driver.command.command_type import ErrorCode
from windtunnel.driver.media_driver.command_error import CommandError


class AgentProxy:
    """The conductor's end of the queue to the sender or the receiver."""

    def __init__(self, commands: np.ndarray, values: np.ndarray, fails_id: int) -> None:
        self._commands = commands
        self._values = values
        self._fails_id = fails_id
        self._record = handoff.make_record()
        self.on_full = lambda: system.sleep_ns(100_000)
        """Called while the queue is full; an invoker runs the agent here, since no thread does."""

    def ask(self, operation: int, *words: int) -> None:
        """Append a command; the meaning of the words is the operation's."""
        self._record[0] = operation
        self._record[1 : 1 + len(words)] = words
        while not handoff.put(self._commands, self._record):
            counters.increment(self._values, self._fails_id)
            self.on_full()


class SlotPool:
    """Numbers of the records that are not in use, smallest first."""

    def __init__(self, capacity: int, what: str) -> None:
        self._free = list(range(capacity - 1, -1, -1))
        self._what = what
        self._capacity = capacity

    def take(self) -> int:
        """A free number; CommandError when all are in use."""
        if not self._free:
            raise CommandError(
                f"all {self._capacity} {self._what} are in use",
                ErrorCode.RESOURCE_TEMPORARILY_UNAVAILABLE,
            )
        return self._free.pop()

    def give_back(self, slot: int) -> None:
        """The number may be used again."""
        self._free.append(slot)


def fill_record(record: np.record, **values: int) -> None:
    """Set some fields of a record and zero all others."""
    for name in record.dtype.names or ():
        record[name] = values.pop(name, 0)
    assert not values, f"no such fields: {sorted(values)}"


def append_slot(slots: np.ndarray, agent: np.record, count_field: str, slot: int) -> None:
    """Add a slot to an agent's list of those in service; the caller's thread owns the list."""
    slots[agent[count_field]] = slot
    agent[count_field] += 1


def remove_slot(slots: np.ndarray, agent: np.record, count_field: str, slot: int) -> None:
    """Take a slot out of an agent's list, keeping the order of the others."""
    count = int(agent[count_field])
    kept = [int(other) for other in slots[:count] if other != slot]
    slots[: len(kept)] = kept
    agent[count_field] = len(kept)
