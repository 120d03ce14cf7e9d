"""Executes the runs of an exam in worker processes, which import and compile only once.

    execute(scenario, mutant, ...) --RunSpec--> a worker that is idle, or a new one
                                   <--RunResult, FOLDER/<suite>/<run>/verdict.json--

A mutant is active only in the processes that a run starts, so a worker executes the runs of many
mutants. A worker that exceeds a run's time limit, or dies, is replaced. A run without a verdict has
the outcome HARNESS, because the judge did not detect the defect. Each result includes the command
that repeats the run.
"""

from __future__ import annotations

import json
import threading
import time
from array import array
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import cast

from windtunnel.harness.artifact.run_dir import RunDir
from windtunnel.harness.artifact.suite_dir import new_suite_id
from windtunnel.harness.exam import mutated_driver, mutation_switch
from windtunnel.harness.exam.document import ExamRun
from windtunnel.harness.exam.mutant import Mutant
from windtunnel.harness.exam.mutation_source import ACTIVE
from windtunnel.harness.installation import SCENARIOS
from windtunnel.harness.orchestrate.fidelity import SIM, Fidelity
from windtunnel.harness.orchestrate.lab import LabError
from windtunnel.harness.orchestrate.run.one_run import CANCELLED, RunResult
from windtunnel.harness.orchestrate.run.payload import file_payload
from windtunnel.harness.orchestrate.subjects.subject import OURS_WITH_OURS
from windtunnel.harness.orchestrate.suite.pool import Worker
from windtunnel.harness.orchestrate.suite.runner import PAYLOAD_STORE, plan
from windtunnel.harness.orchestrate.suite.suite import RunningSuite, SuiteOptions
from windtunnel.harness.scenario.loader import load_scenario
from windtunnel.harness.scenario.yaml_document import ScenarioError

POLL_S = 0.2
WAIT_MAX_S = 10 * POLL_S
"""A longer wait for a run shows that the exam was stopped."""
RUN_LIMIT_S = 2_700.0
"""Timeout of a run in seconds. It is longer than compilation and all timeouts in a run together, so
only a harness defect can exceed it.
"""
STOP_LIMIT_S = 60.0
EXECUTIONS_FILE = "executions.bin"
HARNESS = "HARNESS"


