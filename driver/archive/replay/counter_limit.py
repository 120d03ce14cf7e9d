"""The limit of a bounded replay, which is the value of a counter.

When the counter is freed, its last value becomes the end of the replay. If the counter was reused
in the meantime, the new value is ignored. Source: archive-protocol 3.7.
"""

from windtunnel.driver.cnc import counters
from windtunnel.driver.cnc.counters_reader import CountersReader


class CounterLimit:
    """Reads the counter that limits a replay. Only one thread may use it."""

    def __init__(self, reader: CountersReader, counter_id: int, registration_id: int) -> None:
        """Read the initial value of a counter. The counter must be allocated."""
        self._reader = reader
        self._counter_id, self._registration_id = counter_id, registration_id
        self._last = reader.value(counter_id)
        self._is_final = False

    def position(self) -> int:
        """Return the position up to which the recording can be replayed."""
        if not self._is_final:
            value = self._reader.value(self._counter_id)
            owner = int(counters.registration_id(self._reader.values, self._counter_id))
            if owner == self._registration_id:
                self._last = value
        return self._last

    def is_final(self) -> bool:
        """Return whether the limit is final, because the counter was freed."""
        if not self._is_final and not self._reader.is_active(
            self._counter_id, self._registration_id
        ):
            self.position()
            self._is_final = True
        return self._is_final
