"""Reference implementation of the counter sampler: an observer of each change.

It receives each event as it happens, and so need not infer events from bytes.
"""

from dataclasses import dataclass, field


@dataclass
class CounterLifetime:
    """One counter from its allocation until the reuse of its id."""

    counter_id: int
    type_id: int
    registration_id: int = 0
    value: int = 0
    seen: list[int] = field(default_factory=list)
    """Every value that a pass must report, in order."""


class Observer:
    """Tracks all counters, and records changed values in each pass."""

    def __init__(self) -> None:
        self.lifetimes: list[CounterLifetime] = []
        self._now: dict[int, CounterLifetime] = {}

    def on_allocated(self, counter_id: int, type_id: int) -> None:
        lifetime = CounterLifetime(counter_id, type_id)
        self._now[counter_id] = lifetime
        self.lifetimes.append(lifetime)

    def on_registered(self, counter_id: int, registration_id: int) -> None:
        self._now[counter_id].registration_id = registration_id

    def on_value(self, counter_id: int, value: int) -> None:
        self._now[counter_id].value = value

    def look(self) -> None:
        for lifetime in self._now.values():
            if not lifetime.seen or lifetime.seen[-1] != lifetime.value:
                lifetime.seen.append(lifetime.value)
