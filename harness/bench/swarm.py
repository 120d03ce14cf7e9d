"""Measures how many simulated trials (swarm) one core executes per minute.

    python -m windtunnel.harness.simulator swarm --json    one line per trial, with its end time
      first line: everything is loaded -- warm-up --> the clock starts .... last line in time

If a trial finds a violation or a defect, the reading is invalid, because a broken simulation is
fast. It is also invalid if kernels were compiled after the first trial.
"""

import json
import sys
import time
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from windtunnel.driver.kernels.sources import cache_root
from windtunnel.harness.bench.measure import COMPILED, Reading, compiled_between
from windtunnel.harness.bench.plan import SWARM, SWARM_FRAMES, BenchSettings
from windtunnel.harness.installation import ROOT
from windtunnel.harness.orchestrate.labs.namespaces import environment
from windtunnel.harness.orchestrate.processes import process
from windtunnel.harness.orchestrate.processes.process import LocalProcess

OURS = "ours"
TRIALS_MAX = 1_000_000
"""Requested number of trials, more than can run in the measurement time."""
LOAD_LIMIT_S = 600.0
"""Additional seconds in which the simulator can compile its kernels."""
_POLL_S = 0.05


def measure_swarm(settings: BenchSettings, folder: Path, round_index: int) -> Reading:
    """Run simulated trials for the configured time, and return the result of the measurement."""
    argv = [sys.executable, "-m", "windtunnel.harness.simulator", "swarm", "--json"]
    argv += ["--seeds", str(TRIALS_MAX), "--frames", str(SWARM_FRAMES), "--memory", str(folder)]
    running = LocalProcess(
        SWARM,
        process.with_parent_death_signal(argv),
        env=environment(),
        cwd=ROOT,
        log=folder / "swarm.log",
    )
    measured_s = settings.warm_up_s + settings.seconds
    end_s = time.monotonic() + measured_s + LOAD_LIMIT_S
    first_ns, trials = 0, list[dict[str, Any]]()
    try:
        while True:
            time.sleep(_POLL_S)
            has_ended = running.poll() is not None or time.monotonic() > end_s
            trials = parse_trials(running.log.read_text(encoding="utf-8"))
            if trials and not first_ns:
                first_ns = time.time_ns()
            if has_ended or _took_s(trials) > measured_s or _first_failed(trials):
                break
    finally:
        running.kill()
    if first_ns and compiled_between(cache_root(), first_ns, time.time_ns()):
        return Reading(OURS, SWARM, round_index, void=COMPILED)
    return reading(trials, settings.warm_up_s, settings.seconds, round_index)


def parse_trials(text: str) -> list[dict[str, Any]]:
    """Parse the trials in the simulator's output. An incomplete last line is ignored."""
    whole = text[: text.rfind("\n") + 1].splitlines()
    documents = (json.loads(line) for line in whole if line.startswith("{"))
    return [each for each in documents if each.get("kind") == "trial"]


def reading(
    trials: Iterable[dict[str, Any]], warm_up_s: float, seconds: float, round_index: int
) -> Reading:
    """Compute the result of a measurement from the trials that ended within the measurement time.
    The time begins with the end of the last trial of the warm-up, or of the first trial.

    If there is no such trial, only the next one is used.
    """
    trials_read = list(trials)
    if wrong := _first_failed(trials_read):
        void = f"seed {wrong['seed']}: {wrong['violation'] or wrong['defect']}"
        return Reading(OURS, SWARM, round_index, void=void)
    warm = [each for each in trials_read if _took_s([*trials_read[:1], each]) <= warm_up_s]
    before, later = warm[-1:], trials_read[len(warm) :]
    counted = [each for each in later if _took_s([*before, each]) <= seconds] or later[:1]
    took_s = _took_s([*before, *counted])
    if not took_s:
        return Reading(OURS, SWARM, round_index, void="the simulator exited without a trial")
    frames = sum(each["frames"] for each in counted) / len(counted)
    values = {"trials": len(counted) * 60 / took_s, "frames": frames}
    return Reading(OURS, SWARM, round_index, values)


def _first_failed(trials: list[dict[str, Any]]) -> dict[str, Any] | None:
    return next((each for each in trials if each["violation"] or each["defect"]), None)


def _took_s(trials: list[dict[str, Any]]) -> float:
    """Return the seconds between the end of the first trial and the end of the last one."""
    return float(trials[-1]["elapsed_s"] - trials[0]["elapsed_s"]) if trials else 0.0
