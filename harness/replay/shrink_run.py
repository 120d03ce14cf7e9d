"""Shrinks a failed run: reproduces the violation, reduces the run, and writes a minimal scenario.

    run folder --again, with its decisions--> the same check violated? --steps--> shrunk.yaml
               --or by its rules and seed-->

    <out>/shrink-<id>/  shrunk.yaml  shrink.json  run/ (the failing run of shrunk.yaml)

Ctrl-C ends the steps. The best candidate found so far is written in any case.
"""

from __future__ import annotations

import shlex
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import ClassVar

import numpy as np

from windtunnel.harness.artifact.documents import StoredDocument
from windtunnel.harness.artifact.middlebox.decision import DECISION, read_replayable
from windtunnel.harness.artifact.noun_form import noun_for
from windtunnel.harness.artifact.records import Records
from windtunnel.harness.artifact.run.manifest import Manifest
from windtunnel.harness.artifact.run.simulation import Simulation
from windtunnel.harness.artifact.run_dir import RunDir
from windtunnel.harness.orchestrate.cancel import Cancellation, Cancelled
from windtunnel.harness.orchestrate.fidelity import SIM
from windtunnel.harness.orchestrate.run.run_spec import RunSpec
from windtunnel.harness.orchestrate.suite.runner import with_all_fidelities
from windtunnel.harness.replay.document import read_document
from windtunnel.harness.replay.rules import range_count
from windtunnel.harness.replay.shrink import Origin, Shrinking
from windtunnel.harness.replay.trial import Candidate, TrialError, Trials
from windtunnel.harness.scenario.loader import load_scenario
from windtunnel.harness.scenario.schema.model import Scenario

SCENARIO = "shrunk.yaml"
DOCUMENT = "shrink.json"
BUDGET_MARGIN_NS = 500_000_000
"""Margin for the short time budget, added to 1.5 times the simulated time of a run without
faults.
"""
REPEATS = 3
"""Number of runs per candidate if equal runs can have different results. The majority decides."""


class NotReproduced(Exception):
    """Raised if the run's violation was not reproduced. The message lists the violations found
    instead.
    """


@dataclass(frozen=True)
class ShrinkSpec:
    """What to shrink, and how: the failed run, the checks that it violated, and the trial runs."""

    folder: RunDir
    """Folder of the run that failed."""

    manifest: Manifest
    checks: tuple[str, ...]
    """The checks that the run violated, in order of preference. If empty, any violated check is
    accepted.
    """

    order: RunSpec
    """The specification of trial runs, in which each candidate's scenario is inserted. Trials run
    in the subfolder `run` of a new folder.
    """

    repeats: int = REPEATS
    options: tuple[str, ...] = ()
    """Additional options for the command that repeats the run, after scenario, fidelity and
    seed.
    """

    @property
    def home(self) -> Path:
        return self.order.folder.path.parent


@dataclass
class Shrunk(StoredDocument):
    """The result of shrinking a run: the violated check, the minimal scenario, and the sizes before
    and after.
    """

    SCHEMA: ClassVar[str] = "windtunnel-shrink/1"

    check: str
    finding: str
    """The check's finding in the failing run."""

    scenario: str
    """Path of the scenario file."""

    run: str
    """Path of the failing run's folder, or empty if the minimal scenario has not been run."""

    command: list[str]
    is_sure: bool
    """Whether a run of the scenario file alone fails. Otherwise, the failure also needs the
    decisions in the `run` folder.
    """

    is_interrupted: bool
    ranges: int
    rules: int
    decisions_before: int
    """Number of decisions in the run that was shrunk, also if it fails without any of them."""

    bytes_before: int
    bytes_after: int
    streams_before: int
    streams_after: int
    runs: int
    """Number of runs executed to shrink the run."""
    first_run_s: float
    """Seconds until the violation was reproduced, including compilation."""
    steps_s: float
    fidelity: str
    acts: list[str] = field(default_factory=list)


