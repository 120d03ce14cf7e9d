"""From a list of scenario files to the end of a suite.

    files --load--> planned runs --suite--> orders --pool--> SuiteResult

Nothing is started, and nothing is written, before all scenarios are known to be sound and this
machine is known to be able to make a run. Refuses to know what happens in a run.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import get_args

from windtunnel.harness.artifact.run_dir import new_suite_id
from windtunnel.harness.orchestrate.cancel import Cancellation, Cancelled
from windtunnel.harness.orchestrate.event import OnEvent, RunEvent, ignore
from windtunnel.harness.orchestrate.lab import LabError
from windtunnel.harness.orchestrate.labs import labs
from windtunnel.harness.orchestrate.run import payload
from windtunnel.harness.orchestrate.run.one_run import RunResult
from windtunnel.harness.orchestrate.run.payload import Payload
from windtunnel.harness.orchestrate.run.run_spec import Fidelity, Replayed, RunSpec
from windtunnel.harness.orchestrate.subjects import subject
from windtunnel.harness.orchestrate.subjects.subject import OURS_WITH_OURS, Pair
from windtunnel.harness.orchestrate.suite import pool
from windtunnel.harness.orchestrate.suite.suite import (
    Circumstances,
    Planned,
    RunSummary,
    SuiteResult,
    SuiteUnderWay,
)
from windtunnel.harness.scenario.known import KnownFailure
from windtunnel.harness.scenario.loader import load_scenario
from windtunnel.harness.scenario.resolved.case import run_seeds
from windtunnel.harness.scenario.resolved.link_case import Backend
from windtunnel.harness.scenario.schema.model import Scenario

__all__ = ["RunSummary", "SuiteResult", "plan", "run_suite"]

PAYLOAD_STORE = ".payload"


def plan(
    scenarios: Sequence[Path], seed: int | None, seeds: int | None, backend: Backend | None = None
) -> list[Planned]:
    """Load all scenarios and list their runs; ScenarioError if any file is wrong.

    `backend` delivers the weather of those that have any, whatever their files say.
    """
    loaded = [(path, _with(load_scenario(path), backend)) for path in dict.fromkeys(scenarios)]
    return [
        Planned(scenario, path, each)
        for path, scenario in loaded
        for each in run_seeds(scenario, seed, seeds)
    ]


def _with(scenario: Scenario, backend: Backend | None) -> Scenario:
    """A scenario with another backend for its weather."""
    if backend is None:
        return scenario
    return scenario.model_copy(update={"network": scenario.network.with_backend(backend)})


def anywhere(scenario: Scenario) -> Scenario:
    """A scenario that may be tried at every fidelity, whatever its file says."""
    return scenario.model_copy(update={"fidelity": get_args(Fidelity)})


def run_suite(
    scenarios: Sequence[Path],
    *,
    fidelity: Fidelity = "netns",
    seed: int | None = None,
    seeds: int | None = None,
    payload_file: Path | None = None,
    out: Path = Path("runs"),
    on_event: OnEvent = ignore,
    sabotage: str | None = None,
    tested: Pair = OURS_WITH_OURS,
    jobs: int = 1,
    known: Sequence[KnownFailure] = (),
    backend: Backend | None = None,
    replayed: Replayed | None = None,
) -> SuiteResult:
    """Make and judge every run of every scenario, at most `jobs` of them at once.

    With `replayed` another run's decisions are repeated, and the scenario may run anywhere.

    Raises ScenarioError (a file is wrong) or LabError (this machine cannot make any run) before
    anything is started. Afterwards every outcome is in the result, and a signal ends the suite
    with exit code 128 + its number; LabError then only if the suite folder cannot be written.
    """
    if sabotage is not None and sabotage not in subject.SABOTAGES:
        raise ValueError(f"sabotage {sabotage!r}: expected one of {', '.join(subject.SABOTAGES)}")
    planned = plan(scenarios, seed, seeds, backend)
    if replayed is not None:
        planned = [replace(each, scenario=anywhere(each.scenario)) for each in planned]
    labs.require(fidelity)
    out = out.resolve()
    try:
        sent = payload_of(out / PAYLOAD_STORE, payload_file)
        common = Circumstances(out, fidelity, sent, sabotage or "", tested, tuple(known), replayed)
        suite = SuiteUnderWay(out / new_suite_id(datetime.now(UTC)), common)
        _make_runs(suite, [suite.order(each) for each in planned], jobs, on_event)
    except OSError as error:
        raise LabError(f"{error.filename or out}: {error.strerror}") from error
    return suite.result


def _make_runs(
    suite: SuiteUnderWay, orders: Sequence[RunSpec], jobs: int, on_event: OnEvent
) -> None:
    def on_made(index: int, made: RunResult) -> None:
        noted = suite.note(orders[index], made)
        on_event(
            verdict_event(orders, index, replace(made, outcome=noted.outcome, reason=noted.reason))
        )

    with Cancellation() as cancellation:
        try:
            pool.make_runs(
                orders, jobs=jobs, on_event=on_event, on_made=on_made, cancellation=cancellation
            )
        except Cancelled as cancelled:
            suite.close(cancelled)
        else:
            suite.close()


def verdict_event(orders: Sequence[RunSpec], index: int, made: RunResult) -> RunEvent:
    """Return the last event of a run."""
    return RunEvent(
        kind="verdict",
        run_index=index,
        run_count=len(orders),
        scenario=orders[index].scenario.name,
        seed=orders[index].seed,
        pair=orders[index].tested.name,
        outcome=made.outcome,
        text=made.reason,
    )


def payload_of(store: Path, file: Path | None) -> Payload:
    """Return what is sent: a file that was named, or the archive that every machine has."""
    return payload.default_payload(store) if file is None else payload.file_payload(store, file)
