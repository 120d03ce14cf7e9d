"""A run that failed, shrunk: found again first, then made less, then written down.

    run folder --again, with its decisions--> the same check violated? --steps--> shrunk.yaml
               --or by its rules and seed-->

    <out>/shrink-<id>/  shrunk.yaml  shrink.json  run/    the last is the failing run of that file

Ctrl-C ends the steps; the best that was found until then is written all the same.
"""

from __future__ import annotations

import shlex
import time
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path

import numpy as np

from windtunnel.harness.artifact.documents import write_document
from windtunnel.harness.artifact.middlebox.decision import DECISION, read_repeatable
from windtunnel.harness.artifact.records import Records
from windtunnel.harness.artifact.run.manifest import Manifest
from windtunnel.harness.artifact.run.simulation import Simulation
from windtunnel.harness.artifact.run_dir import RunDir
from windtunnel.harness.orchestrate.cancel import Cancellation, Cancelled
from windtunnel.harness.orchestrate.labs import labs
from windtunnel.harness.orchestrate.run.run_spec import RunSpec
from windtunnel.harness.orchestrate.suite.runner import anywhere
from windtunnel.harness.replay.document import read_document
from windtunnel.harness.replay.rules import range_count
from windtunnel.harness.replay.shrink import Origin, Shrinking
from windtunnel.harness.replay.trial import Candidate, TrialError, Trials
from windtunnel.harness.scenario.loader import load_scenario
from windtunnel.harness.scenario.schema.model import Scenario

SCHEMA = "windtunnel-shrink/1"
SCENARIO = "shrunk.yaml"
DOCUMENT = "shrink.json"
PATIENCE_NS = 500_000_000
"""Beyond half as much again as undisturbed streams take, in simulated time."""
REPEATS = 3
"""Runs of a candidate where equal cases may differ; most of them decide."""


class NotFoundAgain(Exception):
    """The run's violation did not come again; the text says what came instead."""


@dataclass(frozen=True)
class Wish:
    """What is to be shrunk, and where."""

    folder: RunDir
    """Of the run that failed."""

    manifest: Manifest
    checks: tuple[str, ...]
    """That it violated, the one to be looked for first; any will do when there is none."""

    order: RunSpec
    """Of a trial, complete but for the candidate; its folder is `run` of a new folder."""

    repeats: int = REPEATS
    options: tuple[str, ...] = ()
    """What a command needs beside scenario, fidelity and seed to make the same run."""

    @property
    def home(self) -> Path:
        return self.order.folder.path.parent


@dataclass
class Shrunk:
    """What came of it."""

    check: str
    finding: str
    """What the check says of the failing run."""

    scenario: str
    """Path of the file."""

    run: str
    """Path of its failing run's folder; empty when nobody made it."""

    command: list[str]
    is_sure: bool
    """The file alone was seen to fail; else the decisions of `run` are needed."""

    is_interrupted: bool
    ranges: int
    rules: int
    decisions_before: int
    bytes_before: int
    bytes_after: int
    streams_before: int
    streams_after: int
    runs: int
    "How many were made."
    first_run_s: float
    "Until the violation had come again, with what had to be compiled for that."
    steps_s: float
    fidelity: str
    acts: list[str] = field(default_factory=list)

    def write(self, path: Path) -> None:
        write_document(path, {"schema": SCHEMA, **asdict(self)})


def shrink_run(wish: Wish, tell: Callable[[str], None]) -> tuple[Shrunk, int | None]:
    """Shrink a run. Returns what came of it, and the exit code that a signal asks for, if one did.

    Raises NotFoundAgain when the run's violation does not come again at this fidelity, TrialError
    when no trial can be made, ScenarioError when the run's scenario cannot be read.
    """
    began_s = time.monotonic()
    with Cancellation() as cancellation, Trials(wish.order, cancellation, wish.repeats) as trials:
        found = _found_again(wish, trials, tell)
        check, finding = found.check, found.finding
        first_s = time.monotonic() - began_s
        asked: int | None = None
        finding_of_best = ""
        shrinking = _shrinking(wish, trials, found, tell)
        try:
            for shrinking in _steps(wish, trials, found, tell):
                shrinking.run()
            finding_of_best = _last_run(wish, trials, shrinking, check)
        except Cancelled as cancelled:
            asked = cancelled.exit_code
        except TrialError as error:
            # Of one candidate; what was found before it stands.
            tell(f"ended early: {error}")
        with cancellation.shielded():
            shrunk = _written(wish, trials, shrinking, check, finding_of_best or finding)
            shrunk.is_interrupted = asked is not None
            shrunk.run = str(trials.last.path) if finding_of_best else ""
            shrunk.first_run_s = round(first_s, 1)
            shrunk.steps_s = round(time.monotonic() - began_s - first_s, 1)
            shrunk.write(wish.home / DOCUMENT)
    return shrunk, asked


@dataclass(frozen=True)
class _Found:
    """The violation that came again, and with what."""

    check: str
    finding: str
    scenario: Scenario
    decisions: Records


