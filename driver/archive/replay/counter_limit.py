"""How far a bounded replay may go: what a counter says, as long as there is that counter.

When it is freed its last value is the end; one that was given to somebody else meanwhile is not
believed, and what it said before is. Source: archive-protocol 3.7.
"""

from windtunnel.driver.cnc import counters
from windtunnel.driver.cnc.counters_reader import CountersReader


class CounterLimit:
    """Reads one counter; of one thread."""

    def __init__(self, reader: CountersReader, counter_id: int, registration_id: int) -> None:
        """The counter lives."""
        self._reader = reader
        self._counter_id, self._registration_id = counter_id, registration_id
        self._last = reader.value(counter_id)
        self._is_final = False

    def position(self) -> int:
        """Up to where may be replayed."""
        if not self._is_final:
            value = self._reader.value(self._counter_id)
            owner = int(counters.registration_id(self._reader.values, self._counter_id))
            if owner == self._registration_id:
                self._last = value
        return self._last

    def is_final(self) -> bool:
        """Whether it will never say anything else."""
        if not self._is_final and not self._reader.is_active(
            self._counter_id, self._registration_id
        ):
            self.position()
            self._is_final = True
        return self._is_final
