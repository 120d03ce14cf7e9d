"""Many runs from one process, for those who make one after the other and wait for each.

    (case, run folder, sabotage) --FD--> a run --FD--> exit code         until the other end closes

What a run prints goes into its folder's log, as that of a process of its own would. Kernels are
loaded once. Messages are pickled: both ends are the same program, and nobody else can reach the
socket.
"""

from __future__ import annotations

import contextlib
import traceback
from multiprocessing.connection import Connection
from pathlib import Path

from windtunnel.harness.artifact.run_dir import RunDir
from windtunnel.harness.scenario.resolved.case import Case
from windtunnel.harness.simulator.run_case import Rehearsal, Unsupported

HARNESS = 3
UNSUPPORTED = 127


def serve(descriptor: int, memory: Path) -> None:
    """Make runs until the other end closes; `memory` is where the drivers' files go."""
    with contextlib.suppress(EOFError, OSError), Connection(descriptor) as connection:
        while True:
            case, out, sabotage = connection.recv()
            connection.send(make_run(Path(case), RunDir(Path(out)), memory, sabotage))


def make_run(case: Path, folder: RunDir, memory: Path, sabotage: str) -> int:
    """Make one run. Returns its exit code, as `run` of this program has it."""
    with (
        folder.simulator_log.open("a", encoding="utf-8") as log,
        contextlib.redirect_stdout(log),
        contextlib.redirect_stderr(log),
    ):
        try:
            return Rehearsal(Case.read(case), folder, memory, sabotage).run()
        except Unsupported as error:
            print(f"simulator: {error}")
            return UNSUPPORTED
        except Exception:
            traceback.print_exc()
            return HARNESS
