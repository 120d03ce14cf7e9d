"""A swarm's process: started with a directory in memory of its own, which is gone at the end.

Refuses to know what a trial is; what the process prints goes where we print.
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Sequence
from pathlib import Path

from windtunnel.harness.installation import ROOT
from windtunnel.harness.orchestrate.labs.namespaces import environment
from windtunnel.harness.orchestrate.processes import process
from windtunnel.harness.orchestrate.processes.process import CleanupWatchdog
from windtunnel.harness.orchestrate.run.simulation import NAME
from windtunnel.harness.orchestrate.teardown import clean, cleanup_watchdog
from windtunnel.harness.orchestrate.teardown.state import LabState
from windtunnel.harness.topology import addressing

RECORDS = ".lab"


def run_swarm(arguments: Sequence[str], out: Path) -> int:
    """Run the simulator's `swarm` command with these arguments. Returns its exit code.

    `out` is where runs go; what the swarm changes on the machine is noted there.
    """
    run_id = f"swarm/{os.getpid()}-{time.time_ns()}"
    record = LabState(token=addressing.token(run_id), run_id=run_id, kind=NAME)
    labs = out.resolve() / RECORDS
    path = record.write(labs)
    guard = CleanupWatchdog(
        [sys.executable, "-m", cleanup_watchdog.__name__, str(path)],
        env=environment(),
        cwd=ROOT,
    )
    argv = [sys.executable, "-m", "windtunnel.harness.simulator", "swarm", *arguments]
    argv += ["--memory", str(record.memory_directory())]
    try:
        return process.pass_through(process.dying_with_us(argv), env=environment())
    finally:
        clean.remove(record, labs)
        guard.release(cleanup_watchdog.DONE)
