"""Counters that a client allocates: 64-bit values in shared memory.

Any process may read a counter. A plain write is for a counter with one writer. `get_and_add`,
`compare_and_set` and `propose_max` are atomic among all processes. A closed counter reads as 0 and
ignores writes, because the driver may have reused its slot.
"""

from __future__ import annotations

from typing import Protocol

from windtunnel.driver.base.atomics import (
    add_i64,
    cas_i64,
    get_i64_acquire,
    put_i64,
    put_i64_release,
)
from windtunnel.driver.client.conductor_protocol import Conductor
from windtunnel.driver.cnc import counters
from windtunnel.driver.kernels.jit import kernel


@kernel
def propose_max_atomic(values, at, value):
    """Atomically raise the counter to `value` if it is lower. Returns whether it was raised."""
    while True:
        current = get_i64_acquire(values, at)
        if value <= current:
            return False
        # The CAS fails only if another writer has changed the value, so some writer makes progress.
        if cas_i64(values, at, current, value):
            return True


class CounterConductor(Conductor, Protocol):
    """The client conductor's interface for counters."""

    def release_counter(self, counter: Counter) -> None:
        """Close the counter and remove it from the driver unless it is static."""


class Counter:
    """A counter of a client. Closing the object frees the counter unless it is static."""

    def __init__(
        self,
        conductor: CounterConductor,
        *,
        correlation_id: int,
        registration_id: int,
        counter_id: int,
        is_static: bool,
    ) -> None:
        self._conductor = conductor
        self._values = conductor.counter_values
        self._at = counter_id * counters.COUNTER_LENGTH
        self.correlation_id = correlation_id
        """The correlation id of the command that added the counter."""
        self.registration_id = registration_id
        self.counter_id = counter_id
        self.is_static = is_static
        self.is_closed = False

    @property
    def label(self) -> str:
        """The counter's label, or an empty string if the counter is closed."""
        return "" if self.is_closed else self._conductor.counters.label(self.counter_id)

    def get(self) -> int:
        """Return the value with acquire semantics. Earlier stores by the writer are visible."""
        return 0 if self.is_closed else int(get_i64_acquire(self._values, self._at))

    def set(self, value: int) -> None:
        """Store the value with release semantics."""
        if not self.is_closed:
            put_i64_release(self._values, self._at, value)

    def set_plain(self, value: int) -> None:
        """Store the value without memory ordering."""
        if not self.is_closed:
            put_i64(self._values, self._at, value)

    def increment(self) -> int:
        """Atomically add one to the value. Returns the previous value."""
        return self.get_and_add(1)

    def decrement(self) -> int:
        """Atomically subtract one from the value. Returns the previous value."""
        return self.get_and_add(-1)

    def get_and_add(self, delta: int) -> int:
        """Atomically add `delta` to the value. Returns the previous value."""
        return 0 if self.is_closed else int(add_i64(self._values, self._at, delta))

    def compare_and_set(self, expected: int, desired: int) -> bool:
        """Atomically store `desired` if the value is `expected`. Returns whether `desired` was
        stored.
        """
        return not self.is_closed and bool(cas_i64(self._values, self._at, expected, desired))

    def propose_max(self, value: int) -> bool:
        """Atomically raise the counter to `value` if it is lower. Returns whether it was raised."""
        return not self.is_closed and bool(propose_max_atomic(self._values, self._at, value))

    def close(self) -> None:
        """Close the counter and free it. A static counter stays allocated."""
        if not self.is_closed:
            self._conductor.release_counter(self)

    def on_client_closed(self) -> None:
        """Mark the counter as closed. Called by the client's conductor."""
        self.is_closed = True

    def __enter__(self) -> Counter:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
