"""Many trials, one after the other or in several processes, until their number or the time is over.

    root seed --> seeds root, root + 1, ... --chunks--> workers --results--> lines, one a trial

A violation is told with the seed's choice and the one command that makes the trial again. Which
worker makes a trial changes nothing in it. Refuses to know what a trial checks.
"""

from __future__ import annotations

import ctypes
import gc
import itertools
import json
import multiprocessing
import os
import shutil
import signal
import sys
import tempfile
import time
import traceback
from collections.abc import Iterator
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from dataclasses import asdict, dataclass
from functools import cache
from pathlib import Path

from windtunnel.harness.simulator.blame import in_one_line, is_drivers
from windtunnel.harness.simulator.output.trial_folder import NO_KEEPSAKE, RunFolder
from windtunnel.harness.simulator.swarm.choice import choose
from windtunnel.harness.simulator.swarm.trial import Trial

CHUNK = 20
SEED_MAX = (1 << 63) - 1
LARGE_BYTES = 1 << 18
COLLECT_EVERY = 100
"""Trials of a process between two collections of garbage: seldom enough to cost next to nothing,
often enough to keep a process below a gigabyte."""
TELL_S = 30
"""Between two words on how far a long swarm has come."""
_MMAP_THRESHOLD = -3
_PR_SET_PDEATHSIG = 1
_made = itertools.count(1)


@dataclass(frozen=True)
class Result:
    """What came of one seed."""

    seed: int
    choice: str
    violation: str
    """Empty when everything held."""
    stalls: tuple[str, ...]
    """Streams that the protocol itself left where they were."""
    digest: str
    frames: int
    defect: str
    """What went wrong in the simulator itself; empty when nothing did."""


@dataclass(frozen=True)
class SwarmSpec:
    """What a swarm is asked to do."""

    root: int
    seeds: int
    minutes: float
    """Stop to begin trials after this time; 0 for no such limit."""
    jobs: int
    frames: int | None
    sabotage: str
    as_json: bool
    keep: Path | None
    """Where the first violation's run folder goes."""

    @property
    def extra_arguments(self) -> list[str]:
        """What the command of a single trial needs beside its seed."""
        arguments = [] if self.frames is None else ["--frames", str(self.frames)]
        return [*arguments, "--sabotage", self.sabotage] if self.sabotage else arguments

    def repro(self, seed: int) -> list[str]:
        """The command that makes one trial again."""
        return ["windtunnel", "swarm", "--seed", str(seed), "--seeds", "1", *self.extra_arguments]


def make_trial(
    seed: int,
    memory: Path,
    *,
    frames: int | None = None,
    sabotage: str = "",
    keep: Path | None = None,
) -> Result:
    """Make one trial; never raises for what happens in it."""
    choice = choose(seed, frames=frames)
    kept = NO_KEEPSAKE if keep is None else RunFolder(keep)
    try:
        outcome = Trial(choice, memory, sabotage=sabotage, keepsake=kept).run()
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
    )


def make_chunk(
    seeds: list[int], memory: Path, frames: int | None, sabotage: str, end_s: float
) -> list[Result]:
    """Make trials in a directory of their own, until a time of the machine's monotonic clock."""
    _keep_large_memory_apart()
    _pass_over_what_stays()
    folder = Path(tempfile.mkdtemp(prefix="swarm-", dir=memory))
    results = []
    try:
        for seed in seeds:
            if time.monotonic() >= end_s:
                break
            results.append(make_trial(seed, folder, frames=frames, sabotage=sabotage))
            if next(_made) % COLLECT_EVERY == 0:
                # A world is full of cycles, and the collector comes too seldom for its arrays.
                gc.collect()
        return results
    finally:
        shutil.rmtree(folder, ignore_errors=True)


@cache
def _pass_over_what_stays() -> None:
    """Have the collector look no more at what was there before the first trial, once a process.

    Else it walks through all modules and compiled kernels many times a trial.
    """
    gc.collect()
    gc.freeze()


def _keep_large_memory_apart() -> None:
    """Have every large array come from the system, and go back to it.

    Else the allocator keeps what a trial frees and must clear all of it for the next, of which a
    trial touches little.
    """
    libc = ctypes.CDLL(None)
    if hasattr(libc, "mallopt"):
        libc.mallopt(_MMAP_THRESHOLD, LARGE_BYTES)


