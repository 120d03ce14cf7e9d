"""A simulated world: hosts, the middlebox between them, a virtual clock and a seed.

    with open_world(case, folder) as world:
        registration = world.hosts[0].client.async_add_publication(...)
        world.until(lambda: ...)                  runs turns, with Python duty cycles in between

Turns run in compiled kernels. Python is entered when a conductor requests it and every few
simulated milliseconds. The drivers' files are removed with the world.
"""

from __future__ import annotations

import random
import shutil
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from windtunnel.harness.artifact.run.simulator_turn import FILE, PARTS
from windtunnel.harness.middlebox.engine.replayed_decisions import ReplayedDecisions
from windtunnel.harness.middlebox.engine.state import DECISIONS, make_engine
from windtunnel.harness.middlebox.impairment.impairment import make_impairments
from windtunnel.harness.scenario.resolved.case import Case
from windtunnel.harness.scenario.schema.channel import parse_channel
from windtunnel.harness.simulator.audit.stream_record import Audit, make_audit
from windtunnel.harness.simulator.network import in_flight
from windtunnel.harness.simulator.network.datagram_delivery import PACKET_HEADERS
from windtunnel.harness.simulator.network.in_flight import ENVELOPE_LENGTH, NEVER
from windtunnel.harness.simulator.network.port_rewriting import make_rewritten_ports
from windtunnel.harness.simulator.network.routes import make_routes
from windtunnel.harness.simulator.real_driver.real_host import RealHost, open_machine
from windtunnel.harness.simulator.world import event_log, world_state
from windtunnel.harness.simulator.world.host import (
    NO_SETTINGS,
    RING_BYTES,
    SHELL_INTERVAL_NS,
    Host,
)
from windtunnel.harness.simulator.world.host_memory import HostMemories, HostMemory
from windtunnel.harness.simulator.world.running_part import HostParts, shared
from windtunnel.harness.simulator.world.turns import ManyHosts, Turns, TwoHosts
from windtunnel.harness.simulator.world.virtual_time import VirtualClock
from windtunnel.harness.simulator.world.world_state import (
    AUDIT,
    FULL,
    HAS_WORKED,
    NEEDS_PYTHON,
    STEP,
    STEP_END,
    Between,
)

DELAY_NS = 50_000
TURN_NS = 5_000
IDLE_MAX_NS = 200_000
DATAGRAM_LENGTH_MIN = 2_048
"""Minimum limit on a datagram's length in bytes, since SETUPs and error frames ignore the MTU."""
RING_ALIGNMENT = 8
NO_AUDIT = make_audit(0, 0, 0, np.zeros(0, dtype=np.uint8))
"""An empty audit, for worlds whose streams Python applications publish and read."""
COUNTERS_WATCHED = 256
"""Number of counters per host whose changes are recorded. Drivers allocate ids from zero."""
SYSTEM_COUNTERS = 46
"""Number of the driver's system counters. Their ids precede those of stream counters."""


