"""Selects the compiled kernel that advances a simulated world: a fast kernel for two hosts without
events, or a general kernel.

    TwoHosts     as few calls as possible: a million turns a second
    ManyHosts    each host sleeps and wakes independently, may be paused, and may get another driver
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

import numpy as np

from windtunnel.driver.kernels.jit import compile_for
from windtunnel.harness.simulator.world import many_hosts, turn, world_state
from windtunnel.harness.simulator.world.host import Host
from windtunnel.harness.simulator.world.many_hosts import (
    ADDRESS,
    DUE,
    IDLE,
    IS_RUNNING,
    NATIVE,
    NATIVE_DRIVER,
    WAKES,
)
from windtunnel.harness.simulator.world.saved_states import SavedState
from windtunnel.harness.simulator.world.world_state import (
    HAS_WORKED,
    NOW,
    STEP,
    STEP_END,
    TIME_OVER,
    TURN,
    Agents,
    Between,
    World,
)


class Turns(Protocol):
    """Interface for advancing a simulated world turn by turn."""

    def run(self, until_ns: int) -> int:
        """Advance the world turn by turn until a given time, or until Python code must run.

        Takes at least one turn.
        Returns TIME_OVER, or the bits FULL, AUDIT, and NEEDS_PYTHON << host.
        """


class TwoHosts:
    """Advances a simulated world with two hosts that are never paused."""

    def __init__(self, hosts: Sequence[Host], between: Between) -> None:
        left, right = hosts
        for index, host in enumerate(hosts):
            at = world_state.NATIVE + index * world_state.NATIVE_CELLS
            between.state[at : at + len(host.native)] = host.native
        saved = np.zeros((2, world_state.SAVED_WORDS), dtype=np.int64)
        self._world = World(left.agents, right.agents, between, saved)
        self._run = compile_for(turn.run, (self._world, 0))

    def run(self, until_ns: int) -> int:
        return self._run(self._world, until_ns)


class ManyHosts:
    """Advances a simulated world with any number of hosts. Drivers can be paused or replaced."""

    def __init__(self, hosts: Sequence[Host], between: Between) -> None:
        self._hosts, self._between = tuple(hosts), between
        self._agents: list[Agents | None] = [None] * len(self._hosts)
        self._kept: list[SavedState | None] = [None] * len(self._hosts)
        self._are_running = [False] * len(self._hosts)
        self._sleepers = np.zeros((len(self._hosts) + 1, DUE + 1), dtype=np.int64)
        self._sleepers[:, IDLE] = between.state[TURN]
        self._sleepers[:, WAKES] = self._sleepers[:, DUE] = between.state[NOW]
        arguments = (self._hosts[0].agents, self._between, self._sleepers, 0)
        self._run = compile_for(many_hosts.run, arguments)

    def run(self, until_ns: int) -> int:
        self._update_hosts()
        state = self._between.state
        end_ns = min(until_ns, int(state[STEP_END])) if state[HAS_WORKED] else until_ns
        if state[NOW] < end_ns <= self._sleepers[-1, DUE]:
            # Calling the kernel would cost more than the work to do.
            state[NOW] = end_ns
            while state[STEP_END] < end_ns:
                state[STEP_END] += state[STEP]
            return TIME_OVER
        return self._run(self._hosts[0].agents, self._between, self._sleepers, until_ns)

    def _update_hosts(self) -> None:
        """Update the compiled kernel's table of hosts: which drivers are running, and where in
        memory the agents of new drivers are.
        """
        for index, host in enumerate(self._hosts):
            if host.is_running != self._are_running[index]:
                self._are_running[index] = host.is_running
                self._sleepers[index, IS_RUNNING] = host.is_running
                self._sleepers[-1, DUE] = 0
            if host.agents is not self._agents[index]:
                kept = SavedState(host.agents)
                self._agents[index], self._kept[index] = host.agents, kept
                self._sleepers[index, ADDRESS] = kept.address
                self._sleepers[index, NATIVE : NATIVE_DRIVER + 1] = host.native
