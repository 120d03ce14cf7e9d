"""Runs many swarm trials (simulations with random streams and faults) in one or more processes,
until a number of trials or a time limit is reached.

    root seed --> seeds root, root + 1, ... --chunks--> workers --results--> one line per trial

A violation is reported with the parameters derived from the seed, and the command that reproduces
the trial. A trial's result does not depend on the worker that runs it.
"""

from __future__ import annotations

import ctypes
import gc
import json
import multiprocessing
import shutil
import sys
import tempfile
import time
import traceback
from collections.abc import Iterator
from dataclasses import asdict, dataclass, replace
from functools import partial
from pathlib import Path

from windtunnel.harness.artifact.huge_pages import avoid_huge_pages
from windtunnel.harness.artifact.noun_form import noun_for
from windtunnel.harness.simulator.blame import in_one_line, is_drivers
from windtunnel.harness.simulator.output.trial_folder import NO_OBSERVER, TrialFolder
from windtunnel.harness.simulator.real_driver import c_driver
from windtunnel.harness.simulator.support import Unsupported
from windtunnel.harness.simulator.swarm.choice import choose
from windtunnel.harness.simulator.swarm.comparison import Comparison
from windtunnel.harness.simulator.swarm.result import Result
from windtunnel.harness.simulator.swarm.trial import Trial
from windtunnel.harness.simulator.swarm.trial_drivers import OURS, library_of
from windtunnel.harness.simulator.swarm.workers import Workers
from windtunnel.harness.simulator.world.host_memory import HostMemories

CHUNK = 20
SEED_MAX = (1 << 63) - 1
LARGE_BYTES = 1 << 18
NOT_KEPT = 3
"""Exit code of the process that could not write a trial's run folder."""
PROGRESS_S = 30
"""Seconds between progress lines."""
_MMAP_THRESHOLD = -3
_memories: HostMemories = {}
"""The memories of the hosts of the last trial in this process."""


@dataclass(frozen=True)
class SwarmSpec:
    """The parameters of a swarm run: its seeds, time limit, number of processes and output."""

    root: int
    seeds: int
    minutes: float
    """Minutes after which no new trial starts, or 0 for no limit."""
    jobs: int
    frames: int | None
    sabotage: str
    as_json: bool
    keep: Path | None
    """Path for the first failing trial's run folder."""
    modes: bool = False
    """Whether some streams have Windtunnel's modes of loss recovery."""
    drivers: str = OURS
    """The drivers of both hosts, see `trial_drivers`."""
    compare: bool = False
    """Whether each trial also runs with Windtunnel's driver, to compare the figures."""

    @property
    def extra_arguments(self) -> list[str]:
        """Return the arguments that a single trial's command needs in addition to the seed."""
        arguments = ["--recovery-modes"] if self.modes else []
        arguments += [] if self.drivers == OURS else ["--driver", self.drivers]
        arguments += [] if self.frames is None else ["--frames", str(self.frames)]
        return [*arguments, "--sabotage", self.sabotage] if self.sabotage else arguments

    def repro(self, seed: int) -> list[str]:
        """Return the command that reproduces one trial."""
        return ["windtunnel", "swarm", "--seed", str(seed), "--seeds", "1", *self.extra_arguments]


def run_trial(
    seed: int,
    memory: Path,
    *,
    frames: int | None = None,
    sabotage: str = "",
    keep: Path | None = None,
    modes: bool = False,
    drivers: str = OURS,
    is_compared: bool = False,
    host_memories: HostMemories | None = None,
) -> Result:
    """Run one trial. An error in the trial becomes part of the result instead of an exception.
    `host_memories` are those of an earlier trial.

    Raises Unsupported if the real C driver's library cannot be used.
    """
    choice = choose(seed, frames=frames, modes=modes, drivers=drivers, is_compared=is_compared)
    observer = NO_OBSERVER if keep is None else TrialFolder(keep)
    try:
        trial = Trial(
            choice, memory, sabotage=sabotage, observer=observer, host_memories=host_memories
        )
        outcome = trial.run()
    except Unsupported:
        raise
    except Exception as error:
        if is_drivers(error):
            text = f"the driver raised {in_one_line(error)}"
            return Result(seed, choice.text, text, (), "", 0, "")
        return Result(seed, choice.text, "", (), "", 0, traceback.format_exc())
    return Result(
        seed,
        choice.text,
        outcome.violation,
        outcome.stalls,
        outcome.digest,
        outcome.frames,
        "",
        outcome.figures,
    )