class SimulatedWorld:
    """Simulated hosts and the middlebox that connects them."""

    def __init__(self, case: Case, hosts: Sequence[Host], between: Between) -> None:
        self.case = case
        self.hosts = tuple(hosts)
        self.between = between
        # Real drivers that are never paused save calls if each of them sleeps for itself.
        is_plain = bool(between.audit.streams.size) or not any(host.native[0] for host in hosts)
        is_plain = is_plain and len(self.hosts) == 2 and not case.events
        self._turns: Turns = (TwoHosts if is_plain else ManyHosts)(self.hosts, between)
        self.on_full: Callable[[], None] = self._discard_decisions
        """Called when the recorded decisions or datagrams must be drained."""

    @property
    def now_ns(self) -> int:
        """Return the simulated monotonic time."""
        return int(self.between.state[world_state.NOW])

    @property
    def digest(self) -> str:
        """Return a digest of all events so far."""
        return event_log.digest_text(self.between.events)

    @property
    def running_part(self) -> tuple[str, str] | None:
        """Return the host and the part of it whose code is running: an agent of its driver, or
        `client`. Returns None if other code is running, such as the middlebox's.
        """
        state = self.between.state
        part = PARTS[int(state[world_state.CURRENT_AGENT])]
        return (self.hosts[int(state[world_state.CURRENT_HOST])].name, part) if part else None

    def host(self, name: str) -> Host:
        """Return the simulated host with this name."""
        return next(each for each in self.hosts if each.name == name)

    def step_clock(self, name: str, step_ns: int) -> None:
        """Step a host's epoch clock forward, or back if negative. The monotonic time stays."""
        self.between.clock_steps_ns[self.hosts.index(self.host(name))] += step_ns

    def pause_drivers(self) -> None:
        """Pause the drivers of all hosts. Datagrams that are on their way still arrive."""
        for host in self.hosts:
            host.pause_driver()
        self._turns = ManyHosts(self.hosts, self.between)

    def run_step(self, until_ns: int, step_ns: int) -> None:
        """Run the world for a step of `step_ns`, and for further steps as long as no agent and no
        Python duty cycle has worked, but not beyond the given time.
        """
        state = self.between.state
        state[STEP], state[STEP_END], state[HAS_WORKED] = step_ns, self.now_ns + step_ns, 0
        while self.now_ns < min(until_ns, int(state[STEP_END])):
            self.advance(until_ns)
        state[STEP_END] = NEVER

    def advance(self, until_ns: int) -> bool:
        """Run the world until the given time, or until a duty cycle in Python has run.

        Returns whether the audit found a violation or reached its goal.
        """
        try:
            needs = self._turns.run(min(until_ns, *[each.next_ns for each in self.hosts]))
        except BaseException:
            self.between.state[world_state.CURRENT_AGENT] = world_state.NO_AGENT
            raise
        if needs & FULL:
            self.on_full()
        for index, host in enumerate(self.hosts):
            if host.turn(is_requested=bool(needs & NEEDS_PYTHON << index)):
                self.between.state[HAS_WORKED] = 1
        return bool(needs & AUDIT)

    def until(
        self,
        condition: Callable[[], Any],
        what: str,
        limit_ns: int = 20_000_000_000,
        step_ns: int = NEVER,
    ) -> Any:
        """Run the world until a condition returns a true value, and return this value.

        The condition is evaluated at least every `step_ns`. Raises TimeoutError, whose message
        names `what`, after `limit_ns` of simulated time.
        """
        end_ns = self.now_ns + limit_ns
        while not (found := condition()):
            if self.now_ns >= end_ns:
                raise TimeoutError(
                    f"{what}: did not happen within {limit_ns / 1e9:g} s of simulated time"
                )
            self.advance(min(end_ns, self.now_ns + step_ns))
        return found

    def _discard_decisions(self) -> None:
        self.between.engine.state[DECISIONS] = 0


@contextmanager
def open_world(
    case: Case,
    folder: Path,
    *,
    audit: Audit = NO_AUDIT,
    tape_length: int = 0,
    delay_ns: int = DELAY_NS,
    turn_ns: int = TURN_NS,
    idle_max_ns: int = IDLE_MAX_NS,
    shell_interval_ns: int = SHELL_INTERVAL_NS,
    counters_watched: int = COUNTERS_WATCHED,
    replayed: ReplayedDecisions | None = None,
    real: Collection[str] = (),
    settings: Mapping[str, str] = NO_SETTINGS,
    is_state_kept: bool = False,
    host_memories: HostMemories | None = None,
) -> Iterator[SimulatedWorld]:
    """Create the simulated hosts and the middlebox of a case (a scenario with all values filled
    in), with the drivers' files in `folder`.

    `folder` should be in memory. The hosts' files are removed at the end. If `replayed` is given,
    the middlebox replays recorded decisions. The hosts in `real` have the real C driver, the others
    have the environment variables in `settings`. If `is_state_kept`, a file in `folder` shows whose
    code runs, even after the process has crashed, see `SimulatorTurn`. `host_memories` are those of
    an earlier world that has ended. Raises Unsupported if it cannot be simulated here.
    """
    rng = random.Random(f"world {case.seed}")
    longest = max(DATAGRAM_LENGTH_MIN, *(each.mtu for each in case.traffic), 0)
    state = world_state.make_state(delay_ns, turn_ns, idle_max_ns, longest)
    with ExitStack() as closing:
        if is_state_kept:
            closing.callback((folder / FILE).unlink, missing_ok=True)
            state = shared(state, folder / FILE)
        steps_ns = np.zeros(len(case.hosts), dtype=np.int64)
        for each in case.hosts:
            closing.callback(shutil.rmtree, folder / each.name, ignore_errors=True)
        machine = None
        if real:
            machine = closing.enter_context(
                open_machine(
                    case, state[world_state.NOW :], steps_ns, state[world_state.CURRENT_HOST :]
                )
            )
        hosts: list[Host] = []
        for index, each in enumerate(case.hosts):
            seed, length = rng.getrandbits(63), _ring_bytes(case, each.name)
            clock = VirtualClock(state[world_state.NOW :], steps_ns[index:])
            parts = HostParts(state, index, is_real=each.name in real)
            where = (each.name, each.address, folder / each.name, clock, parts)
            host: Host
            if machine is not None and each.name in real:
                length = receive_ring_bytes(case, each.name)
                host = RealHost(*where, machine, index, length, case.timeouts)
            else:
                memory = _memory_of(each.name, length, host_memories)
                host = Host(*where, seed, shell_interval_ns, memory, case.timeouts, settings)
            hosts.append(closing.enter_context(host))
        state[world_state.COUNTERS_FROM] = SYSTEM_COUNTERS
        state[world_state.COUNTERS_END] = counters_watched
        between = _make_between(case, state, steps_ns, audit, tape_length, replayed)
        yield SimulatedWorld(case, hosts, between)


