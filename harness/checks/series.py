"""The counters of a driver over time, for own checks."""

from collections.abc import Iterator
from dataclasses import dataclass, field

from windtunnel.harness.artifact.host.counter_sample import CounterFacts
from windtunnel.harness.verdict.core.evidence_contents import HostCounters


@dataclass(frozen=True)
class Counter:
    """A counter of a driver, with its values while the run was in progress."""

    id: int
    type_id: int
    label: str
    key: bytes
    registration_id: int
    final_value: int
    "The last value that was sampled."
    _counters: HostCounters = field(repr=False, compare=False)
    _facts: CounterFacts = field(repr=False, compare=False)

    def samples(self) -> Iterator[tuple[int, int]]:
        """Yield the time in nanoseconds and the value of each sample. Values that are equal to the
        one before are left out.
        """
        found = self._counters.samples_of(self._facts)
        yield from zip(found["time_ns"].tolist(), found["value"].tolist(), strict=True)


def counters_of(counters: HostCounters) -> tuple[Counter, ...]:
    """Return all counters of a host's driver."""
    return tuple(
        Counter(
            id=each.counter_id,
            type_id=each.type_id,
            label=each.label,
            key=bytes.fromhex(each.key_hex),
            registration_id=each.registration_id,
            final_value=each.final_value,
            _counters=counters,
            _facts=each,
        )
        for each in counters.counters
    )
