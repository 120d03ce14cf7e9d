"""Runs with a written mutant, as an exam executes them."""

import threading
from contextlib import closing

from windtunnel.harness.exam import mutated_driver
from windtunnel.harness.exam.mutant import Mutant, chosen, load_all
from windtunnel.harness.exam.worker_run import RUN_LIMIT_S, WorkerRuns


def mutant_of(name: str) -> Mutant:
    (found,) = chosen(load_all(), [name])
    return found


def run_planted(scenario, mutant, folder, fidelity):
    """Run a scenario with a mutant, and return the result."""
    payload = folder / "payload"
    payload.write_bytes(bytes(range(251)) * 1000)
    environment = mutated_driver.prepare(None, fidelity)
    with closing(WorkerRuns(load_all(), {fidelity: environment}, payload)) as runs:
        out = folder / "runs"
        return runs.execute(scenario, mutant, fidelity, out, threading.Event(), 0, RUN_LIMIT_S)
