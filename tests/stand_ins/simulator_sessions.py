"""Simulator processes that several tests share, one for each set of hosts.

A process needs longer to import its modules and to load its kernels than most short scenarios take.
"""

import itertools
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from windtunnel.harness.artifact.run_dir import RunDir
from windtunnel.harness.orchestrate.cancel import Cancellation
from windtunnel.harness.orchestrate.run.one_run import RunResult, execute_run
from windtunnel.harness.orchestrate.run.payload import default_payload
from windtunnel.harness.orchestrate.run.run_spec import RunSpec
from windtunnel.harness.orchestrate.run.simulator_session import SimulatorSession
from windtunnel.harness.orchestrate.subjects.subject import OURS_WITH_OURS
from windtunnel.harness.scenario.loader import load_scenario

Simulate = Callable[[Path], tuple[RunResult, RunDir]]
"""Runs and judges a scenario file with its root seed. Returns the result and the run folder."""


@contextmanager
def simulator_sessions(folder: Path) -> Iterator[Simulate]:
    """Provide a function that runs scenario files. The processes end with the context."""
    payload = default_payload(folder / "payload")
    numbers = itertools.count(1)
    sessions: dict[tuple[str, ...], SimulatorSession] = {}
    with ExitStack() as closing:

        def simulate(file: Path) -> tuple[RunResult, RunDir]:
            scenario = load_scenario(file)
            run_id = f"run-{next(numbers)}"
            spec = RunSpec(
                run_id=run_id,
                scenario=scenario,
                scenario_file=file,
                seed=scenario.seeds.root,
                payload=payload,
                folder=RunDir(folder / run_id),
                fidelity="sim",
                command=(),
                tested=OURS_WITH_OURS,
                sabotage="",
                runs=folder,
            )
            hosts = tuple(scenario.network.hosts)
            if hosts not in sessions:
                sessions[hosts] = closing.enter_context(SimulatorSession(spec))
            found: list[RunResult] = []
            with Cancellation() as cancellation:
                begin = sessions[hosts].begin
                execute_run(spec, lambda **_: None, cancellation, found.append, begin)
            return found[0], spec.folder

        yield simulate