@dataclass(frozen=True)
class WorkerRuns:
    """The workers of an exam, and what their runs have in common. Threads may share it."""

    mutants: Sequence[Mutant]
    "All mutants that the driver contains."
    environments: Mapping[str, Mapping[str, str]]
    "The environment variables of the mutated driver, by fidelity level."
    payload: Path
    _idle: dict[str, list[Worker]] = field(default_factory=lambda: defaultdict(list))

    def execute(
        self,
        scenario: str,
        mutant: str,
        fidelity: str,
        out: Path,
        stop: threading.Event,
        seed_index: int,
        limit_s: float,
    ) -> ExamRun:
        """Execute a run, with the driver without a defect if no mutant has the name. Implements
        `ExecuteRun`.
        """
        began_s = time.monotonic()
        seed = load_scenario(SCENARIOS / f"{scenario}.yaml").seeds.root + seed_index
        options = ["--fidelity", fidelity, "--payload", str(self.payload), "--out", str(out)]
        options += ["--seed", str(seed), "--seeds", "1", "--mutant", mutant]
        run = ExamRun(scenario, HARNESS, "", [], 0.0, ["windtunnel", "run", scenario, *options])
        run.seed = seed
        try:
            self._execute(run, mutant, fidelity, out, stop, limit_s)
        except (ScenarioError, LabError, OSError) as error:
            run.reason = f"no run was executed: {error}"
        run.seconds = round(time.monotonic() - began_s, 1)
        return run

    def close(self) -> None:
        """End all workers. No run may be in progress."""
        workers = [each for idle in self._idle.values() for each in idle]
        self._idle.clear()
        for each in workers:
            each.request_end()
        for each in workers:
            each.reap(STOP_LIMIT_S)

    def _execute(
        self,
        run: ExamRun,
        mutant: str,
        fidelity: str,
        out: Path,
        stop: threading.Event,
        limit_s: float,
    ) -> None:
        out.mkdir(parents=True, exist_ok=True)
        executions = out / EXECUTIONS_FILE
        executions.write_bytes(bytes(8 * mutation_switch.COUNTS))
        suite = RunningSuite(
            out / new_suite_id(datetime.now(UTC)), self._options(mutant, fidelity, out)
        )
        (planned,) = plan([SCENARIOS / f"{run.scenario}.yaml"], run.seed, 1)
        spec = suite.spec(planned)
        idle = self._idle[fidelity]
        worker = idle.pop() if idle else Worker(1, self._common(fidelity))
        worker.assign(0, spec)
        result = _result(worker, stop, limit_s)
        if result is None:
            run.reason = f"did not end within {limit_s:.0f} s: a defect can be an endless loop"
            if stop.is_set():
                run.outcome, run.reason = CANCELLED, "cancelled before its end"
            return
        if isinstance(result, RunResult):
            idle.append(worker)
            row = suite.record(spec, result)
            suite.close()
            run.outcome, run.reason = row.outcome, row.reason
            run.folder, run.checks = str(spec.folder.path), failed_checks(spec.folder)
        else:
            run.reason = result
        run.executions = executions_in(out).get(ACTIVE, 0)

    def _common(self, fidelity: str) -> Mapping[str, str]:
        """Return the environment variables of a worker. In a simulation, all processes of its runs
        have the mutated driver, so that the simulator can be forked.
        """
        return self.environments[fidelity] if fidelity == SIM else {}

    def _options(self, mutant: str, fidelity: str, out: Path) -> SuiteOptions:
        names = [each.name for each in self.mutants]
        number = names.index(mutant) + 1 if mutant in names else 0
        variables = {
            **({} if fidelity == SIM else self.environments[fidelity]),
            mutation_switch.VARIABLE: str(number),
            mutation_switch.EXECUTIONS: str((out / EXECUTIONS_FILE).absolute()),
        }
        chosen = self.mutants[number - 1] if number else None
        return SuiteOptions(
            out,
            cast("Fidelity", fidelity),
            file_payload(out / PAYLOAD_STORE, self.payload),
            tested=mutated_driver.with_mutant(OURS_WITH_OURS, chosen, variables),
        )


def _result(worker: Worker, stop: threading.Event, limit_s: float) -> RunResult | str | None:
    """Wait for the result of a worker's run. Returns a text if the worker died, or None if it was
    ended because of a stop request or the time limit.

    Time in which the exam was stopped as well, or the machine slept, does not count.
    """
    waited_s, before_s = 0.0, time.monotonic()
    while True:
        is_ready = worker.connection.poll(POLL_S)
        now_s = time.monotonic()
        waited_s += min(now_s - before_s, WAIT_MAX_S)
        before_s = now_s
        if is_ready:
            try:
                message = worker.connection.recv()
            except (EOFError, OSError):
                return f"the worker process ended with exit code {worker.reap(STOP_LIMIT_S)}"
            if isinstance(message, RunResult):
                worker.index = None
                return message
        elif stop.is_set() or waited_s > limit_s:
            # The worker first ends its run and removes its lab.
            worker.request_end()
            worker.reap(STOP_LIMIT_S)
            return None


def executions_in(out: Path) -> dict[int, int]:
    """Return the executions that the run in a folder counted: number 0 has those of what the active
    mutant changed, number n those of what mutant n changes. Numbers without any are omitted.
    """
    try:
        counts = array("q", (out / EXECUTIONS_FILE).read_bytes())
    except FileNotFoundError:
        return {}
    return {number: count for number, count in enumerate(counts) if count}


def failed_checks(folder: RunDir) -> list[str]:
    """Return the names of the failed checks in a run's verdict, without duplicates."""
    try:
        verdict = json.loads(folder.verdict.read_text(encoding="utf-8"))
        found = [each["name"] for each in verdict["checks"] if each["outcome"] == "FAIL"]
    except (OSError, ValueError, KeyError, TypeError):
        return []
    return list(dict.fromkeys(found))
