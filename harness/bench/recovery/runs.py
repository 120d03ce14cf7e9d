"""Runs the recovery benchmark, and returns one reading for each run.

    sweep     the real C driver with several NAK delays, one run each --> the delay of `c-tuned`
    rounds    seeds root, root + 1, ... of each path, with each of its setups

On virtual time runs are independent of the machine's load, so they are executed in parallel. Real
drivers are measured one at a time, in an order that each round reverses. Run folders are removed
after they were read; the caller may read the first one of each path and setup before. Readings that
were saved before are not made again.
"""

import os
import shutil
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from pathlib import Path

from windtunnel.harness import installation
from windtunnel.harness.artifact.rate_text import rate_text
from windtunnel.harness.artifact.run.verdict import read_results
from windtunnel.harness.artifact.run_dir import RunDir
from windtunnel.harness.bench.measure import Reading
from windtunnel.harness.bench.recovery import figures
from windtunnel.harness.bench.recovery.figures import (
    C_TUNED,
    OURS,
    TAIL,
    TAIL_SEEDS,
    RecoveryPath,
    Setup,
)
from windtunnel.harness.bench.recovery.saved_readings import SavedReadings
from windtunnel.harness.orchestrate.fidelity import SIM
from windtunnel.harness.orchestrate.lab import LabError
from windtunnel.harness.orchestrate.labs import labs
from windtunnel.harness.orchestrate.subjects import peers
from windtunnel.harness.orchestrate.suite.runner import run_suite
from windtunnel.harness.scenario.loader import load_scenario

RETRY_RATIO = 100
"""Retry delay of the C driver for a channel with the parameter nak-delay, in NAK delays. Source:
Aeron 1.53."""
SWEEP = (0.01, 0.03, 0.1, 0.25, 0.5, 1.04, 1.5, 2.0)
"""Retry delays of the sweep, in round-trip times. The last ones avoid repeated NAKs."""
VOID = ("HARNESS", "UNSUPPORTED", "CANCELLED")
"""Outcomes of runs that say nothing about a driver. A failed run is a measurement: a stream that
does not become complete is what the benchmark looks for."""
SEEDS_A_SUITE_MAX = 20
"""Maximum number of runs on virtual time before their readings are saved."""
OnNote = Callable[[str], None]
OnFirstRun = Callable[[RecoveryPath, Setup, RunDir], None]


def _ignore(path: RecoveryPath, setup: Setup, run: RunDir) -> None:
    """Do nothing with the first run of a path and setup."""


def measure(
    rounds: int,
    only: Collection[str],
    out: Path,
    note: OnNote,
    on_first_run: OnFirstRun = _ignore,
    saved: SavedReadings | None = None,
) -> list[Reading]:
    """Measure the paths whose cases are in `only`, or all paths if it is empty.

    `on_first_run` is called with the run of the first seed of each path and setup, which is removed
    afterwards; it is not called for readings in `saved`, to which the others are added. Paths that
    this machine cannot measure are noted and left out. Raises LabError if no path can be measured.
    """
    saved = saved or SavedReadings()
    readings: list[Reading] = []
    for path in figures.PATHS:
        if only and path.case not in only:
            continue
        try:
            labs.require(path.fidelity)
        except LabError as error:
            if path.fidelity == SIM:
                raise
            note(f"left out: {path.case}: {error}")
            continue
        for reading in _measure_path(path, rounds, out, note, on_first_run, saved):
            readings.append(reading)
            if reading.void:
                note(f"  {reading.case} of {reading.driver}: VOID: {reading.void}")
    return readings


def scenario_file(path: RecoveryPath) -> Path:
    """Return the file of a path's scenario."""
    return installation.SCENARIOS / "recovery" / f"{path.name}.yaml"


