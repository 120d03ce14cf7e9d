"""Counter values as they change: one pass over a driver's counters, what differs is a sample.

    id     0        1        2        3                      state     ALLOCATED, RECLAIMED
    pass   [value]  [value]  [value]  [value] -> differs? -> COUNTER_SAMPLE

A counter is one life of an id: allocated, perhaps freed, and over when the id is given to another.
A freed counter keeps its value until then, so the last value of a stream that closes between two
passes is not missed. A registration id is set after the state says ALLOCATED; an id seen in between
gets its name late and remains the same counter.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from windtunnel.harness.artifact.host.counter_sample import COUNTER_SAMPLE, CounterFacts
from windtunnel.harness.dissect.driver_files.cnc_file import ALLOCATED, RECLAIMED, UNUSED, CncFile


class Sampler:
    """Remembers what each counter was at the last pass; refuses to know when to make the next."""

    def __init__(self, cnc: CncFile) -> None:
        self._cnc = cnc
        self._state = cnc.metadata["state"]
        self._value = cnc.values["value"]
        self._registration = cnc.values["registration_id"]
        capacity = len(self._value)
        self._count = 0
        self._known = np.zeros(capacity, dtype=np.bool_)
        self._freed = np.zeros(capacity, dtype=np.bool_)
        self._last_value = np.zeros(capacity, dtype=np.int64)
        self._last_registration = np.zeros(capacity, dtype=np.int64)
        self._type_id = np.zeros(capacity, dtype=np.int32)
        self._lives: list[CounterFacts] = []
        self._life_of: dict[int, int] = {}

    def sample(self, now_ns: int) -> NDArray[Any]:
        """Read all counters once, in the order of their ids, and return what has changed."""
        count = self._grow()
        value = self._value[:count].copy()
        registration = self._registration[:count].copy()
        state = self._state[:count].copy()
        known, freed = self._known[:count], self._freed[:count]
        moved = registration != self._last_registration[:count]
        fresh = (state == ALLOCATED) & (moved | freed | ~known)
        known &= ~moved | fresh
        freed |= state == RECLAIMED
        for counter_id in np.flatnonzero(fresh):
            self._meet(int(counter_id))
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
        """Return how many ids have ever been taken; they are taken without gaps."""
        while self._count < len(self._state) and self._state[self._count] != UNUSED:
            self._count += 1
        return self._count

    def _meet(self, counter_id: int) -> None:
        """Take down who has an id now: someone new, or one whom we met before it was registered."""
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
        """Write the last value that was seen under an id into the facts of its present life."""
        life = self._life_of.get(counter_id)
        if life is not None:
            final_value = int(self._last_value[counter_id])
            self._lives[life] = replace(self._lives[life], final_value=final_value)

    def counters(self) -> list[CounterFacts]:
        """Return what each counter was, with its last value, in the order in which they came."""
        for counter_id, life in self._life_of.items():
            now = self._cnc.counter(counter_id)
            if now is not None and now.registration_id == self._lives[life].registration_id:
                self._lives[life] = now  # a label may have grown
            self._end_life(counter_id)
        return list(self._lives)
