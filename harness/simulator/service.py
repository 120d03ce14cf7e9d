"""Runs many cases (resolved scenarios) in one process, one at a time, for a caller at the other end
of a socket.

    (case, run folder, sabotage, real hosts) --FD--> a run --FD--> exit code    until the end

A run's output goes to the log in its run folder, as if it had its own process. Compiled kernels are
loaded once. Messages are pickled: both ends are the same program, and no other process can reach
the socket.
"""

from __future__ import annotations

import contextlib
import traceback
from collections.abc import Collection
from multiprocessing.connection import Connection
from pathlib import Path

from windtunnel.harness.artifact.run_dir import RunDir
from windtunnel.harness.scenario.resolved.case import Case
from windtunnel.harness.simulator.run_case import CaseRun, Unsupported

HARNESS = 3
UNSUPPORTED = 127


def serve(descriptor: int, memory: Path) -> None:
    """Run cases until the caller closes the socket.

    `memory` is the folder for the drivers' files.
    """
    with contextlib.suppress(EOFError, OSError), Connection(descriptor) as connection:
        while True:
            case, out, sabotage, real = connection.recv()
            connection.send(make_run(Path(case), RunDir(Path(out)), memory, sabotage, real))


def make_run(
    case: Path, folder: RunDir, memory: Path, sabotage: str, real: Collection[str] = ()
) -> int:
    """Run one case. Returns the exit code that the simulator's command `run` would return."""
    with (
        folder.simulator_log.open("a", encoding="utf-8") as log,
        contextlib.redirect_stdout(log),
        contextlib.redirect_stderr(log),
    ):
        try:
            return CaseRun(Case.read(case), folder, memory, sabotage, real).run()
        except Unsupported as error:
            print(f"simulator: {error}")
            return UNSUPPORTED
        except Exception:
            traceback.print_exc()
            return HARNESS
