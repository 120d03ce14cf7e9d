"""A run on virtual time: one process stands for hosts, middlebox, captures and samplers.

    prepare -> lab -> simulate -> stop -> collect         the lab is a directory in memory

The process leaves the same files as a lab of real hosts and says in simulation.json how each of
the processes that it stands for ended. Refuses to know how it does so.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

from windtunnel.harness.artifact.documents import DocumentError
from windtunnel.harness.artifact.run.simulation import Simulation
from windtunnel.harness.installation import ROOT
from windtunnel.harness.orchestrate.lab import MID, LabError
from windtunnel.harness.orchestrate.labs.namespaces import environment
from windtunnel.harness.orchestrate.processes import process, watch
from windtunnel.harness.orchestrate.processes.process import CleanupWatchdog, LocalProcess
from windtunnel.harness.orchestrate.processes.watch import RunFailed, Watched
from windtunnel.harness.orchestrate.run.phases import READY_TIMEOUT_S, Run
from windtunnel.harness.orchestrate.run.run_processes import STOP_TIMEOUT_S
from windtunnel.harness.orchestrate.run.traffic import Overran, Unsupported
from windtunnel.harness.orchestrate.subjects.subject import (
    OURS,
    UNSUPPORTED_EXIT_CODE,
    Pair,
    simulator_command,
)
from windtunnel.harness.orchestrate.teardown import clean, cleanup_watchdog
from windtunnel.harness.orchestrate.teardown.state import LabState
from windtunnel.harness.topology.model import Topology

NAME = "sim"
ROLE = "simulator"
TRAFFIC = "traffic"
SUBJECT_FAILED = 1
PROGRESS = "simulated "
POLL_S = 0.05
SLOWNESS_MAX = 10
"""How much longer than its budget a run may really take; one that does hangs."""


class SimulatedLab:
    """A directory in memory that goes when the run does; see `Lab` for what its methods promise."""

    name = NAME

    def __init__(self, topology: Topology, labs: Path) -> None:
        self.topology = topology
        self._labs = labs
        self.state = LabState(token=topology.token, run_id=topology.run_id, kind=self.name)
        self._processes: list[LocalProcess] = []
        self._keeper: CleanupWatchdog | None = None

    def up(self) -> None:
        try:
            record = self.state.write(self._labs)
            self._keeper = CleanupWatchdog(
                [sys.executable, "-m", cleanup_watchdog.__name__, str(record)],
                env=environment(),
                cwd=ROOT,
            )
        except BaseException:
            self.down()
            raise

    def address(self, host: str) -> str:
        return str(self.topology.host(host).address)

    def interface(self, host: str) -> str:
        raise LabError(f"host {host} is simulated and has no interface")

    def mid_interfaces(self) -> tuple[str, ...]:
        raise LabError("the middlebox is simulated and has no interfaces")

    def python(self, place: str) -> str:
        return sys.executable

    def shared_memory(self, host: str) -> str:
        return str(self.state.memory_directory())

    def spawn(
        self,
        place: str,
        argv: Sequence[str],
        *,
        env: Mapping[str, str] | None = None,
        log: Path,
    ) -> LocalProcess:
        started = LocalProcess(
            f"{place}/{log.stem}",
            process.dying_with_us(argv),
            env={**environment(), **(env or {})},
            cwd=ROOT,
            log=log,
        )
        self._processes.append(started)
        return started

    def path(self, path: Path) -> str:
        return str(path.resolve())

    def read(self, place: str, path: str) -> bytes:
        raise LabError(f"{place} is simulated and has no {path}")

    def down(self) -> None:
        for running in self._processes:
            running.kill()
        self._processes.clear()
        clean.remove(self.state, self._labs)
        if self._keeper is not None:
            self._keeper.release(cleanup_watchdog.DONE)
            self._keeper = None


def planted_variables(tested: Pair) -> dict[str, str]:
    """What a process needs so that the defect planted in either subject is in its driver.

    Hosts share the process, so both have it; it matters on the side whose work it spoils.
    """
    return {
        name: value
        for each in tested
        if each.mutant
        for name, value in each.environment.items()
        if OURS.environment.get(name) != value
    }


class SimulatedRun(Run):
    """A run whose traffic is one process's affair."""

    def forward(self) -> None:
        for host in self._hosts:
            tested = self.order.subject(host).name
            if tested != OURS.name:
                raise Unsupported(f"sim steps our own driver; host {host} is to have {tested}")
        self._phase("prepare", self._prepare)
        self._phase("lab", self.lab.up)
        self._phase(TRAFFIC, self._simulate)

    def _simulate(self) -> None:
        folder = self.order.folder
        argv = simulator_command(
            self.lab.python(MID),
            case=self.lab.path(folder.case),
            out=self.lab.path(folder.path),
            memory=self.lab.shared_memory(MID),
            sabotage=self.order.sabotage,
        )
        running = self.crew.spawn(
            ROLE, MID, argv, folder.simulator_log, planted_variables(self.order.tested)
        )
        self._follow(running)
        self._conclude(running.process.poll(), running.process.tail(1), running.died())

    def _conclude(self, code: int | None, words: str, died: str) -> None:
        """Raise what an exit code stands for, unless the streams went to their end."""
        if code == UNSUPPORTED_EXIT_CODE:
            raise Unsupported(words or "the simulator says that it cannot")
        if code not in (0, SUBJECT_FAILED):
            raise RunFailed(died, ours=True)
        told = self._told()
        if told is not None and told.overran:
            raise Overran(told.overran)
        if code:
            raise RunFailed(died, ours=False)

    def _follow(self, running: Watched) -> None:
        """Pass its progress on until it ends; the budget is its own affair, in simulated time."""
        limit_s = READY_TIMEOUT_S + SLOWNESS_MAX * self.order.scenario.budget.wall_ns / 1e9
        deadline_s = time.monotonic() + limit_s
        while running.process.poll() is None:
            for line in running.new_lines():
                if line.startswith(PROGRESS):
                    self._tell_progress(line)
            if time.monotonic() > deadline_s:
                text = f"the simulator is still at work after {limit_s:g} s of real time"
                raise RunFailed(text, ours=True)
            time.sleep(POLL_S)

    def _tell_progress(self, line: str) -> None:
        words = line.split()
        if len(words) != 4 or not all(word.isdigit() for word in words[1:]):
            return
        published, delivered, total = (int(word) for word in words[1:])
        self._tell(
            kind="progress",
            phase="traffic",
            fraction=min(1.0, delivered / total) if total else None,
            published_bytes=published,
            delivered_bytes=delivered,
            total_bytes=total,
        )

    def _stop(self, hurry: bool) -> None:
        self.manifest.errors += watch.end(self.crew.of(ROLE), STOP_TIMEOUT_S)

    def _collect(self) -> None:
        super()._collect()
        told = self._told()
        if told is not None:
            self.manifest.processes += told.exits
            self.manifest.host_facts["events"] = told.digest
            self._move_phases(told)

    def _move_phases(self, told: Simulation) -> None:
        """Put the phases on the clock of the run's stamps, on which all but the traffic is over."""
        started_ns, ended_ns = told.traffic_started_ns, told.traffic_ended_ns
        after = False
        for phase in self.manifest.phases:
            at_ns = ended_ns if after else started_ns
            phase.started_ns = phase.ended_ns = at_ns
            if phase.name == TRAFFIC:
                phase.ended_ns = ended_ns
                after = True

    def _told(self) -> Simulation | None:
        """What the simulator says of the run, or None where it did not come to that."""
        try:
            return Simulation.read(self.order.folder.simulation)
        except DocumentError as error:
            raise LabError(str(error)) from error
