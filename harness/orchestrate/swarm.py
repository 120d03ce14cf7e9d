"""A swarm's process: started with a directory in memory of its own, which is gone at the end.

Refuses to know what a trial is; what the process prints goes where we print.
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Sequence
from pathlib import Path

from harness.orchestrate import clean, keeper, process
from harness.orchestrate.namespaces import environment
from harness.orchestrate.privileges import REPOSITORY
from harness.orchestrate.process import Keeper
from harness.orchestrate.simulation import NAME
from harness.orchestrate.state import LabState
from harness.topology import addressing

RECORDS = ".lab"


def run_swarm(arguments: Sequence[str], out: Path) -> int:
    """Run `python -m harness.simulator swarm` with these arguments. Returns its exit code.

    `out` is where runs go; what the swarm changes on the machine is noted there.
    """
    run_id = f"swarm/{os.getpid()}-{time.time_ns()}"
    record = LabState(token=addressing.token(run_id), run_id=run_id, kind=NAME)
    labs = out.resolve() / RECORDS
    path = record.write(labs)
    guard = Keeper(
        [sys.executable, "-m", keeper.__name__, str(path)], env=environment(), cwd=REPOSITORY
    )
    argv = [sys.executable, "-m", "harness.simulator", "swarm", *arguments]
    argv += ["--memory", str(record.memory_directory())]
    try:
        return process.pass_through(process.dying_with_us(argv), env=environment())
    finally:
        clean.remove(record, labs)
        guard.release(keeper.DONE)
