"""A world put together: two hosts, the middlebox of a case between them, one clock, one seed.

    with open_world(case) as world:
        registration = world.hosts[0].client.async_add_publication(...)
        world.until(lambda: ...)                  turns, and what needs Python in between

Every turn is a kernel's; Python is entered when a conductor asks for it and every few simulated
milliseconds. The drivers' files go with the world.
"""

from __future__ import annotations

import random
import shutil
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from harness.middlebox.fates import Fates
from harness.middlebox.state import DECISIONS, make_engine
from harness.scenario.case import Case
from harness.scenario.channel import parse_channel
from harness.simulator import event_log, flight, turn
from harness.simulator.flight import ENVELOPE_LENGTH
from harness.simulator.host import RING_BYTES, SHELL_INTERVAL_NS, Host
from harness.simulator.stream_audit import Audit, make_audit
from harness.simulator.turn import AUDIT, FULL, LEFT, RIGHT, World
from harness.simulator.virtual_time import VirtualClock

DELAY_NS = 50_000
TURN_NS = 5_000
IDLE_MAX_NS = 200_000
WIRE_BYTES = 4 << 20
"""All that one direction of the wire can hold: far more than the windows of a case's streams."""
DATAGRAM_LENGTH_MAX = 65_504
RING_ALIGNMENT = 8
NO_AUDIT = make_audit(0, 0, 0, np.zeros(0, dtype=np.uint8))
"""For worlds whose streams are published and read by applications in Python."""
COUNTERS_WATCHED = 256
"""Counters whose changes are events; drivers take ids from zero."""
SYSTEM_COUNTERS = 46
"""The driver's own, which the cells of its streams follow."""


class SimulatedWorld:
    """Two hosts and what joins them."""

    def __init__(self, case: Case, hosts: Sequence[Host], kernel_world: World) -> None:
        self.case = case
        self.hosts = tuple(hosts)
        self.kernel = kernel_world
        self.on_full: Callable[[], None] = self._forget_decisions
        """Called when decisions or tape must be emptied."""

    @property
    def now_ns(self) -> int:
        """Monotonic time."""
        return int(self.kernel.state[turn.NOW])

    @property
    def digest(self) -> str:
        """All that has happened so far, as one number."""
        return event_log.digest_text(self.kernel.events)

    def host(self, name: str) -> Host:
        """The host of that name."""
        return next(each for each in self.hosts if each.name == name)

    def run_until(self, until_ns: int) -> None:
        """Let the world go on up to a time."""
        while self.now_ns < until_ns:
            self.go_on(until_ns)

    def go_on(self, until_ns: int) -> bool:
        """Let the world go on up to a time, or until Python has had something to do.

        Returns whether the audit has something to say.
        """
        left, right = self.hosts
        needs = turn.run(self.kernel, min(until_ns, left.next_ns, right.next_ns))
        if needs & FULL:
            self.on_full()
        left.turn(is_wanted=bool(needs & LEFT))
        right.turn(is_wanted=bool(needs & RIGHT))
        return bool(needs & AUDIT)

    def until(self, condition: Callable[[], Any], what: str, limit_ns: int = 20_000_000_000) -> Any:
        """Go on until something is so. Raises TimeoutError naming what was waited for."""
        end_ns = self.now_ns + limit_ns
        while not (found := condition()):
            if self.now_ns >= end_ns:
                raise TimeoutError(f"{what}: not within {limit_ns / 1e9:g} s of simulated time")
            self.go_on(end_ns)
        return found

    def _forget_decisions(self) -> None:
        self.kernel.engine.state[DECISIONS] = 0


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
    fates: Fates | None = None,
) -> Iterator[SimulatedWorld]:
    """Make the two hosts of a case and what joins them; the drivers' files lie in `folder`.

    `folder` should be in memory; all that is put there is gone at the end. With `fates` the
    middlebox repeats what they say.
    """
    chance = random.Random(f"world {case.seed}")
    state = turn.make_state(delay_ns, turn_ns, idle_max_ns)
    clock = VirtualClock(state, turn.NOW)
    with ExitStack() as closing:
        for each in case.hosts:
            closing.callback(shutil.rmtree, folder / each.name, ignore_errors=True)
        left, right = (
            closing.enter_context(
                Host(
                    each.name,
                    each.address,
                    folder / each.name,
                    clock,
                    chance.getrandbits(63),
                    shell_interval_ns,
                    _ring_bytes(case, each.name),
                )
            )
            for each in case.hosts
        )
        longest = max((each.mtu for each in case.traffic), default=1_408)
        state[turn.COUNTERS_FROM], state[turn.COUNTERS_END] = SYSTEM_COUNTERS, counters_watched
        kernel_world = World(
            left=left.agents,
            right=right.agents,
            engine=make_engine(
                case,
                datagram_length_max=max(longest, 2_048),
                envelope_length_max=ENVELOPE_LENGTH,
                fates=fates,
            ),
            there=flight.make_flight(WIRE_BYTES),
            back=flight.make_flight(WIRE_BYTES),
            audit=audit,
            events=event_log.make_event_log(tape_length, counters_watched),
            scratch=np.zeros(ENVELOPE_LENGTH + DATAGRAM_LENGTH_MAX, dtype=np.uint8),
            state=state,
            lost=np.zeros((2, 3), dtype=np.int64),
        )
        yield SimulatedWorld(case, (left, right), kernel_world)


def _ring_bytes(case: Case, host: str) -> int:
    """What a socket of a host holds: the least buffer that a channel asks for to send from there.

    All mailboxes of a host are alike, so what it receives has no more room.
    """
    asked = [parse_channel(each.channel) for each in case.traffic if each.from_host == host]
    found = [each.send_buffer_bytes for each in asked if each.send_buffer_bytes is not None]
    return min(found, default=RING_BYTES) & -RING_ALIGNMENT
