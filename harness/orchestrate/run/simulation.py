"""A run in virtual time: one process simulates the hosts, middlebox, captures and samplers.

    prepare -> lab -> simulate -> stop -> collect         the lab is a directory in memory

The process writes the same files as a lab with real hosts. It also writes simulation.json, with the
exit code of each simulated process.
"""

from __future__ import annotations

import time
from pathlib import Path

from windtunnel.harness.artifact.documents import DocumentError
from windtunnel.harness.artifact.run.manifest import ProcessExit
from windtunnel.harness.artifact.run.simulation import SUBJECT_FAILED, Simulation
from windtunnel.harness.orchestrate.lab import MID, Lab, LabError, Unsupported
from windtunnel.harness.orchestrate.processes import watch
from windtunnel.harness.orchestrate.processes.watch import RunFailed, WatchedProcess
from windtunnel.harness.orchestrate.run.phases import READY_TIMEOUT_S, Emit, Run
from windtunnel.harness.orchestrate.run.run_processes import STOP_TIMEOUT_S
from windtunnel.harness.orchestrate.run.run_spec import RunSpec
from windtunnel.harness.orchestrate.run.simulator_crash import crashed_driver, forget_turn
from windtunnel.harness.orchestrate.run.traffic import Overran
from windtunnel.harness.orchestrate.subjects.subject import (
    OURS,
    UNSUPPORTED_EXIT_CODE,
    Pair,
    simulator_command,
)

REAL = "pyaeron"
"""Name of the real C driver, which the simulator supports next to ours."""
ROLE = "simulator"
TRAFFIC = "traffic"
READY, PROGRESS = "ready", "simulated "
POLL_S = 0.05
SLOWNESS_MAX = 10
"""Limit on a run's real time, as a multiple of its budget. A longer run is considered hung."""


def mutant_variables(tested: Pair) -> dict[str, str]:
    """Return the environment variables that activate a mutant (a driver with a planted defect) in
    the simulator.

    All hosts share the process, so the mutant is active on all of them. It takes effect on the side
    whose code it changes.
    """
    return {
        name: value
        for each in tested
        if each.mutant
        for name, value in each.environment.items()
        if OURS.environment.get(name) != value
    }


class SimulatedRun(Run):
    """A run whose traffic is simulated by one process."""

    def __init__(self, spec: RunSpec, lab: Lab, emit: Emit) -> None:
        super().__init__(spec, lab, emit)
        self._crashed: list[ProcessExit] = []

    def execute(self) -> None:
        for host in self._hosts:
            tested = self.spec.subject(host).name
            if tested not in (OURS.name, REAL):
                raise Unsupported(
                    "sim supports only the drivers `ours` and `pyaeron`, but host "
                    f"{host} has {tested}"
                )
        self._phase("prepare", self._prepare)
        self._phase("lab", self._up)
        forget_turn(self._memory)
        self._phase(TRAFFIC, self._simulate)

    def _up(self) -> None:
        self.lab.up()

    @property
    def real_hosts(self) -> list[str]:
        """Return the names of the hosts whose driver is the real C driver."""
        return [each for each in self._hosts if self.spec.subject(each).name == REAL]

    @property
    def _memory(self) -> Path:
        return Path(self.lab.shared_memory(MID))

    def _simulate(self) -> None:
        folder = self.spec.folder
        argv = simulator_command(
            self.lab.python(MID),
            case=self.lab.path(folder.case),
            out=self.lab.path(folder.path),
            memory=self.lab.shared_memory(MID),
            sabotage=self.spec.sabotage,
            real=self.real_hosts,
        )
        running = self.processes.spawn(
            ROLE, MID, argv, folder.simulator_log, mutant_variables(self.spec.tested)
        )
        self._follow(running)
        self._conclude(running.process.poll(), running.process.tail(1), running.describe_exit())

    def _conclude(self, code: int | None, last_line: str, exit_text: str) -> None:
        """Raise the exception that describes a failed simulation. Returns normally if all streams
        are complete.
        """
        if code is not None and code < 0:
            self._raise_crash(code, last_line, exit_text)
        if code == UNSUPPORTED_EXIT_CODE:
            raise Unsupported(last_line or "the simulator does not support this scenario")
        if code not in (0, SUBJECT_FAILED):
            raise RunFailed(exit_text, harness_fault=True)
        simulation = self._read_simulation()
        if simulation is not None and simulation.overran:
            raise Overran(simulation.overran)
        if code:
            raise RunFailed(exit_text, harness_fault=False)

    def _raise_crash(self, code: int, last_line: str, exit_text: str) -> None:
        """Raise RunFailed if the simulator crashed: because of a driver, if it was in its turn."""
        assert self._case is not None
        driver, text = crashed_driver(
            code,
            self._memory,
            [each.name for each in self._case.hosts],
            self.spec.folder.simulator_log.name,
            "" if last_line.startswith((PROGRESS, READY)) else last_line,
        )
        if driver is not None:
            self._crashed.append(driver)
            raise RunFailed(f"{text}; the seed is {self.spec.seed}", harness_fault=False)
        if text:
            raise RunFailed(f"{exit_text}; {text}", harness_fault=True)

    def _follow(self, running: WatchedProcess) -> None:
        """Report progress until the simulator ends. The simulator itself enforces the time budget,
        in virtual time, and limits the CPU time at one virtual time.
        """
        limit_s = READY_TIMEOUT_S + SLOWNESS_MAX * self.spec.scenario.budget.wall_ns / 1e9
        deadline_s = time.monotonic() + limit_s
        while running.process.poll() is None:
            for line in running.new_lines():
                if line.startswith(PROGRESS):
                    self._emit_progress(line)
            if time.monotonic() > deadline_s:
                text = f"the simulator is still running after {limit_s:g} s of real time"
                raise RunFailed(text, harness_fault=True)
            time.sleep(POLL_S)

    def _emit_progress(self, line: str) -> None:
        fields = line.split()
        if len(fields) != 4 or not all(field.isdigit() for field in fields[1:]):
            return
        published, delivered, total = (int(field) for field in fields[1:])
        self._emit(
            kind="progress",
            phase="traffic",
            fraction=min(1.0, delivered / total) if total else None,
            published_bytes=published,
            delivered_bytes=delivered,
            total_bytes=total,
        )

    def _stop(self, is_fast: bool) -> None:
        self.manifest.errors += watch.end(self.processes.of(ROLE), STOP_TIMEOUT_S)

    def _collect(self) -> None:
        super()._collect()
        self.manifest.processes += self._crashed
        simulation = self._read_simulation()
        if simulation is not None:
            self.manifest.processes += simulation.exits
            self.manifest.host_facts["events"] = simulation.digest
            self._move_phases(simulation)

    def _move_phases(self, simulation: Simulation) -> None:
        """Convert the phases' times to the virtual clock, which advances only during traffic."""
        started_ns, ended_ns = simulation.traffic_started_ns, simulation.traffic_ended_ns
        after = False
        for phase in self.manifest.phases:
            at_ns = ended_ns if after else started_ns
            phase.started_ns = phase.ended_ns = at_ns
            if phase.name == TRAFFIC:
                phase.ended_ns = ended_ns
                after = True

    def _read_simulation(self) -> Simulation | None:
        """Return the contents of the run's simulation.json, or None if it was not written."""
        try:
            return Simulation.read(self.spec.folder.simulation)
        except DocumentError as error:
            raise LabError(str(error)) from error
