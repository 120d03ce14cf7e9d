"""The limit of a bounded replay: the value of a counter.

When the counter is freed, its last value is the end of the replay. If the counter was reused in the
meantime, the new value is ignored. Source: archive-protocol 3.7.
"""

from windtunnel.driver.cnc import counters
from windtunnel.driver.cnc.counters_reader import CountersReader


class CounterLimit:
    """Reads one counter; for one thread."""

    def __init__(self, reader: CountersReader, counter_id: int, registration_id: int) -> None:
        """The counter must be allocated."""
        self._reader = reader
        self._counter_id, self._registration_id = counter_id, registration_id
        self._last = reader.value(counter_id)
        self._is_final = False

    def position(self) -> int:
        """Return the position up to which may be replayed."""
        if not self._is_final:
            value = self._reader.value(self._counter_id)
            owner = int(counters.registration_id(self._reader.values, self._counter_id))
            if owner == self._registration_id:
                self._last = value
        return self._last

    def is_final(self) -> bool:
        """Return whether the limit cannot change any more."""
        if not self._is_final and not self._reader.is_active(
            self._counter_id, self._registration_id
        ):
            self.position()
            self._is_final = True
        return self._is_final
