"""Executes programs that need an in-memory directory, such as the simulator's `swarm` command.

A program runs in a separate process, which prints to the caller's stdout and stderr.
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Sequence
from pathlib import Path

from windtunnel.harness.installation import ROOT
from windtunnel.harness.orchestrate.fidelity import SIM
from windtunnel.harness.orchestrate.labs.namespaces import environment
from windtunnel.harness.orchestrate.processes import process
from windtunnel.harness.orchestrate.processes.process import CleanupWatchdog
from windtunnel.harness.orchestrate.teardown import clean, cleanup_watchdog
from windtunnel.harness.orchestrate.teardown.state import RECORDS, LabState
from windtunnel.harness.topology import addressing


def run_swarm(arguments: Sequence[str], out: Path) -> int:
    """Run the simulator's `swarm` command with these arguments. Returns its exit code."""
    return run_program("windtunnel.harness.simulator", ["swarm", *arguments], out)


def run_program(module: str, arguments: Sequence[str], out: Path) -> int:
    """Run a module in a process that has an in-memory directory. Returns its exit code.

    `out` is the runs folder. It also contains the record of what the program changes on the
    machine.
    """
    run_id = f"{module}/{os.getpid()}-{time.time_ns()}"
    record = LabState(token=addressing.token(run_id), run_id=run_id, kind=SIM)
    labs = out.resolve() / RECORDS
    path = record.write(labs)
    watchdog = CleanupWatchdog(
        [sys.executable, "-m", cleanup_watchdog.__name__, str(path)],
        env=environment(),
        cwd=ROOT,
    )
    argv = [sys.executable, "-m", module, *arguments]
    argv += ["--memory", str(record.memory_directory())]
    try:
        return process.run_in_foreground(process.with_parent_death_signal(argv), env=environment())
    finally:
        clean.remove(record, labs)
        watchdog.release(cleanup_watchdog.DONE)