def _run(
    seed: int,
    memory: Path,
    spec: SwarmSpec,
    drivers: str,
    *,
    keep: Path | None = None,
    is_compared: bool = False,
) -> Result:
    """Run one trial with the parameters of a swarm run."""
    return run_trial(
        seed,
        memory,
        frames=spec.frames,
        sabotage=spec.sabotage,
        keep=keep,
        modes=spec.modes,
        drivers=drivers,
        is_compared=is_compared,
        host_memories=_memories,
    )


def _compare(result: Result, memory: Path, spec: SwarmSpec) -> Result:
    """Add the figures of the same trial with Windtunnel's driver to a result."""
    other = _run(result.seed, memory, spec, OURS, is_compared=True)
    violation = f"with `ours`: {other.violation}" if other.violation else ""
    return replace(
        result,
        ours=other.figures,
        violation=result.violation or violation,
        defect=result.defect or other.defect,
    )


def run_chunk(seeds: list[int], *, memory: Path, spec: SwarmSpec, end_s: float) -> Iterator[Result]:
    """Run trials in a temporary folder until all trials have run, or until the monotonic clock
    reaches the deadline `end_s`. Yields the result of each trial.

    Raises Unsupported if the real C driver's library cannot be used.
    """
    if spec.drivers != OURS:
        c_driver.load(library_of(spec.drivers))
    _use_mmap_for_large_arrays()
    # A world is full of reference cycles. Automatic collection would run in the middle of a trial,
    # and would free the last world's arrays so late that the next ones need other memory.
    is_automatic = gc.isenabled()
    gc.disable()
    folder = Path(tempfile.mkdtemp(prefix="swarm-", dir=memory))
    try:
        for seed in seeds:
            if time.monotonic() >= end_s:
                break
            result = _run(seed, folder, spec, spec.drivers)
            yield _compare(result, folder, spec) if spec.compare else result
            _collect_garbage()
    finally:
        if is_automatic:
            gc.enable()
        shutil.rmtree(folder, ignore_errors=True)


def _collect_garbage() -> None:
    """Free the last trial's world, and exclude all other objects from later collections.

    Otherwise the collector would traverse all modules and compiled kernels after each trial.
    """
    gc.collect()
    gc.freeze()


def _use_mmap_for_large_arrays() -> None:
    """Make malloc allocate every large array with mmap, in small pages, so freeing it returns the
    memory to the system.

    Otherwise the allocator would keep freed memory and clear all of it for the next trial, which
    uses little of it.
    """
    libc = ctypes.CDLL(None)
    if hasattr(libc, "mallopt"):
        libc.mallopt(_MMAP_THRESHOLD, LARGE_BYTES)
    # A trial touches a few bytes here and there, and each would clear 2 MiB.
    avoid_huge_pages()


