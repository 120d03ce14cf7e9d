"""Executes one run of an exam as a child process.

    windtunnel run SCENARIO --fidelity F --payload P --seed S --out FOLDER --mutant NAME
        |
      FOLDER/<suite>/suite.json, .../<run>/verdict.json --> ExamRun

A run without a verdict has the outcome HARNESS, because the judge did not detect the defect. Each
result includes the command that repeats the run.
"""

from __future__ import annotations

import json
import os
import sys
import threading
import time
from array import array
from pathlib import Path

from windtunnel.harness.artifact.documents import DocumentError
from windtunnel.harness.artifact.run.suite import Suite
from windtunnel.harness.artifact.run_dir import RunDir, SuiteDir
from windtunnel.harness.exam.document import ExamRun
from windtunnel.harness.installation import ROOT
from windtunnel.harness.orchestrate.processes.process import LocalProcess

POLL_S = 0.2
RUN_LIMIT_S = 2_700.0
"""Timeout of a run in seconds. It is longer than compilation and all timeouts in a run together, so
only a harness defect can exceed it.
"""
WAIT_MAX_S = 10 * POLL_S
"""A longer wait for a run shows that the exam was stopped."""
STOP_LIMIT_S = 60.0
EXECUTIONS = "WINDTUNNEL_PLANTED_EXECUTIONS"
COUNTS = 10_001
"""Both as in `mutation_switch`, which imports numba."""
EXECUTIONS_FILE = "executions.bin"
HARNESS = "HARNESS"
CANCELLED = "CANCELLED"


def execute_run(
    scenario: str,
    mutant: str,
    *,
    fidelity: str,
    payload: Path,
    out: Path,
    stop: threading.Event,
    seed: int | None = None,
    limit_s: float = RUN_LIMIT_S,
) -> ExamRun:
    """Execute a run and return its result. If `stop` is set, end the run early as CANCELLED. After
    `limit_s`, end it as HARNESS.

    Without a seed, the run has the scenario's first one.
    """
    out.mkdir(parents=True, exist_ok=True)
    before = set(out.iterdir())
    options = ["--fidelity", fidelity, "--payload", str(payload), "--out", str(out)]
    if seed is not None:
        options += ["--seed", str(seed), "--seeds", "1"]
    options += ["--mutant", mutant]
    executions = out / EXECUTIONS_FILE
    executions.write_bytes(bytes(8 * COUNTS))
    began_s = time.monotonic()
    process = LocalProcess(
        f"{mutant}/{scenario}",
        [sys.executable, "-m", "windtunnel.harness", "run", scenario, *options, "--json"],
        env={**os.environ, EXECUTIONS: str(executions.absolute())},
        cwd=ROOT,
        log=out / f"{scenario.replace('/', '-')}.log",
    )
    is_over = _wait(process, stop, limit_s)
    run = ExamRun(scenario, HARNESS, "", [], 0.0, ["windtunnel", "run", scenario, *options])
    run.seed = seed or 0
    if is_over:
        _read(run, out, before, process)
        run.executions = executions_in(out).get(0, 0)
    elif stop.is_set():
        run.outcome, run.reason = CANCELLED, "cancelled before its end"
    else:
        run.reason = f"did not end within {limit_s:.0f} s: a defect can be an endless loop"
    run.seconds = round(time.monotonic() - began_s, 1)
    return run


def executions_in(out: Path) -> dict[int, int]:
    """Return the executions that the run in a folder counted: number 0 has those of what the active
    mutant changed, number n those of what mutant n changes. Numbers without any are omitted.
    """
    try:
        counts = array("q", (out / EXECUTIONS_FILE).read_bytes())
    except FileNotFoundError:
        return {}
    return {number: count for number, count in enumerate(counts) if count}


def _wait(process: LocalProcess, stop: threading.Event, limit_s: float) -> bool:
    """Wait for a run to end. Returns False if the run was terminated because of a stop request or
    the timeout. Time in which the exam was stopped as well, or the machine slept, does not count.
    """
    waited_s, before_s = 0.0, time.monotonic()
    try:
        while process.wait(POLL_S) is None:
            now_s = time.monotonic()
            waited_s += min(now_s - before_s, WAIT_MAX_S)
            before_s = now_s
            if stop.is_set() or waited_s > limit_s:
                # On SIGTERM, the run removes its lab and exits.
                process.terminate()
                process.wait(STOP_LIMIT_S)
                return False
        return True
    finally:
        process.kill()


def _read(run: ExamRun, out: Path, before: set[Path], process: LocalProcess) -> None:
    """Read an exam run's outcome, reason and failed checks from its run folder into `run`."""
    for folder in sorted(set(out.iterdir()) - before):
        try:
            suite = Suite.read(SuiteDir(folder).document)
        except DocumentError as error:
            run.reason = str(error)
            return
        if suite is not None and suite.runs:
            suite_run = suite.runs[0]
            run.folder = str(folder / suite_run.folder)
            run.outcome, run.reason, run.seed = suite_run.outcome, suite_run.reason, suite_run.seed
            run.checks = failed_checks(RunDir(folder / suite_run.folder))
            return
    run.reason = f"no run was executed: {process.tail(2)}"


def failed_checks(folder: RunDir) -> list[str]:
    """Return the names of the failed checks in a run's verdict, without duplicates."""
    try:
        verdict = json.loads(folder.verdict.read_text(encoding="utf-8"))
        found = [each["name"] for each in verdict["checks"] if each["outcome"] == "FAIL"]
    except (OSError, ValueError, KeyError, TypeError):
        return []
    return list(dict.fromkeys(found))