def _found_again(wish: Wish, trials: Trials, tell: Callable[[str], None]) -> _Found:
    """The check that is violated again: without faults, with those recorded, or by the rules.

    A stream that is stuck is waited for until the budget is over, so a shorter one is tried first.
    """
    scenario = anywhere(load_scenario(wish.folder.scenario))
    recorded = read_repeatable(wish.folder.decisions)
    nothing = np.zeros(0, dtype=DECISION)
    hasty = scenario
    ways = [
        ("with its decisions", recorded),
        ("by its rules and seed", None),
    ]
    if wish.order.fidelity == labs.SIM:
        ways.insert(0, ("with no fault at all", nothing))
    seen: dict[str, str] = {}
    for what, decisions in ways:
        for patient in [scenario] if hasty is scenario else [hasty, scenario]:
            tell(f"the run again, {what}, in {wish.order.fidelity}")
            found = trials.violated(Candidate(patient, decisions))
            check = next((each for each in wish.checks or found if each in found), None)
            if check is not None:
                tell(f"violated again: {check}: {found[check]}")
                made = trials.decisions() if decisions is None else decisions
                return _Found(check, found[check], patient, made)
            seen |= found
            if decisions is nothing:
                hasty = _hasty(trials, scenario)
                break
    wanted = ", ".join(wish.checks) or "any check"
    other = f"; violated was {', '.join(seen)}" if seen else "; nothing was violated"
    raise NotFoundAgain(f"{wanted}: not violated again in {wish.order.fidelity}{other}")


def _hasty(trials: Trials, scenario: Scenario) -> Scenario:
    """A scenario whose streams have the time that they took when nothing disturbed them, and more.

    The time of the last run; the scenario itself where they did not come to their end in it.
    """
    told = Simulation.read(trials.last.simulation)
    if told is None or told.overran:
        return scenario
    wall_ns = told.simulated_ns * 3 // 2 + PATIENCE_NS
    return _with_wall(scenario, wall_ns) if wall_ns < scenario.budget.wall_ns else scenario


def _with_wall(scenario: Scenario, wall_ns: int) -> Scenario:
    budget = scenario.budget.model_copy(update={"wall_ns": wall_ns})
    return scenario.model_copy(update={"budget": budget})


def _steps(
    wish: Wish, trials: Trials, found: _Found, tell: Callable[[str], None]
) -> Iterator[Shrinking]:
    """The search; and once more with all patience, if what was found hastily is no failure."""
    hasty = _shrinking(wish, trials, found, tell)
    yield hasty
    full = load_scenario(wish.folder.scenario).budget.wall_ns
    if not hasty.is_sure and found.scenario.budget.wall_ns < full:
        tell("once more, with all the time that the scenario allows")
        scenario = _with_wall(found.scenario, full)
        yield _shrinking(wish, trials, replace(found, scenario=scenario), tell)


def _shrinking(wish: Wish, trials: Trials, found: _Found, tell: Callable[[str], None]) -> Shrinking:
    name, check, seed = found.scenario.name, found.check, wish.order.seed
    fidelities = dict.fromkeys((wish.order.fidelity, wish.manifest.fidelity))
    origin = Origin(
        document=read_document(wish.folder.scenario),
        scenario=found.scenario,
        decisions=found.decisions,
        seed=seed,
        check=check,
        fidelity=tuple(fidelities),
        about=f"The least of {name} with seed {seed} that still violates {check}.",
        header=(
            "Intent",
            f"  What is left of {name}, seed {seed}, when all is taken away",
            f"  without which {check} is violated all the same.",
            "",
            "Again",
            f"  {shlex.join(_command(wish))}",
        ),
    )
    return Shrinking(
        origin,
        fails=lambda candidate: trials.fails(candidate, check),
        tell=lambda text: tell(f"{text}  ({trials.count} runs)"),
    )


def _last_run(wish: Wish, trials: Trials, shrinking: Shrinking, check: str) -> str:
    """Make the best candidate's run once more, to be looked at; what the check says of it."""
    file = wish.home / SCENARIO
    file.write_text(shrinking.text(), encoding="utf-8")
    if shrinking.is_sure:
        trials.use_file(file)
    return trials.violated(shrinking.best).get(check, "")


def _written(wish: Wish, trials: Trials, shrinking: Shrinking, check: str, finding: str) -> Shrunk:
    rules = shrinking.written_rules()
    file = wish.home / SCENARIO
    file.write_text(shrinking.text(), encoding="utf-8")
    before, after = shrinking.origin.scenario.traffic, shrinking.best.scenario.traffic
    return Shrunk(
        check=check,
        finding=finding,
        scenario=str(file),
        run="",
        command=_command(wish),
        is_sure=shrinking.is_sure,
        is_interrupted=False,
        ranges=range_count(rules),
        rules=len(rules),
        decisions_before=len(shrinking.origin.decisions),
        bytes_before=sum(each.content.total_bytes for each in before),
        bytes_after=sum(each.content.total_bytes for each in after),
        streams_before=len(before),
        streams_after=len(after),
        runs=trials.count,
        first_run_s=0.0,
        steps_s=0.0,
        fidelity=wish.order.fidelity,
        acts=[str(next(iter(each["act"]))) for each in rules],
    )


def _command(wish: Wish) -> list[str]:
    file, fidelity = str(wish.home / SCENARIO), wish.order.fidelity
    return ["windtunnel", "run", file, "--fidelity", fidelity, *wish.options]
