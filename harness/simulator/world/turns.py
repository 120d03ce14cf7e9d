"""Who takes turns in a world, and when: a kernel for two sound hosts, another for any others.

    TwoHosts     as few calls as can be: a million turns a second
    ManyHosts    each host sleeps and wakes by itself, may stand still, and may get another driver

Refuses to know what is done in a turn.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

import numpy as np

from windtunnel.harness.simulator.world import many_hosts, turn
from windtunnel.harness.simulator.world.host import Host
from windtunnel.harness.simulator.world.many_hosts import ADDRESS, DUE, IDLE, IS_WORKING, WAKES
from windtunnel.harness.simulator.world.saved_states import KeptState
from windtunnel.harness.simulator.world.world_state import (
    NOW,
    TIME_OVER,
    TURN,
    Agents,
    Between,
    World,
)


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
        self._agents: list[Agents | None] = [None] * len(self._hosts)
        self._kept: list[KeptState | None] = [None] * len(self._hosts)
        self._are_working = [False] * len(self._hosts)
        self._sleepers = np.zeros((len(self._hosts) + 1, DUE + 1), dtype=np.int64)
        self._sleepers[:, IDLE] = between.state[TURN]
        self._sleepers[:, WAKES] = self._sleepers[:, DUE] = between.state[NOW]

    def run(self, until_ns: int) -> int:
        self._look_at_hosts()
        state = self._between.state
        if state[NOW] < until_ns <= self._sleepers[-1, DUE]:
            # A call costs more than all that would be done.
            state[NOW] = until_ns
            return TIME_OVER
        return many_hosts.run(self._hosts[0].agents, self._between, self._sleepers, until_ns)

    def _look_at_hosts(self) -> None:
        """See who stands still, who goes on, and who is another than before."""
        for index, host in enumerate(self._hosts):
            if host.is_working != self._are_working[index]:
                self._are_working[index] = host.is_working
                self._sleepers[index, IS_WORKING] = host.is_working
                self._sleepers[-1, DUE] = 0
            if host.agents is not self._agents[index]:
                kept = KeptState(host.agents)
                self._agents[index], self._kept[index] = host.agents, kept
                self._sleepers[index, ADDRESS] = kept.address
