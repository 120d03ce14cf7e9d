"""From a list of scenario files to the end of a suite.

    files --load--> planned runs --SuiteUnderWay--> SuiteResult

Nothing is started, and nothing is written, before all scenarios are known to be sound and this
machine is known to be able to make a run. Refuses to know what happens in a run.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from harness.orchestrate import labs, payload, subject
from harness.orchestrate.cancel import Cancellation, Cancelled
from harness.orchestrate.event import OnEvent, ignore
from harness.orchestrate.lab import LabError
from harness.orchestrate.payload import Payload
from harness.orchestrate.phases import Fidelity
from harness.orchestrate.subject import OURS, Subject
from harness.orchestrate.suite import Planned, RunResult, SuiteResult, SuiteUnderWay
from harness.scenario.case import run_seeds
from harness.scenario.loader import load_scenario
from harness.scenario.model import Backend, Scenario

__all__ = ["RunResult", "SuiteResult", "plan", "run_suite"]

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
    if backend is None or not scenario.network.link.weather:
        return scenario
    link = scenario.network.link.model_copy(update={"backend": backend})
    network = scenario.network.model_copy(update={"link": link})
    return scenario.model_copy(update={"network": network})


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
    tested: Subject = OURS,
    backend: Backend | None = None,
) -> SuiteResult:
    """Make and judge every run of every scenario.

    Raises ScenarioError (a file is wrong) or LabError (this machine cannot make any run) before
    anything is started. Afterwards every outcome is in the result, and a signal ends the suite
    with exit code 128 + its number; LabError then only if the suite folder cannot be written.
    """
    if sabotage is not None and sabotage not in subject.SABOTAGES:
        raise ValueError(f"sabotage {sabotage!r}: expected one of {', '.join(subject.SABOTAGES)}")
    planned = plan(scenarios, seed, seeds, backend)
    labs.require(fidelity)
    out = out.resolve()
    try:
        sent = _payload(out / PAYLOAD_STORE, payload_file)
        suite = SuiteUnderWay(out, fidelity, planned, sent, on_event, sabotage or "", tested)
        _make_runs(suite, len(planned))
    except OSError as error:
        raise LabError(f"{error.filename or out}: {error.strerror}") from error
    return suite.result


def _make_runs(suite: SuiteUnderWay, count: int) -> None:
    with Cancellation() as cancellation:
        try:
            for index in range(count):
                suite.make_run(index, cancellation)
        except Cancelled as cancelled:
            suite.close(cancelled)
        else:
            suite.close()


def _payload(store: Path, file: Path | None) -> Payload:
    return payload.default_payload(store) if file is None else payload.file_payload(store, file)
