"""Who takes turns in a world, and when: two sound hosts by one kernel, any others one by one.

    TwoHosts     a kernel goes from turn to turn: a million of them a second
    ManyHosts    each host sleeps and wakes by itself, and may be told to stand still

A host that has worked takes another turn at once; one without work sleeps for twice as long each
time up to a bound, as idle agents do, but wakes for what arrives.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

import numpy as np

from harness.simulator import host_turn, turn
from harness.simulator.flight import NEVER
from harness.simulator.host import Host
from harness.simulator.world_state import IDLE_MAX, NOW, TURN, TURNS, Between, World


class Turns(Protocol):
    """A way of letting a world go on."""

    def run(self, until_ns: int) -> int:
        """Take turns until a time, at least one, or until Python is needed.

        Returns TIME_OVER, or the bits FULL, AUDIT, and WANTED << host.
        """


class TwoHosts:
    """The turns of two hosts that never stand still."""

    def __init__(self, hosts: Sequence[Host], between: Between) -> None:
        left, right = hosts
        self._world = World(left.agents, right.agents, between)

    def run(self, until_ns: int) -> int:
        return turn.run(self._world, until_ns)


class ManyHosts:
    """The turns of any hosts, whose drivers may stand still or be others than before."""

    def __init__(self, hosts: Sequence[Host], between: Between) -> None:
        self._hosts, self._between = tuple(hosts), between
        self._due_ns = np.full(len(self._hosts) + 1, NEVER, dtype=np.int64)
        self._turn_ns = int(between.state[TURN])
        self._idle_max_ns = int(between.state[IDLE_MAX])
        self._idle_ns = [self._turn_ns] * len(self._hosts)
        self._wakes_ns = [int(between.state[NOW])] * len(self._hosts)

    def run(self, until_ns: int) -> int:
        state = self._between.state
        while True:
            now_ns = int(state[NOW])
            state[TURNS] += 1
            needs = 0
            for index, host in enumerate(self._hosts):
                is_wanted = host.is_working and self._wakes_ns[index] <= now_ns
                if is_wanted or self._due_ns[index] <= now_ns:
                    needs |= self._take_turn(index, host, now_ns)
            if self._due_ns[-1] <= now_ns:
                needs |= host_turn.take_middle_turn(self._between, self._due_ns)
            next_ns = max(self._next_ns(), now_ns + self._turn_ns)
            state[NOW] = min(next_ns, max(until_ns, now_ns + 1))
            if needs or state[NOW] >= until_ns:
                return needs

    def _take_turn(self, index: int, host: Host, now_ns: int) -> int:
        work_count, needs = host_turn.take_turn(
            host.agents, self._between, self._due_ns, index, host.is_working
        )
        if work_count:
            self._idle_ns[index] = self._turn_ns
        else:
            self._idle_ns[index] = min(2 * self._idle_ns[index], self._idle_max_ns)
        self._wakes_ns[index] = now_ns + self._idle_ns[index]
        return needs

    def _next_ns(self) -> int:
        """When somebody is wanted next."""
        wakes_ns = [
            each_ns
            for each_ns, host in zip(self._wakes_ns, self._hosts, strict=True)
            if host.is_working
        ]
        return min(int(self._due_ns.min()), *wakes_ns, NEVER)
