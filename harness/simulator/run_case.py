"""Runs a case (a resolved scenario) in virtual time, and writes the same run folder as the other
fidelity levels.

    open the world -> subscribers -> publishers -> all complete -> settle -> files
                                              `-- events: pause, kill, restart

The applications are stepped every 100 simulated microseconds, like real ones that sleep in between.
Steps in which nothing can happen are left out: those before which neither the world nor an
application has done anything, and for which none has waited.
Raises Unsupported, before the run starts, for anything that the simulator cannot simulate.
"""

from __future__ import annotations

import os
import time
import traceback
from collections.abc import Callable, Collection
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from types import FrameType

import numpy as np

from windtunnel.harness.artifact.middlebox.decision import read_replayable
from windtunnel.harness.artifact.run.simulation import STUCK, SUBJECT_FAILED
from windtunnel.harness.artifact.run_dir import RunDir
from windtunnel.harness.middlebox.engine.replayed_decisions import compile_decisions
from windtunnel.harness.middlebox.relay.report import DecisionLog
from windtunnel.harness.scenario.resolved.case import Case
from windtunnel.harness.simulator.applications.application_set import ApplicationSet
from windtunnel.harness.simulator.blame import in_one_line, is_drivers
from windtunnel.harness.simulator.datagram_limit import TooManyDatagrams, require_few_datagrams
from windtunnel.harness.simulator.network import in_flight
from windtunnel.harness.simulator.output.accounts import (
    require_room,
    write_accounts,
    write_failed_start,
    write_simulation,
)
from windtunnel.harness.simulator.output.capture import Captures
from windtunnel.harness.simulator.sabotage import DRIVER_SABOTAGES, Sabotage
from windtunnel.harness.simulator.stuck_program import stuck_program
from windtunnel.harness.simulator.support import Unsupported, require_supported
from windtunnel.harness.simulator.turn_watch import TurnWatch
from windtunnel.harness.simulator.world.host_events import HostEvents
from windtunnel.harness.simulator.world.link_events import LinkEvents
from windtunnel.harness.simulator.world.virtual_time import EPOCH_NS, NS_PER_MS
from windtunnel.harness.simulator.world.world import SimulatedWorld, open_world

__all__ = ["CaseRun", "Unsupported"]

TAPE_BYTES = 16 << 20
STEP_NS = 100_000
"""Simulated time between steps of the applications."""
SETTLE_NS = 200 * NS_PER_MS
DRAIN_NS = 12_000 * NS_PER_MS
"""Maximum wait for the last frames to arrive, longer than a scenario can hold a frame."""
PROGRESS_S = 0.2
DRIVER_SETTINGS = (
    "WINDTUNNEL_NAK_ALL_GAPS",
    "WINDTUNNEL_GAP_FILL_DATAGRAMS",
    "WINDTUNNEL_GAP_FILL_DELAY",
    "WINDTUNNEL_RETRANSMIT_RANGES",
    "WINDTUNNEL_PUBLICATION_LINGER_MAX",
)
"""Environment variables that also apply to simulated drivers: the modes of loss recovery. Other
settings concern threads, files and sockets, or would change what a seed reproduces."""