def shrink_run(spec: ShrinkSpec, report: Callable[[str], None]) -> tuple[Shrunk, int | None]:
    """Shrink a run. Returns the result, and the exit code for a received signal or None.

    Raises NotReproduced if the run's violation cannot be reproduced at this fidelity level,
    TrialError if no trial can be run, and ScenarioError if the run's scenario cannot be read.
    """
    began_s = time.monotonic()
    with Cancellation() as cancellation, Trials(spec.order, cancellation, spec.repeats) as trials:
        found = _reproduce(spec, trials, report)
        check, finding = found.check, found.finding
        first_s = time.monotonic() - began_s
        exit_code: int | None = None
        finding_of_best = ""
        shrinking = _shrinking(spec, trials, found, report)
        try:
            for shrinking in _steps(spec, trials, found, report):
                shrinking.run()
            finding_of_best = _last_run(spec, trials, shrinking, check)
        except Cancelled as cancelled:
            exit_code = cancelled.exit_code
        except TrialError as error:
            # The error concerns one candidate. Earlier results remain valid.
            report(f"shrinking ended early: {error}")
        with cancellation.shielded():
            shrunk = _written(spec, trials, shrinking, found, finding_of_best or finding)
            shrunk.is_interrupted = exit_code is not None
            shrunk.run = str(trials.last.path) if finding_of_best else ""
            shrunk.first_run_s = round(first_s, 1)
            shrunk.steps_s = round(time.monotonic() - began_s - first_s, 1)
            shrunk.write(spec.home / DOCUMENT)
    return shrunk, exit_code


@dataclass(frozen=True)
class _Reproduced:
    """A violation that was reproduced: the check, its finding, and the scenario and decisions that
    lead to it.
    """

    check: str
    finding: str
    scenario: Scenario
    decisions: Records

    recorded: int
    """Number of decisions that the run itself recorded."""


def _reproduce(spec: ShrinkSpec, trials: Trials, report: Callable[[str], None]) -> _Reproduced:
    """Reproduce a run's violation. Tries the run without faults (only in the simulator), then with
    the recorded decisions, then with the scenario's rules.

    If a stream stalls, a run takes its whole time budget, so a shorter budget is tried first.
    """
    scenario = with_all_fidelities(load_scenario(spec.folder.scenario))
    recorded = read_replayable(spec.folder.decisions)
    nothing = np.zeros(0, dtype=DECISION)
    short = scenario
    ways = [
        ("with its recorded decisions", recorded),
        ("with its rules and seed", None),
    ]
    if spec.order.fidelity == SIM:
        ways.insert(0, ("without faults", nothing))
    seen: dict[str, str] = {}
    for what, decisions in ways:
        for candidate_scenario in [scenario] if short is scenario else [short, scenario]:
            report(f"repeating the run {what} in {spec.order.fidelity}")
            found = trials.violated(Candidate(candidate_scenario, decisions))
            check = next((each for each in spec.checks or found if each in found), None)
            if check is not None:
                report(f"reproduced: {check}: {found[check]}")
                made = trials.decisions() if decisions is None else decisions
                return _Reproduced(check, found[check], candidate_scenario, made, len(recorded))
            seen |= found
            if decisions is nothing:
                short = _with_short_budget(trials, scenario)
                break
    checks = ", ".join(spec.checks) or "any check"
    other = f"; found violations of {', '.join(seen)}" if seen else "; found no violations"
    raise NotReproduced(
        f"{checks}: the {spec.order.fidelity} reruns did not reproduce the violation{other}"
    )


def _with_short_budget(trials: Trials, scenario: Scenario) -> Scenario:
    """Return the scenario with a short time budget: 1.5 times the last run's duration, plus a
    margin.

    The last run must have been without faults. If its streams did not complete, the scenario is
    returned unchanged.
    """
    simulation = Simulation.read(trials.last.simulation)
    if simulation is None or simulation.overran:
        return scenario
    wall_ns = simulation.simulated_ns * 3 // 2 + BUDGET_MARGIN_NS
    return _with_wall(scenario, wall_ns) if wall_ns < scenario.budget.wall_ns else scenario


