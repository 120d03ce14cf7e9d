"""Executes a suite, from the scenario files to the result of all runs.

    files --load--> planned runs --suite--> RunSpecs --pool--> SuiteResult

Nothing is started or written until all scenarios are validated and this machine is known to support
all runs.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import get_args

from windtunnel.harness.artifact.suite_dir import new_suite_id
from windtunnel.harness.orchestrate.allowed_commands import (
    require_allowed,
    require_files,
    without_own_checks,
)
from windtunnel.harness.orchestrate.cancel import Cancellation, Cancelled
from windtunnel.harness.orchestrate.event import OnEvent, RunEvent, compile_event, ignore
from windtunnel.harness.orchestrate.fidelity import Fidelity
from windtunnel.harness.orchestrate.lab import LabError
from windtunnel.harness.orchestrate.labs import labs
from windtunnel.harness.orchestrate.run import payload
from windtunnel.harness.orchestrate.run.one_run import RunResult
from windtunnel.harness.orchestrate.run.payload import Payload
from windtunnel.harness.orchestrate.run.run_spec import Replayed, RunSpec
from windtunnel.harness.orchestrate.scenario_file import UNCHANGED, load_all_runnable
from windtunnel.harness.orchestrate.subjects import subject
from windtunnel.harness.orchestrate.subjects.subject import OURS_WITH_OURS, Pair
from windtunnel.harness.orchestrate.suite import pool
from windtunnel.harness.orchestrate.suite.suite import (
    PlannedRun,
    RunningSuite,
    RunSummary,
    SuiteOptions,
    SuiteResult,
)
from windtunnel.harness.scenario.known import KnownFailure
from windtunnel.harness.scenario.loader import ScenarioError
from windtunnel.harness.scenario.resolved.link_case import Backend
from windtunnel.harness.scenario.resolved.resolution import run_seeds
from windtunnel.harness.scenario.schema.model import Scenario

__all__ = ["RunSummary", "SuiteResult", "plan", "run_suite"]

PAYLOAD_STORE = ".payload"


def plan(
    scenarios: Sequence[Path],
    seed: int | None,
    seeds: int | None,
    backend: Backend | None = None,
    receive: Mapping[str, str] = UNCHANGED,
    *,
    allow_commands: bool = False,
    settings: Mapping[str, str] = UNCHANGED,
    has_own_checks: bool = True,
) -> list[PlannedRun]:
    """Load all scenarios and list their runs. Raises ScenarioError if a scenario file is invalid,
    or has applications or own checks without `allow_commands`.

    `backend` overrides the impairment backend that the files specify, `receive` the channel
    parameters of their subscriptions, and `settings` any values, by name. A scenario with a sweep
    has runs of each variant. Without `has_own_checks`, the scenarios' own checks are left out.
    """
    planned = [
        PlannedRun(
            _with_backend(
                each.scenario if has_own_checks else without_own_checks(each.scenario),
                backend,
                path,
            ),
            path,
            run_seed,
            each.settings,
            each.sweep,
            each.text,
        )
        for path in dict.fromkeys(scenarios)
        for each in load_all_runnable(path, receive, settings)
        for run_seed in run_seeds(each.scenario, seed, seeds)
    ]
    scenarios_by_file = {each.file: each.scenario for each in planned}.items()
    if not allow_commands:
        require_allowed(scenarios_by_file)
    require_files(scenarios_by_file)
    return planned


def _with_backend(scenario: Scenario, backend: Backend | None, file: Path) -> Scenario:
    """Return a copy of the scenario that uses a different backend (relay or netem) for its
    impairments. Raises ScenarioError if it cannot.
    """
    if backend is None:
        return scenario
    if backend == "netem" and scenario.changes_links:
        text = "events change links during a run, which only the relay can: omit --backend netem"
        raise ScenarioError([f"{file}: {text}"])
    return scenario.model_copy(update={"network": scenario.network.with_backend(backend)})


def with_all_fidelities(scenario: Scenario) -> Scenario:
    """Return a copy of the scenario that can run at all fidelity levels."""
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
    receive: Mapping[str, str] = UNCHANGED,
    replayed: Replayed | None = None,
    compress: bool = False,
    allow_commands: bool = False,
    settings: Mapping[str, str] = UNCHANGED,
) -> SuiteResult:
    """Execute and judge all runs of all scenarios, up to `jobs` in parallel.

    `compress` compresses the captures of passed runs. `allow_commands` allows the commands of the
    scenarios' applications and own checks. `settings` are values to set in all scenarios, by name.

    `replayed` repeats the decisions of another run, at any fidelity level, without own checks.

    Before anything is started, raises ScenarioError if a file is invalid, or LabError if this
    machine cannot execute a run. Afterwards all outcomes are in the result, and signal N ends the
    suite with exit code 128 + N. LabError is then raised only if the suite folder cannot be
    written.
    """
    if sabotage is not None and sabotage not in subject.SABOTAGES:
        raise ValueError(
            f"unknown sabotage {sabotage!r}: expected one of {', '.join(subject.SABOTAGES)}"
        )
    planned = plan(
        scenarios,
        seed,
        seeds,
        backend,
        receive,
        allow_commands=allow_commands,
        settings=settings,
        has_own_checks=replayed is None,
    )
    if replayed is not None:
        planned = [replace(each, scenario=with_all_fidelities(each.scenario)) for each in planned]
    labs.require_hosts(fidelity, (each.scenario for each in planned))
    labs.require(fidelity, lambda done: on_event(compile_event(done, len(planned))))
    out = out.resolve()
    with writing_to(out):
        sent = payload_of(out / PAYLOAD_STORE, payload_file)
        common = SuiteOptions(
            out,
            fidelity,
            sent,
            sabotage or "",
            tested,
            tuple(known),
            replayed,
            compress,
            allow_commands,
            receive,
        )
        suite = RunningSuite(out / new_suite_id(datetime.now(UTC)), common)
        _execute_runs(suite, [suite.spec(each) for each in planned], jobs, on_event)
    return suite.result


@contextmanager
def writing_to(out: Path) -> Iterator[None]:
    """Context manager that converts errors from writing to a folder to LabError."""
    try:
        yield
    except BrokenPipeError:  # from a callback, which prints
        raise
    except OSError as error:
        raise LabError(f"{error.filename or out}: {error.strerror}") from error


def _execute_runs(
    suite: RunningSuite, specs: Sequence[RunSpec], jobs: int, on_event: OnEvent
) -> None:
    def on_result(index: int, result: RunResult) -> None:
        recorded = suite.record(specs[index], result)
        on_event(
            verdict_event(
                specs, index, replace(result, outcome=recorded.outcome, reason=recorded.reason)
            )
        )

    with Cancellation() as cancellation:
        try:
            pool.execute_runs(
                specs, jobs=jobs, on_event=on_event, on_result=on_result, cancellation=cancellation
            )
        except Cancelled as cancelled:
            suite.close(cancelled)
        else:
            suite.close()


def verdict_event(specs: Sequence[RunSpec], index: int, result: RunResult) -> RunEvent:
    """Return the event that reports the verdict of a run."""
    return RunEvent(
        kind="verdict",
        run_index=index,
        run_count=len(specs),
        scenario=specs[index].scenario.name,
        seed=specs[index].seed,
        pair=specs[index].tested.name,
        outcome=result.outcome,
        text=result.reason,
        run_dir=specs[index].folder.path,
    )


def payload_of(store: Path, file: Path | None) -> Payload:
    """Return the payload for a suite: the given file, or the default payload if `file` is None."""
    return payload.default_payload(store) if file is None else payload.file_payload(store, file)
