"""A whole run of a case on virtual time, leaving the run folder that every fidelity leaves.

    open the world -> subscribers -> publishers -> all at the end -> settle -> files
                                              `-- events: who is paused, killed, restarted

The applications step every 100 simulated microseconds, as real ones that sleep in between. What the
simulator cannot stand in for is Unsupported, before anything begins.
"""

from __future__ import annotations

import time
import traceback
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path

import numpy as np

from windtunnel.harness.artifact.middlebox.decision import read_repeatable
from windtunnel.harness.artifact.run_dir import RunDir
from windtunnel.harness.middlebox.engine.replayed_decisions import compile_fates
from windtunnel.harness.middlebox.relay.report import DecisionLog
from windtunnel.harness.scenario.resolved.case import Case
from windtunnel.harness.simulator.applications.application_set import Cast
from windtunnel.harness.simulator.blame import in_one_line, is_drivers
from windtunnel.harness.simulator.network import in_flight
from windtunnel.harness.simulator.output.accounts import (
    require_room,
    write_accounts,
    write_simulation,
)
from windtunnel.harness.simulator.output.capture import Captures
from windtunnel.harness.simulator.sabotage import Sabotage
from windtunnel.harness.simulator.support import Unsupported, require_supported
from windtunnel.harness.simulator.world.host_events import HostEvents
from windtunnel.harness.simulator.world.virtual_time import EPOCH_NS, NS_PER_MS
from windtunnel.harness.simulator.world.world import SimulatedWorld, open_world

__all__ = ["Rehearsal", "Unsupported"]

TAPE_BYTES = 16 << 20
STEP_NS = 100_000
"""Between two steps of the applications."""
SETTLE_NS = 200 * NS_PER_MS
DRAIN_NS = 12_000 * NS_PER_MS
"""Longest time for the last frames to land: above the longest hold that a scenario can order."""
TELL_S = 0.2


class Rehearsal:
    """One run under way."""

    def __init__(self, case: Case, folder: RunDir, memory: Path, sabotage: str) -> None:
        require_supported(case)
        self._case, self._folder, self._memory = case, folder, memory
        self._sabotage = Sabotage(sabotage)
        self._overran = ""
        self._driver_error = ""
        self._traffic_ns = [0, 0]
        self._told_s = 0.0

    def run(self) -> int:
        """Make the run and leave its files. Returns 0, or 1 if the subject failed."""
        case, folder = self._case, self._folder
        fates = compile_fates(case, read_repeatable(folder.replayed)) if case.replays else None
        with (
            ExitStack() as closing,
            open_world(case, self._memory, tape_length=TAPE_BYTES, fates=fates) as world,
        ):
            engine = world.between.engine
            captures = Captures(folder, [each.name for each in case.hosts], world.between.events)
            decisions = DecisionLog(folder.decisions)
            cast = Cast(world, folder, lambda: EPOCH_NS + world.now_ns, self._sabotage)
            closing.callback(cast.close_samplers)

            def empty() -> None:
                captures.drain()
                decisions.drain(engine)

            world.on_full = empty
            try:
                self._walk(world, cast)
            except Exception as error:
                if isinstance(error, Unsupported) or not is_drivers(error):
                    raise
                self._driver_error = f"raised {in_one_line(error)}"
                print(traceback.format_exc(), flush=True)
            finally:
                captures.close()
                decisions.drain(engine)
                decisions.close()
                self._write(world, cast)
        return int(bool(self._driver_error) or any(each.error for each in cast.applications))

    def _walk(self, world: SimulatedWorld, cast: Cast) -> None:
        events = HostEvents(self._case.events, cast, lambda: EPOCH_NS + world.now_ns)
        cast.add_subscribers()
        try:
            self._until(world, cast, lambda: cast.have_subscribed)
            print("ready", flush=True)
            cast.add_publishers(np.fromfile(self._case.payload.path, dtype=np.uint8))
            self._traffic_ns = [EPOCH_NS + world.now_ns] * 2
            self._until(world, cast, lambda: _is_over(cast, events))
            self._traffic_ns[1] = EPOCH_NS + world.now_ns
            events.close(self._folder.host_events)
            self._settle(world, cast)
        finally:
            events.close(self._folder.host_events)
            cast.close_applications()

    def _until(self, world: SimulatedWorld, cast: Cast, condition: Callable[[], bool]) -> None:
        end_ns = world.now_ns + self._case.wall_ns
        while not condition():
            if world.now_ns >= end_ns:
                self._overran = (
                    f"the budget of {self._case.wall_ns / 1e9:g} s of simulated time is over; "
                    f"published {cast.count_bytes('publisher')} and delivered "
                    f"{cast.count_bytes('subscriber')} of {self._total_bytes} bytes"
                )
                return
            self._step(world, cast)

    def _step(self, world: SimulatedWorld, cast: Cast) -> None:
        cast.step()
        self._sabotage.step(world, cast.subscribers)
        self._tell(cast)
        world.run_until(world.now_ns + STEP_NS)

    def _settle(self, world: SimulatedWorld, cast: Cast) -> None:
        """Let the last frames land, however long the middlebox keeps them."""
        end_ns, latest_ns = world.now_ns + SETTLE_NS, world.now_ns + DRAIN_NS
        while world.now_ns < end_ns or (_waits(world) and world.now_ns < latest_ns):
            self._step(world, cast)

    @property
    def _total_bytes(self) -> int:
        return sum(each.total_bytes * len(each.subscribers) for each in self._case.traffic)

    def _tell(self, cast: Cast) -> None:
        now_s = time.monotonic()
        if now_s - self._told_s >= TELL_S:
            self._told_s = now_s
            sent, read = (cast.count_bytes(role) for role in ("publisher", "subscriber"))
            print(f"simulated {sent} {read} {self._total_bytes}", flush=True)

    def _write(self, world: SimulatedWorld, cast: Cast) -> None:
        """Leave the accounts of middlebox and sockets, and what the world says of itself."""
        write_accounts(world, self._folder)
        write_simulation(
            world,
            self._folder,
            traffic_ns=self._traffic_ns,
            overran=self._overran,
            exits=cast.exits(self._driver_error),
        )
        print(f"events {world.digest}", flush=True)
        require_room(world)
        if not self._overran and not self._driver_error:
            self._sabotage.require_done()


def _is_over(cast: Cast, events: HostEvents) -> bool:
    """Whether all have come to their end, or somebody cannot; events that are due come first."""
    events.look(cast.count_bytes("publisher"), cast.count_bytes("subscriber"))
    living = cast.living
    if any(each.error for each in living):
        return True
    return not events.is_under_way and all(each.is_done for each in living)


def _waits(world: SimulatedWorld) -> bool:
    """Whether any datagram is still on its way."""
    between = world.between
    return bool(
        between.engine.waiting.counts[0]
        or between.weather.waiting.counts[0]
        or not in_flight.is_empty(between.wires)
    )