def _with_wall(scenario: Scenario, wall_ns: int) -> Scenario:
    budget = scenario.budget.model_copy(update={"wall_ns": wall_ns})
    return scenario.model_copy(update={"budget": budget})


def _steps(
    spec: ShrinkSpec, trials: Trials, found: _Reproduced, report: Callable[[str], None]
) -> Iterator[Shrinking]:
    """Yield a reduction with a short time budget. If its resulting rules alone do not fail, yield
    another one with the full budget.

    The second one is not necessary if a run with the rules found by the first one has failed.
    """
    short = _shrinking(spec, trials, found, report)
    yield short
    full = load_scenario(spec.folder.scenario).budget.wall_ns
    if not short.is_sure and found.scenario.budget.wall_ns < full:
        report("repeating with the scenario's full time budget")
        scenario = _with_wall(found.scenario, full)
        yield _shrinking(spec, trials, replace(found, scenario=scenario), report)


def _shrinking(
    spec: ShrinkSpec, trials: Trials, found: _Reproduced, report: Callable[[str], None]
) -> Shrinking:
    name, check, seed = found.scenario.name, found.check, spec.order.seed
    fidelities = dict.fromkeys((spec.order.fidelity, spec.manifest.fidelity))
    origin = Origin(
        document=read_document(spec.folder.scenario),
        scenario=found.scenario,
        decisions=found.decisions,
        seed=seed,
        check=check,
        fidelity=tuple(fidelities),
        about=f"A minimal version of {name} with seed {seed} that still violates {check}.",
        header=(
            "Intent",
            f"  {name}, seed {seed}, without everything that is not needed",
            f"  to violate {check}.",
            "",
            "Reproduce",
            f"  {shlex.join(_command(spec))}",
        ),
    )
    return Shrinking(
        origin,
        fails=lambda candidate: trials.fails(candidate, check),
        report=lambda text: report(f"{text}  ({trials.count} {noun_for(trials.count, 'run')})"),
    )


def _last_run(spec: ShrinkSpec, trials: Trials, shrinking: Shrinking, check: str) -> str:
    """Run the final scenario once more, so that its run folder is kept. Returns the check's
    finding.
    """
    file = spec.home / SCENARIO
    file.write_text(shrinking.text(), encoding="utf-8")
    if shrinking.is_sure:
        trials.use_file(file)
    return trials.violated(shrinking.best).get(check, "")


def _written(
    spec: ShrinkSpec, trials: Trials, shrinking: Shrinking, found: _Reproduced, finding: str
) -> Shrunk:
    rules = shrinking.written_rules()
    file = spec.home / SCENARIO
    file.write_text(shrinking.text(), encoding="utf-8")
    before, after = shrinking.origin.scenario.traffic, shrinking.best.scenario.traffic
    return Shrunk(
        check=found.check,
        finding=finding,
        scenario=str(file),
        run="",
        command=_command(spec),
        is_sure=shrinking.is_sure,
        is_interrupted=False,
        ranges=range_count(rules),
        rules=len(rules),
        decisions_before=found.recorded,
        bytes_before=sum(each.content.total_bytes for each in before),
        bytes_after=sum(each.content.total_bytes for each in after),
        streams_before=len(before),
        streams_after=len(after),
        runs=trials.count,
        first_run_s=0.0,
        steps_s=0.0,
        fidelity=spec.order.fidelity,
        acts=[str(next(iter(each["act"]))) for each in rules],
    )


def _command(spec: ShrinkSpec) -> list[str]:
    file, fidelity = str(spec.home / SCENARIO), spec.order.fidelity
    return ["windtunnel", "run", file, "--fidelity", fidelity, *spec.options]
