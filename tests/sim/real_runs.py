"""Runs scenarios on virtual time with real drivers, and judges them.

Scenarios with the same hosts and drivers run in one process, since loading the kernels takes longer
than most of them.
"""

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from windtunnel.harness.artifact.run_dir import RunDir
from windtunnel.harness.orchestrate.cancel import Cancellation
from windtunnel.harness.orchestrate.run.one_run import RunResult, execute_run
from windtunnel.harness.orchestrate.run.payload import default_payload
from windtunnel.harness.orchestrate.run.run_spec import RunSpec
from windtunnel.harness.orchestrate.run.simulator_session import SimulatorSession
from windtunnel.harness.orchestrate.subjects.peers import pair
from windtunnel.harness.scenario.loader import load_scenario

Run = Callable[..., tuple[RunResult, RunDir]]


@contextmanager
def real_runs(folder: Path) -> Iterator[Run]:
    """Yield a function that runs the scenario of a file, with the drivers of two peer names."""
    payload = default_payload(folder / "payload")
    with ExitStack() as closing, Cancellation() as cancellation:
        sessions: dict[tuple[str, ...], SimulatorSession] = {}

        def run(
            file: Path, publisher: str = "pyaeron", subscriber: str = "pyaeron"
        ) -> tuple[RunResult, RunDir]:
            scenario = load_scenario(file)
            # The shared memory is named after the run, while processes of other drivers exist.
            run_id = f"{scenario.name}-{publisher}-{subscriber}"
            spec = RunSpec(
                run_id=run_id,
                scenario=scenario,
                scenario_file=file,
                seed=scenario.seeds.root,
                payload=payload,
                folder=RunDir(folder / file.parent.name / run_id),
                fidelity="sim",
                command=(),
                tested=pair(publisher, subscriber, "sim", folder),
                sabotage="",
                runs=folder,
            )
            key = (publisher, subscriber, *scenario.network.hosts)
            if key not in sessions:
                sessions[key] = closing.enter_context(SimulatorSession(spec))
            found: list[RunResult] = []
            execute_run(spec, lambda **_: None, cancellation, found.append, sessions[key].begin)
            return found[0], spec.folder

        yield run
