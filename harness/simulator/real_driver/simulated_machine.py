"""A simulated machine: clocks, randomness, sockets and polls of the real drivers in a world."""

from __future__ import annotations

import os
import struct
from collections.abc import Iterator
from contextlib import contextmanager
from random import Random

import numpy as np
from numpy.typing import NDArray

from windtunnel.harness.simulator.real_driver import fast_calls
from windtunnel.harness.simulator.real_driver.fast_calls_table import CALLS, CALLS_MAX
from windtunnel.harness.simulator.real_driver.memory_sockets import MemorySockets
from windtunnel.harness.simulator.world.single_interface import OneInterface
from windtunnel.harness.simulator.world.virtual_time import EPOCH_NS

_EPOLL_DELETE, _EPOLL_IN = 2, 1


class SimulatedMachine:
    """Executes the system calls of the real drivers in one simulated world."""

    def __init__(
        self,
        time_ns: NDArray[np.int64],
        steps_ns: NDArray[np.int64],
        current: NDArray[np.int64],
        addresses: tuple[str, ...],
        seeds: tuple[int, ...],
    ) -> None:
        """Create a simulated machine that executes the system calls of the real drivers.

        `time_ns` begins with the monotonic time, `steps_ns` has the sum of all steps of each host's
        epoch clock, `current` begins with the index of the host whose driver is running, and
        `seeds` has a seed for each host.
        """
        self._time_ns, self._steps_ns, self._current = time_ns, steps_ns, current
        self.sockets = MemorySockets(addresses)
        self._resolvers = [OneInterface(each) for each in addresses]
        self._random = [Random(each) for each in seeds]
        self._polled: dict[int, dict[int, bytes]] = {}
        self._next_poll = (1 << 30) + 1
        self._checked_ns = -1

    @contextmanager
    def running(self, host: int) -> Iterator[None]:
        """Select the host whose driver makes the system calls, until the context ends."""
        before = self._host()
        self._current[0] = host
        try:
            yield
        finally:
            self._current[0] = before

    def _host(self) -> int:
        return int(self._current[0])

    def now_ns(self) -> int:
        """Return the monotonic time."""
        return int(self._time_ns[0])

    def epoch_ns(self) -> int:
        """Return the epoch time of the host whose driver is running."""
        return EPOCH_NS + self.now_ns() + int(self._steps_ns[self._host()])

    def count_call(self) -> None:
        """Count a system call. Aborts the process if virtual time does not advance within CALLS_MAX
        calls.

        A driver that waits for the clock within a duty cycle would wait forever, and C code cannot
        be left in another way.
        """
        table = fast_calls.table
        table[CALLS] += 1
        if table[CALLS] < CALLS_MAX:
            return
        now_ns = self.now_ns()
        if now_ns == self._checked_ns:
            print(
                f"the real driver on host {self._host()} does not return: expected virtual "
                f"time to move within {CALLS_MAX} system calls, but it stays at {now_ns} ns",
                flush=True,
            )
            os.abort()
        table[CALLS], self._checked_ns = 0, now_ns

    @property
    def random(self) -> Random:
        """Return the random number generator of the host whose driver is running."""
        return self._random[self._host()]

    @property
    def resolver(self) -> OneInterface:
        return self._resolvers[self._host()]

    def open(self, family: int) -> int:
        return self.sockets.open(self._host(), family)

    def close(self, descriptor: int) -> bool:
        """Close a simulated descriptor. Returns False if the descriptor is not a simulated one."""
        if self._polled.pop(descriptor, None) is not None:
            return True
        if not self.sockets.has(descriptor):
            return False
        for each in self._polled.values():
            each.pop(descriptor, None)
        self.sockets.close(descriptor)
        return True

    def make_poll(self) -> int:
        self._next_poll += 1
        self._polled[self._next_poll] = {}
        return self._next_poll

    def change_poll(self, poll: int, operation: int, descriptor: int, event: bytes) -> int:
        if operation == _EPOLL_DELETE:
            self._polled[poll].pop(descriptor, None)
        else:
            self._polled[poll][descriptor] = event[4:]
        return 0

    def readable(self, poll: int, limit: int) -> list[bytes]:
        """Return an epoll event for each polled socket that has a datagram to read."""
        found = [
            data for each, data in self._polled[poll].items() if self.sockets.is_readable(each)
        ]
        return [struct.pack("<I", _EPOLL_IN) + data for data in found[:limit]]


calls: list[SimulatedMachine] = []
"""The running world's machine, if any, is the last item."""