def _memory_of(host: str, ring_bytes: int, memories: HostMemories | None) -> HostMemory:
    memory = None if memories is None else memories.get(host)
    if memory is None or memory.ring_bytes != ring_bytes:
        memory = HostMemory(ring_bytes)
        if memories is not None:
            memories[host] = memory
    return memory


def _make_between(
    case: Case,
    state: Any,
    steps_ns: Any,
    audit: Audit,
    tape_length: int,
    replayed: ReplayedDecisions | None,
) -> Between:
    """Create what the hosts of a case share. `state` contains the limits of the world."""
    links, hosts, longest = len(case.directions), len(case.hosts), int(state[world_state.LONGEST])
    counters_watched = int(state[world_state.COUNTERS_END])
    engine = make_engine(
        case, datagram_length_max=longest, envelope_length_max=ENVELOPE_LENGTH, replayed=replayed
    )
    return Between(
        routes=make_routes(case),
        engine=engine,
        rewritten_ports=make_rewritten_ports(links),
        impairments=make_impairments(case, PACKET_HEADERS + longest),
        wires=in_flight.make_wires(links, in_flight.wire_bytes(engine)),
        audit=audit,
        events=event_log.make_event_log(tape_length, counters_watched, hosts),
        scratch=np.zeros(ENVELOPE_LENGTH + longest, dtype=np.uint8),
        packet=np.zeros(ENVELOPE_LENGTH + longest, dtype=np.uint8),
        state=state,
        clock_steps_ns=steps_ns,
        lost=np.zeros((hosts, 3), dtype=np.int64),
        ports=np.zeros((hosts, 4), dtype=np.int64),
    )


def _ring_bytes(case: Case, host: str) -> int:
    """Return the capacity of a host's simulated sockets in bytes: the smallest send buffer that its
    publications specify, or that of its receive buffers.

    All of a host's mailboxes are alike, so its receive buffers have the same capacity.
    """
    channels = [
        parse_channel(dict(each.channels).get(host, each.channel))
        for each in case.traffic
        if host in each.publishers
    ]
    found = [each.send_buffer_bytes for each in channels if each.send_buffer_bytes is not None]
    return min(found, default=receive_ring_bytes(case, host)) & -RING_ALIGNMENT


def receive_ring_bytes(case: Case, host: str) -> int:
    """Return the capacity of a host's simulated sockets that its subscriptions need: twice the
    largest receive buffer that they specify, as Linux doubles it, or a default.
    """
    channels = (
        parse_channel(dict(each.receives).get(host, each.receive))
        for each in case.traffic
        if host in each.subscribers
    )
    return max([RING_BYTES, *(2 * each.receive_buffer_bytes for each in channels)])
