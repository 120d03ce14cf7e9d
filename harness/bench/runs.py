"""Measures how many complete runs per minute this machine executes on all cores, at one fidelity
level.

    one run unmeasured --> scenarios x seeds, one per core in parallel --> runs / minute

A complete run extends from lab setup to verdict. The four scenarios have a typical size and
different kinds of faults. If a run does not PASS, the result is invalid, because a broken lab is
fast.
"""

import os
import time
from dataclasses import dataclass
from pathlib import Path

from windtunnel.harness import installation
from windtunnel.harness.orchestrate.fidelity import Fidelity
from windtunnel.harness.orchestrate.labs import labs
from windtunnel.harness.orchestrate.suite.runner import run_suite
from windtunnel.harness.orchestrate.suite.suite import SuiteResult

SCENARIOS = ("loss/gilbert-elliott", "order/displacement", "copies/data", "damage/truncation")


@dataclass(frozen=True)
class MeasuredRuns:
    """The number of runs executed and their total duration."""

    fidelity: str
    runs: int
    took_s: float
    void: str = ""
    """The reason why the result is invalid (void), or an empty string."""

    @property
    def per_minute(self) -> float:
        return self.runs * 60 / self.took_s


def measure_runs(fidelity: Fidelity, seeds: int, out: Path) -> MeasuredRuns:
    """Execute the runs and measure their duration. Raises LabError if this machine cannot run
    them.
    """
    labs.require(fidelity)
    files = [installation.SCENARIOS / f"{name}.yaml" for name in SCENARIOS]
    run_suite(files[:1], fidelity=fidelity, seeds=1, out=out).raise_if_cancelled()
    jobs = len(os.sched_getaffinity(0))
    began_s = time.perf_counter()
    result = run_suite(files, fidelity=fidelity, seeds=seeds, jobs=jobs, out=out)
    took_s = time.perf_counter() - began_s
    result.raise_if_cancelled()
    return MeasuredRuns(fidelity, len(result.runs), took_s, _trouble(result))


def _trouble(result: SuiteResult) -> str:
    wrong = [each for each in result.runs if each.outcome != "PASS"]
    if not wrong:
        return ""
    first = wrong[0]
    which = f"{first.scenario} seed {first.seed}"
    counted = f"{len(wrong)} of {len(result.runs)} runs did not PASS"
    return f"{counted}; {which}: {first.outcome}: {first.reason}"
