"""A counter of this client's own, or a static one: 64 bits in shared memory that anybody may read.

A plain write is for a counter with one writer. `get_and_add`, `compare_and_set` and `propose_max`
are atomic against any other process. A counter that is closed reads as 0 and is not written: its
place may be somebody else's by then.
"""

from __future__ import annotations

from types import TracebackType
from typing import TYPE_CHECKING

from windtunnel.driver.base.atomics import (
    add_i64,
    cas_i64,
    get_i64_acquire,
    put_i64,
    put_i64_release,
)
from windtunnel.driver.cnc import counters
from windtunnel.driver.kernels.jit import kernel

if TYPE_CHECKING:
    from windtunnel.driver.client.conductor.conductor import ClientConductor


@kernel
def propose_max_atomic(values, at, value):
    """Raise a counter that several write. Returns whether this call raised it."""
    while True:
        current = get_i64_acquire(values, at)
        if value <= current:
            return False
        # Only another writer's success makes this one try again.
        if cas_i64(values, at, current, value):
            return True


class Counter:
    """One counter; closing it gives it back unless it is static."""

    def __init__(
        self,
        conductor: ClientConductor,
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
        """Of the command that asked for it."""
        self.registration_id = registration_id
        self.counter_id = counter_id
        self.is_static = is_static
        self.is_closed = False

    @property
    def label(self) -> str:
        """As all counters' readers see it; empty once closed."""
        return "" if self.is_closed else self._conductor.counters.label(self.counter_id)

    def get(self) -> int:
        """The value; what its writer stored before is visible afterwards."""
        return 0 if self.is_closed else int(get_i64_acquire(self._values, self._at))

    def set(self, value: int) -> None:
        """Store with release."""
        if not self.is_closed:
            put_i64_release(self._values, self._at, value)

    def set_plain(self, value: int) -> None:
        """Store without order, for counters that nothing depends on."""
        if not self.is_closed:
            put_i64(self._values, self._at, value)

    def increment(self) -> int:
        """Add one, atomically. Returns the value before."""
        return self.get_and_add(1)

    def decrement(self) -> int:
        """Take one away, atomically. Returns the value before."""
        return self.get_and_add(-1)

    def get_and_add(self, delta: int) -> int:
        """Add, atomically. Returns the value before."""
        return 0 if self.is_closed else int(add_i64(self._values, self._at, delta))

    def compare_and_set(self, expected: int, desired: int) -> bool:
        """Store `desired` if the value is `expected`. Returns whether it was."""
        return not self.is_closed and bool(cas_i64(self._values, self._at, expected, desired))

    def propose_max(self, value: int) -> bool:
        """Raise it to `value` if that is more, atomically. Returns whether it rose."""
        return not self.is_closed and bool(propose_max_atomic(self._values, self._at, value))

    def close(self) -> None:
        """Give it back; a static counter stays for others."""
        if not self.is_closed:
            self._conductor.release_counter(self)

    def on_client_closed(self) -> None:
        """For the client's conductor: the counter is no longer ours."""
        self.is_closed = True

    def __enter__(self) -> Counter:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()
