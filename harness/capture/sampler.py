"""Samples a driver's counters: each pass returns the values that have changed.

    id     0        1        2        3                      state     ALLOCATED, RECLAIMED
    pass   [value]  [value]  [value]  [value] -> differs? -> COUNTER_SAMPLE

A counter is one allocation of an id: it is allocated, may be freed, and ends when the id is
allocated again. A freed counter keeps its value until then, so the last value of a stream that
closes between passes is not missed. The driver sets the registration id after the state
ALLOCATED; an id sampled in between gets its registration id later and remains the same counter.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from windtunnel.harness.artifact.host.counter_sample import COUNTER_SAMPLE, CounterFacts
from windtunnel.harness.dissect.driver_files.cnc_file import ALLOCATED, RECLAIMED, UNUSED, CncFile

COUNTERS_MAX = 1 << 17
"""Maximum number of counters that are sampled, 16 times as many as a driver has by default."""
NO_SAMPLES: NDArray[Any] = np.zeros(0, dtype=COUNTER_SAMPLE)


class Sampler:
    """Samples the counters of one driver. It remembers the last value of each counter, to return
    only changed counters.
    """

    def __init__(self, cnc: CncFile) -> None:
        self._cnc = cnc
        self._state = cnc.metadata["state"][:COUNTERS_MAX]
        self._value = cnc.values["value"][:COUNTERS_MAX]
        self._registration = cnc.values["registration_id"][:COUNTERS_MAX]
        capacity = len(self._value)
        self._count = 0
        self._seen: tuple[bytes, ...] = ()
        """Values, registration ids and states of all counters at the last sample."""
        self._known = np.zeros(capacity, dtype=np.bool_)
        self._freed = np.zeros(capacity, dtype=np.bool_)
        self._last_value = np.zeros(capacity, dtype=np.int64)
        self._last_registration = np.zeros(capacity, dtype=np.int64)
        self._type_id = np.zeros(capacity, dtype=np.int32)
        self._lives: list[CounterFacts] = []
        self._life_of: dict[int, int] = {}

    def sample(self, now_ns: int) -> NDArray[Any]:
        """Read all counters once, in the order of their ids, and return the changed counters."""
        count = self._grow()
        seen = tuple(
            each[:count].tobytes() for each in (self._value, self._registration, self._state)
        )
        if seen == self._seen:
            return NO_SAMPLES
        self._seen = seen
        value, registration = (np.frombuffer(each, dtype=np.int64) for each in seen[:2])
        state = np.frombuffer(seen[2], dtype=np.int32)
        known, freed = self._known[:count], self._freed[:count]
        moved = registration != self._last_registration[:count]
        fresh = (state == ALLOCATED) & (moved | freed | ~known)
        known &= ~moved | fresh
        freed |= state == RECLAIMED
        for counter_id in np.flatnonzero(fresh):
            self._record_allocation(int(counter_id))
        changed = np.flatnonzero(known & (fresh | (value != self._last_value[:count])))
        self._last_value[changed] = value[changed]
        samples = np.zeros(len(changed), dtype=COUNTER_SAMPLE)
        samples["time_ns"] = now_ns
        samples["counter_id"] = changed
        samples["type_id"] = self._type_id[changed]
        samples["registration_id"] = self._last_registration[changed]
        samples["value"] = value[changed]
        return samples

    def _grow(self) -> int:
        """Update and return the number of counter ids that the driver has ever allocated. The ids
        are contiguous from 0.
        """
        while self._count < len(self._state) and self._state[self._count] != UNUSED:
            self._count += 1
        return self._count

    def _record_allocation(self, counter_id: int) -> None:
        """Record the counter that a counter id is now allocated to. If this counter was already
        sampled before it had a registration id, update its description.
        """
        facts = self._cnc.counter(counter_id)
        if facts is None:
            self._known[counter_id] = False
            return
        unnamed = self._last_registration[counter_id] == 0 and not self._freed[counter_id]
        if counter_id in self._life_of and unnamed and self._known[counter_id]:
            self._lives[self._life_of[counter_id]] = facts
        else:
            self._end_life(counter_id)
            self._life_of[counter_id] = len(self._lives)
            self._lives.append(facts)
        self._known[counter_id] = True
        self._freed[counter_id] = False
        self._last_registration[counter_id] = facts.registration_id
        self._type_id[counter_id] = facts.type_id

    def _end_life(self, counter_id: int) -> None:
        """Record an id's last sampled value as the final value of its counter."""
        life = self._life_of.get(counter_id)
        if life is not None:
            final_value = int(self._last_value[counter_id])
            self._lives[life] = replace(self._lives[life], final_value=final_value)

    def counters(self) -> list[CounterFacts]:
        """Return all counters with their final values, in the order of allocation."""
        for counter_id, life in self._life_of.items():
            now = self._cnc.counter(counter_id)
            if now is not None and now.registration_id == self._lives[life].registration_id:
                self._lives[life] = now  # the label may have been extended
            self._end_life(counter_id)
        return list(self._lives)