def _measure_path(
    path: RecoveryPath,
    rounds: int,
    out: Path,
    note: OnNote,
    on_first_run: OnFirstRun,
    saved: SavedReadings,
) -> Iterator[Reading]:
    tuned: Mapping[str, str] = _sweep(path, out, note, saved) if C_TUNED in path.setups else {}
    if path.fidelity == SIM:
        seeds = range(rounds * TAIL_SEEDS if path.name == TAIL else rounds)
        for setup in path.setups:
            note(f"{path.case}: {setup.name}")
            yield from _readings(path, setup, seeds, out, tuned, saved, on_first_run)
        return
    for seed in range(rounds):
        # A fixed order could favour one driver, if a run affects the next one.
        for setup in path.setups[:: -1 if seed % 2 else 1]:
            note(f"{path.case}: {setup.name}, round {seed + 1}")
            chosen = range(seed, seed + 1)
            yield from _readings(path, setup, chosen, out, tuned, saved, on_first_run)


def _sweep(path: RecoveryPath, out: Path, note: OnNote, saved: SavedReadings) -> dict[str, str]:
    """Return the channel parameter with which the real C driver is fastest on this path."""
    best, fastest = "", 0.0
    for factor in SWEEP:
        delay = f"{max(1, round(path.round_trip_ns * factor / RETRY_RATIO))}ns"
        for reading in _readings(path, C_TUNED, range(1), out, {"nak-delay": delay}, saved):
            goodput = reading.values.get("goodput", 0.0)
            found = f"VOID: {reading.void}" if reading.void else rate_text(goodput * 1e6)
            note(f"{path.case}: sweep: nak-delay={delay}: {found}")
            if goodput > fastest:
                best, fastest = delay, goodput
    return {"nak-delay": best} if best else {}


def _readings(
    path: RecoveryPath,
    setup: Setup,
    seeds: range,
    out: Path,
    tuned: Mapping[str, str],
    saved: SavedReadings,
    on_first_run: OnFirstRun = _ignore,
) -> Iterator[Reading]:
    """Yield the saved readings of a path with one setup, then make and save the others.

    The seeds are counted from the scenario's first seed.
    """
    receive = dict(tuned) if setup is C_TUNED else {}
    missing = []
    for seed in seeds:
        values = saved.find(path.case, setup.name, receive, seed)
        if values is None:
            missing.append(seed)
        else:
            yield Reading(setup.name, path.case, seed, values)
    for chosen in _ranges(missing):
        for reading in _runs(path, setup, chosen, out, receive, on_first_run):
            if not reading.void:
                saved.add(path.case, setup.name, receive, reading.round_index, reading.values)
            yield reading


def _ranges(seeds: Sequence[int]) -> Iterator[range]:
    """Yield ascending seeds as ranges of at most SEEDS_A_SUITE_MAX."""
    start = 0
    for index in range(1, len(seeds) + 1):
        is_last = index == len(seeds) or seeds[index] != seeds[index - 1] + 1
        if is_last or index - start == SEEDS_A_SUITE_MAX:
            yield range(seeds[start], seeds[index - 1] + 1)
            start = index


def _runs(
    path: RecoveryPath,
    setup: Setup,
    seeds: range,
    out: Path,
    receive: Mapping[str, str],
    on_first_run: OnFirstRun,
) -> Iterator[Reading]:
    """Run a path with one setup for a range of seeds, counted from the scenario's first seed."""
    file = scenario_file(path)
    root = load_scenario(file).seeds.root
    result = run_suite(
        [file],
        fidelity=path.fidelity,
        seed=root + seeds.start,
        seeds=len(seeds),
        out=out,
        tested=peers.pair(setup.publisher, setup.subscriber, path.fidelity, out / peers.STORE),
        jobs=len(os.sched_getaffinity(0)) if path.fidelity == SIM else 1,
        receive=receive,
    )
    result.raise_if_cancelled()
    for run in result.runs:
        values = figures.values_of(read_results(RunDir(run.run_dir).verdict))
        void = run.reason if run.outcome in VOID or not values else ""
        if setup is OURS and run.outcome != "PASS":
            void = void or f"{run.outcome}: {run.reason}"
        index = run.seed - root
        if index == 0 and not void:
            on_first_run(path, setup, RunDir(run.run_dir))
        yield Reading(setup.name, path.case, index, {} if void else values, void)
    shutil.rmtree(result.suite_dir, ignore_errors=True)
