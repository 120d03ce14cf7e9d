"""A run that failed, shrunk: found again first, then made less, then written down.

    run folder --again, with its decisions--> the same check violated? --steps--> shrunk.yaml
               --or by its rules and seed-->

    <out>/shrink-<id>/  shrunk.yaml  shrink.json  run/    the last is the failing run of that file

Ctrl-C ends the steps; the best that was found until then is written all the same.
"""

from __future__ import annotations

import shlex
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from pathlib import Path

from harness.artifact.decision import read_repeatable
from harness.artifact.documents import write_document
from harness.artifact.manifest import Manifest
from harness.artifact.records import Records
from harness.artifact.run_dir import RunDir
from harness.orchestrate.cancel import Cancellation, Cancelled
from harness.orchestrate.phases import Order
from harness.orchestrate.runner import anywhere
from harness.replay.document import read_document
from harness.replay.rules import range_count
from harness.replay.shrink import Origin, Shrinking
from harness.replay.trial import Candidate, TrialError, Trials
from harness.scenario.loader import load_scenario

SCHEMA = "windtunnel-shrink/1"
SCENARIO = "shrunk.yaml"
DOCUMENT = "shrink.json"
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

    order: Order
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
        check, finding, decisions = _found_again(wish, trials, tell)
        first_s = time.monotonic() - began_s
        shrinking = _shrinking(wish, trials, check, decisions, tell)
        asked: int | None = None
        finding_of_best = ""
        try:
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


def _found_again(
    wish: Wish, trials: Trials, tell: Callable[[str], None]
) -> tuple[str, str, Records]:
    """The check that is violated again, what it says, and the decisions with which it is."""
    scenario = anywhere(load_scenario(wish.folder.scenario))
    recorded = read_repeatable(wish.folder.decisions)
    seen: dict[str, str] = {}
    for what, candidate in (
        ("with its decisions", Candidate(scenario, recorded)),
        ("by its rules and seed", Candidate(scenario)),
    ):
        tell(f"the run again, {what}, in {wish.order.fidelity}")
        found = trials.violated(candidate)
        check = next((each for each in wish.checks or found if each in found), None)
        if check is not None:
            tell(f"violated again: {check}: {found[check]}")
            decisions = recorded if candidate.decisions is not None else trials.decisions()
            return check, found[check], decisions
        seen |= found
    wanted = ", ".join(wish.checks) or "any check"
    other = f"; violated was {', '.join(seen)}" if seen else "; nothing was violated"
    raise NotFoundAgain(f"{wanted}: not violated again in {wish.order.fidelity}{other}")


def _shrinking(
    wish: Wish, trials: Trials, check: str, decisions: Records, tell: Callable[[str], None]
) -> Shrinking:
    scenario = anywhere(load_scenario(wish.folder.scenario))
    own = wish.manifest.fidelity
    fidelities = dict.fromkeys((wish.order.fidelity, own))
    again = shlex.join(_command(wish))
    origin = Origin(
        document=read_document(wish.folder.scenario),
        scenario=scenario,
        decisions=decisions,
        seed=wish.order.seed,
        check=check,
        fidelity=tuple(fidelities),
        about=(
            f"The least of {scenario.name} with seed {wish.order.seed} that still violates {check}."
        ),
        header=(
            "Intent",
            f"  What is left of {scenario.name}, seed {wish.order.seed}, when all is taken away",
            f"  without which {check} is violated all the same.",
            "",
            "Again",
            f"  {again}",
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