class CaseRun:
    """The simulation of one run of a case (a resolved scenario)."""

    def __init__(
        self,
        case: Case,
        folder: RunDir,
        memory: Path,
        sabotage: str,
        real: Collection[str] = (),
    ) -> None:
        """Prepare a run. The hosts in `real` have the real C driver.

        Raises Unsupported if the simulator cannot simulate the case.
        """
        require_supported(case)
        if real and sabotage in DRIVER_SABOTAGES:
            raise Unsupported(f"sim can apply the sabotage {sabotage} only to the driver `ours`")
        self._real = frozenset(real)
        self._case, self._folder, self._memory = case, folder, memory
        self._sabotage = Sabotage(sabotage)
        self._overran = ""
        self._driver_error = ""
        self._traffic_ns = [0, 0]
        self._printed_s = 0.0

    def run(self) -> int:
        """Run the case and write its files.

        Returns 0, or 1 if the driver or an application failed.
        """
        case, folder = self._case, self._folder
        replayed = (
            compile_decisions(case, read_replayable(folder.replayed)) if case.replays else None
        )
        opening = open_world(
            case,
            self._memory,
            tape_length=TAPE_BYTES,
            replayed=replayed,
            real=self._real,
            settings={each: os.environ[each] for each in DRIVER_SETTINGS if each in os.environ},
            is_state_kept=True,
        )
        # The samplers see what the drivers do when the world is closed.
        with ExitStack() as closing, ExitStack() as opened:
            try:
                world = opened.enter_context(opening)
            except Exception as error:
                if isinstance(error, Unsupported) or not is_drivers(error):
                    raise
                print(traceback.format_exc(), flush=True)
                write_failed_start(case, folder, f"raised {in_one_line(error)}")
                return SUBJECT_FAILED
            return self._run_in(world, closing)

    def _run_in(self, world: SimulatedWorld, closing: ExitStack) -> int:
        case, folder = self._case, self._folder
        engine = world.between.engine
        captures = Captures(folder, [each.name for each in case.hosts], world.between.events)
        decisions = DecisionLog(folder.decisions, EPOCH_NS)
        programs = ApplicationSet(world, folder, lambda: EPOCH_NS + world.now_ns, self._sabotage)
        closing.callback(programs.close_samplers)

        def empty() -> None:
            captures.drain()
            decisions.drain(engine)

        world.on_full = empty
        end = partial(self._end_stuck, world, programs, captures)
        try:
            with TurnWatch(lambda: world.now_ns, end):
                self._run_phases(world, programs)
        except TooManyDatagrams as error:
            self._driver_error = str(error)
        except Exception as error:
            if isinstance(error, Unsupported) or not is_drivers(error):
                raise
            self._driver_error = f"raised {in_one_line(error)}"
            print(traceback.format_exc(), flush=True)
        finally:
            captures.close()
            decisions.drain(engine)
            decisions.close()
            self._write(world, programs)
        return int(bool(self._driver_error) or any(programs.errors))

    def _end_stuck(
        self,
        world: SimulatedWorld,
        programs: ApplicationSet,
        captures: Captures,
        cpu_s: float,
        frame: FrameType | None,
    ) -> None:
        """End the process, because code in it runs forever. If it is code under test, write
        the evidence so far, without the files of the applications.
        """
        code = STUCK
        try:
            program, text = stuck_program(world, programs, frame, cpu_s)
            print(text, flush=True)
            if program is not None:
                program.error = text
                captures.close()
                write_accounts(world, self._folder)
                began_ns = self._traffic_ns[0]
                write_simulation(
                    world,
                    self._folder,
                    traffic_ns=(began_ns, EPOCH_NS + world.now_ns if began_ns else 0),
                    exits=programs.exits(""),
                )
                code = SUBJECT_FAILED
        finally:
            os._exit(code)

    def _run_phases(self, world: SimulatedWorld, programs: ApplicationSet) -> None:
        case, impairments = self._case, world.between.impairments
        links = LinkEvents(case, impairments, lambda: EPOCH_NS + world.now_ns)
        self._events = events = HostEvents(
            case.events, programs, lambda: EPOCH_NS + world.now_ns, links, world.step_clock
        )
        programs.add_subscribers()
        try:
            self._until(world, programs, lambda: programs.have_subscribed)
            print("ready", flush=True)
            programs.add_publishers(np.fromfile(self._case.payload.path, dtype=np.uint8))
            self._traffic_ns = [EPOCH_NS + world.now_ns] * 2
            self._until(world, programs, lambda: _is_over(programs, events))
            self._traffic_ns[1] = EPOCH_NS + world.now_ns
            events.close(self._folder.host_events)
            self._settle(world, programs)
        finally:
            events.close(self._folder.host_events)
            links.write(self._folder)
            programs.close_applications()

    def _until(
        self, world: SimulatedWorld, programs: ApplicationSet, condition: Callable[[], bool]
    ) -> None:
        end_ns = world.now_ns + self._case.wall_ns
        while not condition():
            if world.now_ns >= end_ns:
                self._overran = (
                    f"the budget of {self._case.wall_ns / 1e9:g} s of simulated time ran out; "
                    f"still running: {', '.join(programs.unfinished)}; "
                    f"published {programs.count_bytes('publisher')} and delivered "
                    f"{programs.count_bytes('subscriber')} of {self._total_bytes} bytes"
                )
                return
            self._step(world, programs, end_ns)

    def _step(self, world: SimulatedWorld, programs: ApplicationSet, end_ns: int) -> None:
        """Run a step of each application, then the world until the next step that may differ, or
        until a given time.
        """
        next_ns = min(programs.step(), self._events.next_ns) - EPOCH_NS
        self._sabotage.step(world, programs.subscribers)
        self._print_progress(programs)
        steps = max(1, -((world.now_ns - min(next_ns, end_ns)) // STEP_NS))
        world.run_step(world.now_ns + steps * STEP_NS, STEP_NS)
        require_few_datagrams(world)

    def _settle(self, world: SimulatedWorld, programs: ApplicationSet) -> None:
        """Run the world until the last frames have arrived, including frames that the middlebox
        holds. After the run's budget, and where drivers do not become quiet, these are the last
        ones because the drivers are paused.
        """
        if not self._overran:
            self._drain(world, programs, SETTLE_NS)
        if self._overran or _is_in_flight(world):
            world.pause_drivers()
            self._drain(world, programs, 0)

    def _drain(self, world: SimulatedWorld, programs: ApplicationSet, least_ns: int) -> None:
        end_ns, latest_ns = world.now_ns + least_ns, world.now_ns + DRAIN_NS
        while world.now_ns < end_ns or (_is_in_flight(world) and world.now_ns < latest_ns):
            self._step(world, programs, end_ns if world.now_ns < end_ns else latest_ns)

    @property
    def _total_bytes(self) -> int:
        return sum(each.total_bytes * len(each.subscribers) for each in self._case.traffic)

    def _print_progress(self, programs: ApplicationSet) -> None:
        now_s = time.monotonic()
        if now_s - self._printed_s >= PROGRESS_S:
            self._printed_s = now_s
            sent, read = (programs.count_bytes(role) for role in ("publisher", "subscriber"))
            print(f"simulated {sent} {read} {self._total_bytes}", flush=True)

    def _write(self, world: SimulatedWorld, programs: ApplicationSet) -> None:
        """Write the middlebox ledger, the socket statistics and the simulation summary."""
        write_accounts(world, self._folder)
        write_simulation(
            world,
            self._folder,
            traffic_ns=self._traffic_ns,
            overran=self._overran,
            exits=programs.exits(self._driver_error),
        )
        print(f"events {world.digest}", flush=True)
        require_room(world)
        if not self._overran and not self._driver_error:
            self._sabotage.require_done()


def _is_over(programs: ApplicationSet, events: HostEvents) -> bool:
    """Handle the host events that are due. Returns whether the run has ended: all applications and
    events are complete, or a program has failed.
    """
    if events.has_more:
        events.look(programs.count_bytes("publisher"), programs.count_bytes("subscriber"))
    if programs.have_failed:
        return True
    return not events.is_open and all(each.is_done for each in programs.running)


def _is_in_flight(world: SimulatedWorld) -> bool:
    """Return whether any datagram is still in flight or held by the middlebox."""
    between = world.between
    return bool(
        between.engine.held.counts[0]
        or between.impairments.held.counts[0]
        or not in_flight.is_empty(between.wires)
    )