class Swarm:
    """A series of swarm trials, with its totals, violations and simulator errors so far."""

    def __init__(self, spec: SwarmSpec, memory: Path) -> None:
        self._spec, self._memory = spec, memory
        self._began_s = time.monotonic()
        self._reported_s = 0.0
        limit_s = spec.minutes * 60 if spec.minutes else float("inf")
        self._end_s = self._began_s + limit_s
        self.count = self.frames = self.stalls = 0
        self.violations: list[Result] = []
        self.defects: list[Result] = []
        self.comparison = Comparison()
        self.is_folder_complete = True
        """Whether the run folder that was requested, if any, has been written."""

    def run(self) -> None:
        """Run all trials and report each violation as it is found."""
        for result in self._results():
            self.count += 1
            self.frames += result.frames
            self.stalls += bool(result.stalls)
            if result.defect:
                self.defects.append(result)
            elif result.violation:
                self.violations.append(result)
            self.comparison.add(result)
            self._report(result)
            self._report_progress()
        self._write_first_failure()
        self._report_totals()

    def _chunks(self) -> Iterator[list[int]]:
        for first in range(0, self._spec.seeds, CHUNK):
            last = min(first + CHUNK, self._spec.seeds)
            yield [(self._spec.root + index) & SEED_MAX for index in range(first, last)]

    def _results(self) -> Iterator[Result]:
        spec = self._spec
        run = partial(run_chunk, memory=self._memory, spec=spec, end_s=self._end_s)
        # Also a single process, because a trial may end it.
        return Workers(spec.jobs, run, self._on_death, self._memory).results(self._chunks())

    def _on_death(self, seed: int, text: str, is_native: bool) -> Result:
        """Return the result of a trial whose process died."""
        spec = self._spec
        choice = choose(seed, frames=spec.frames, modes=spec.modes, drivers=spec.drivers)
        violation, defect = (text, "") if is_native else ("", text)
        return Result(seed, choice.text, violation, (), "", 0, defect)

    def _report(self, result: Result) -> None:
        if self._spec.as_json:
            elapsed_s = round(time.monotonic() - self._began_s, 4)
            line = {"kind": "trial", "elapsed_s": elapsed_s, **asdict(result)}
            print(json.dumps(line), flush=True)
        elif result.violation or result.defect or self._spec.seeds == 1:
            what = result.violation or result.defect or "passed"
            print(f"seed {result.seed}: {result.choice}", flush=True)
            print(f"seed {result.seed}: {what}", flush=True)
            for stall in result.stalls:
                print(f"seed {result.seed}: known protocol stall: {stall}", flush=True)
            if result.violation or result.defect:
                print(f"reproduce: {' '.join(self._spec.repro(result.seed))}", flush=True)
            else:
                print(f"events {result.digest}", flush=True)

    def _report_progress(self) -> None:
        took_s = time.monotonic() - self._began_s
        if took_s < self._reported_s + PROGRESS_S:
            return
        self._reported_s = took_s
        print(
            f"{self.count} of {self._spec.seeds} trials after {took_s:.0f} s, "
            f"{len(self.violations)} {noun_for(len(self.violations), 'violation')}",
            file=sys.stderr,
            flush=True,
        )

    def _write_first_failure(self) -> None:
        """Run the first failing trial again and write its run folder. If only one trial was
        requested, do this even if the trial passed.
        """
        found = self.violations[:1]
        if self._spec.keep is None or not (found or self._spec.seeds == 1):
            return
        seed = found[0].seed if found else self._spec.root
        process = multiprocessing.get_context("spawn").Process(
            target=_keep, args=(seed, self._memory, self._spec)
        )
        process.start()
        process.join()
        self.is_folder_complete = process.exitcode == 0
        if process.exitcode not in (0, NOT_KEPT):
            print(f"seed {seed}: its run folder is incomplete, because the trial ended its process")

    def _report_totals(self) -> None:
        took_s = time.monotonic() - self._began_s
        facts = {
            "trials": self.count,
            "violations": len(self.violations),
            "stalls": self.stalls,
            "defects": len(self.defects),
            "frames": self.frames,
            "seconds": round(took_s, 1),
            "trials_per_minute": round(self.count / took_s * 60),
        }
        if self._spec.as_json:
            if self._spec.compare:
                kinds, rows = self.comparison.kinds, self.comparison.rows
                line = {"kind": "comparison", "kinds": kinds, "figures": rows}
                print(json.dumps(line), flush=True)
            print(json.dumps({"kind": "swarm", **facts}), flush=True)
        else:
            if self._spec.compare:
                print("\n".join(self.comparison.lines()), flush=True)
            print(
                f"{facts['trials']} trials, {facts['violations']} violations, "
                f"{facts['stalls']} with a known protocol stall, "
                f"{facts['defects']} simulator defects, {facts['frames']} frames, "
                f"{facts['seconds']} s ({facts['trials_per_minute']} per minute)",
                flush=True,
            )


def _keep(seed: int, memory: Path, spec: SwarmSpec) -> None:
    """Run a trial and write its run folder, and that of the trial with which it is compared. Ends
    the process with NOT_KEPT if a folder is incomplete.
    """
    assert spec.keep is not None
    if spec.drivers != OURS:
        c_driver.load(library_of(spec.drivers))
    _keep_one(seed, memory, spec, spec.drivers, spec.keep)
    if spec.compare:
        folder = spec.keep.with_name(f"{spec.keep.name}-{OURS}")
        _keep_one(seed, memory, spec, OURS, folder, is_compared=True)


def _keep_one(
    seed: int,
    memory: Path,
    spec: SwarmSpec,
    drivers: str,
    folder: Path,
    *,
    is_compared: bool = False,
) -> None:
    try:
        result = _run(seed, memory, spec, drivers, keep=folder, is_compared=is_compared)
        error = _last_line(result.defect)
        if not error:
            TrialFolder(folder).conclude(seed, result.violation, spec.repro(seed))
    except OSError as raised:
        error = f"{raised.filename or folder}: {raised.strerror}"
    if error:
        print(f"seed {seed}: its run folder {folder} is incomplete: {error}", file=sys.stderr)
        sys.exit(NOT_KEPT)


def _last_line(defect: str) -> str:
    """Return the last line of a traceback, which names the error, or "" if there is none."""
    return defect.rstrip().rpartition("\n")[2]