def _die_with(parent: int) -> None:
    """Have this process killed when the one that started it dies, however that comes to pass.

    A pool's process that has lost its owner waits for work for ever, with all its memory.
    """
    libc = ctypes.CDLL(None)
    if hasattr(libc, "prctl"):
        libc.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != parent:  # it died before it was asked for
        os.kill(os.getpid(), signal.SIGKILL)


class Swarm:
    """A swarm under way."""

    def __init__(self, order: SwarmSpec, memory: Path) -> None:
        self._order, self._memory = order, memory
        self._began_s = time.monotonic()
        self._told_s = 0.0
        limit_s = order.minutes * 60 if order.minutes else float("inf")
        self._end_s = self._began_s + limit_s
        self.count = self.frames = self.stalls = 0
        self.violations: list[Result] = []
        self.defects: list[Result] = []

    def run(self) -> None:
        """Make all trials and tell of each violation as it is found."""
        for result in self._results():
            self.count += 1
            self.frames += result.frames
            self.stalls += bool(result.stalls)
            if result.defect:
                self.defects.append(result)
            elif result.violation:
                self.violations.append(result)
            self._tell(result)
            self._tell_progress()
        self._keep_first()
        self._tell_all()

    def _chunks(self) -> Iterator[list[int]]:
        # Alone, each trial is told when it is done.
        size = CHUNK if self._order.jobs > 1 else 1
        for first in range(0, self._order.seeds, size):
            last = min(first + size, self._order.seeds)
            yield [(self._order.root + index) & SEED_MAX for index in range(first, last)]

    def _results(self) -> Iterator[Result]:
        order = self._order
        if order.jobs == 1:
            for chunk in self._chunks():
                yield from make_chunk(
                    chunk, self._memory, order.frames, order.sabotage, self._end_s
                )
            return
        context = multiprocessing.get_context("spawn")
        with ProcessPoolExecutor(order.jobs, context, _die_with, (os.getpid(),)) as executor:
            pending: set[Future[list[Result]]] = set()
            for chunk in self._chunks():
                pending.add(
                    executor.submit(
                        make_chunk, chunk, self._memory, order.frames, order.sabotage, self._end_s
                    )
                )
                if len(pending) > 2 * order.jobs:
                    done, pending = wait(pending, return_when=FIRST_COMPLETED)
                    for each in done:
                        yield from each.result()
            for each in pending:
                yield from each.result()

    def _tell(self, result: Result) -> None:
        if self._order.as_json:
            elapsed_s = round(time.monotonic() - self._began_s, 4)
            line = {"kind": "trial", "elapsed_s": elapsed_s, **asdict(result)}
            print(json.dumps(line), flush=True)
        elif result.violation or result.defect or self._order.seeds == 1:
            what = result.violation or result.defect or "held"
            print(f"seed {result.seed}: {result.choice}", flush=True)
            print(f"seed {result.seed}: {what}", flush=True)
            for stall in result.stalls:
                print(f"seed {result.seed}: a stall of the protocol's own: {stall}", flush=True)
            if result.violation or result.defect:
                print(f"again: {' '.join(self._order.repro(result.seed))}", flush=True)
            else:
                print(f"events {result.digest}", flush=True)

    def _tell_progress(self) -> None:
        took_s = time.monotonic() - self._began_s
        if took_s < self._told_s + TELL_S:
            return
        self._told_s = took_s
        print(
            f"{self.count} of {self._order.seeds} trials after {took_s:.0f} s, "
            f"{len(self.violations)} violations",
            file=sys.stderr,
            flush=True,
        )

    def _keep_first(self) -> None:
        """Make the first bad trial again as a run folder, or the only trial there was."""
        found = self.violations[:1]
        if self._order.keep is None or not (found or self._order.seeds == 1):
            return
        seed = found[0].seed if found else self._order.root
        result = make_trial(
            seed,
            self._memory,
            frames=self._order.frames,
            sabotage=self._order.sabotage,
            keep=self._order.keep,
        )
        RunFolder(self._order.keep).conclude(seed, result.violation, self._order.repro(seed))

    def _tell_all(self) -> None:
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
        if self._order.as_json:
            print(json.dumps({"kind": "swarm", **facts}), flush=True)
        else:
            print(
                f"{facts['trials']} trials, {facts['violations']} violations, "
                f"{facts['stalls']} with a stall of the protocol's own, "
                f"{facts['defects']} defects of the simulator, {facts['frames']} frames, "
                f"{facts['seconds']} s ({facts['trials_per_minute']} a minute)",
                flush=True,
            )
