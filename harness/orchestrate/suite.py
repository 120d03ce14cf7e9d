"""A suite under way: one run after the other through its lab, its phases and its judge.

    planned run --order--> lab up, phases, lab down --> run.json --judge--> verdict.json
                                                                  |
                                                              suite.json

Every way out of a run passes through the same tidying-up, which nothing can interrupt. Refuses to
know which scenarios were asked for and who looks on.
"""

from __future__ import annotations

import os
import sys
import time
import traceback
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from harness.artifact.run_dir import RunDir, SuiteDir, new_suite_id
from harness.artifact.suite import Suite, SuiteRun
from harness.orchestrate import labs
from harness.orchestrate.cancel import Cancellation, Cancelled
from harness.orchestrate.event import OnEvent, RunEvent
from harness.orchestrate.lab import Lab, LabError
from harness.orchestrate.payload import Payload
from harness.orchestrate.phases import Fidelity, Order, Run
from harness.orchestrate.subject import Subject
from harness.orchestrate.traffic import Overran, Unsupported
from harness.orchestrate.watch import RunFailed
from harness.orchestrate.weather import Weather
from harness.scenario.channel import parse_channel
from harness.scenario.model import Scenario
from harness.topology import model as topology
from harness.uml.boot import INSIDE_VARIABLE
from harness.verdict.judge import judge
from harness.verdict.outcome import Outcome, exit_code, merge

CANCELLED = "CANCELLED"
RECORDS = ".lab"


@dataclass(frozen=True)
class RunResult:
    """How one run ended."""

    scenario: str
    seed: int
    run_dir: Path
    outcome: str
    """FAIL, HARNESS, INCONCLUSIVE, UNSUPPORTED, PASS or CANCELLED."""

    reason: str


@dataclass
class SuiteResult:
    """How a suite ended: the exit code is the worst of its runs', or says who cancelled it."""

    exit_code: int
    suite_dir: Path
    runs: list[RunResult] = field(default_factory=list)


@dataclass(frozen=True)
class Planned:
    """A run that is to be made."""

    scenario: Scenario
    file: Path
    seed: int


class SuiteUnderWay:
    """A suite under way: its folder, its document and what has come of its runs so far."""

    def __init__(
        self,
        out: Path,
        fidelity: Fidelity,
        planned: Sequence[Planned],
        payload: Payload,
        on_event: OnEvent,
        sabotage: str,
        tested: Subject,
    ) -> None:
        self._out = out
        self._fidelity = fidelity
        self._planned = planned
        self._on_event = on_event
        self._sabotage = sabotage
        self._tested = tested
        self._payload = payload
        suite_id = new_suite_id(datetime.now(UTC))
        self._dir = SuiteDir(out / suite_id)
        self._dir.path.mkdir(parents=True)
        self._document = Suite(suite_id, fidelity, list(sys.argv), started_ns=time.time_ns())
        self._document.write(self._dir.document)
        self.result = SuiteResult(exit_code=0, suite_dir=self._dir.path)

    def close(self, cancelled: Cancelled | None = None) -> None:
        """Write the suite's end: the worst outcome gives the exit code, or who cancelled it."""
        if cancelled is None:
            code = worst_exit_code([run.outcome for run in self.result.runs])
        else:
            code = cancelled.exit_code
        self.result.exit_code = self._document.exit_code = code
        self._document.ended_ns = time.time_ns()
        self._document.write(self._dir.document)

    def make_run(self, index: int, cancellation: Cancellation) -> None:
        """Make one run and judge it; raises Cancelled after all is tidied up."""
        planned = self._planned[index]
        started_ns = time.time_ns()
        folder = self._dir.run(planned.scenario.name, planned.seed)
        folder.make()
        tell = self._teller(index, folder)
        tell(kind="run")
        outcome, reason = CANCELLED, "cancelled before its end"
        try:
            self._walk(planned, folder, tell, cancellation)
            tell(kind="phase", phase="judge")
            outcome, reason = _judged(folder)
        finally:
            name, seed = planned.scenario.name, planned.seed
            self.result.runs.append(RunResult(name, seed, folder.path, outcome, reason))
            self._document.runs.append(
                SuiteRun(folder.path.name, name, seed, outcome, reason, started_ns, time.time_ns())
            )
            self._document.write(self._dir.document)
            tell(kind="verdict", outcome=outcome, text=reason)

    def _walk(
        self, planned: Planned, folder: RunDir, tell: Any, cancellation: Cancellation
    ) -> None:
        """Walk one run's phases, leaving a manifest and an empty machine whatever happens."""
        order = self._order(planned, folder)
        lab = self._lab(planned.scenario, order.run_id)
        run = Run(order, lab, tell)
        hurry = True
        try:
            if self._fidelity not in planned.scenario.fidelity:
                raise Unsupported(f"the scenario is not made for fidelity {self._fidelity}")
            run.forward()
            hurry = False
            run.manifest.complete = True
        except Unsupported as error:
            run.manifest.unsupported = str(error)
        except Overran as error:
            hurry = False
            run.manifest.overran = str(error)
        except RunFailed as failure:
            hurry = False
            run.stop_because(failure)
        except (LabError, OSError) as error:
            hurry = False
            run.manifest.errors.append(str(error))
        except Exception:
            run.manifest.errors.append(f"defect of the harness: {traceback.format_exc()}")
        except Cancelled as cancelled:
            run.manifest.stopped = str(cancelled)
            raise
        finally:
            with cancellation.shielded():
                _tidy_up(run, lab, hurry=hurry)

    def _order(self, planned: Planned, folder: RunDir) -> Order:
        return Order(
            run_id=f"{self._document.suite_id}/{folder.path.name}",
            scenario=planned.scenario,
            scenario_file=planned.file,
            seed=planned.seed,
            payload=self._payload,
            folder=folder,
            fidelity=self._fidelity,
            command=self._command(planned),
            subject=self._tested,
            sabotage=self._sabotage,
        )

    def _command(self, planned: Planned) -> tuple[str, ...]:
        """Return the command that makes this one run again."""
        command = ["windtunnel", "run", str(planned.file)]
        command += ["--fidelity", self._fidelity, "--seed", str(planned.seed)]
        if planned.scenario.network.link.weather:
            command += ["--backend", planned.scenario.network.link.backend]
        if INSIDE_VARIABLE in os.environ:
            command += ["--kernel", os.environ[INSIDE_VARIABLE]]
        if self._payload.source:
            command += ["--payload", self._payload.source]
        if self._sabotage:
            command += ["--sabotage", self._sabotage]
        return tuple(command)

    def _lab(self, scenario: Scenario, run_id: str) -> Lab:
        laid_out = topology.build(
            run_id,
            scenario.network.hosts,
            scenario.network.link.between,
            datagram_length_max=max(
                (parse_channel(each.channel).mtu for each in scenario.traffic), default=0
            ),
        )
        return labs.make(self._fidelity, laid_out, records=self._out / RECORDS, runs=self._out)

    def _teller(self, index: int, folder: RunDir) -> Any:
        planned = self._planned[index]
        weather = Weather(folder, planned.scenario.network.hosts)

        def tell(**what: Any) -> None:
            if what["kind"] == "progress":
                weather.look()
            self._on_event(
                RunEvent(
                    run_index=index,
                    run_count=len(self._planned),
                    scenario=planned.scenario.name,
                    seed=planned.seed,
                    drop_count=weather.drop_count,
                    nak_count=weather.nak_count,
                    **what,
                )
            )

        return tell


def _tidy_up(run: Run, lab: Lab, *, hurry: bool) -> None:
    """Collect the evidence, take the lab down, and write the manifest even if one of them fails."""
    try:
        run.back(hurry=hurry)
    except (LabError, OSError) as error:
        run.manifest.complete = False
        run.manifest.errors.append(str(error))
    finally:
        try:
            run.take_down()
        except LabError as error:
            run.manifest.errors.append(str(error))
        run.manifest.write(run.order.folder.manifest)


def _judged(folder: RunDir) -> tuple[str, str]:
    """Judge a run folder and return the outcome's name and the reason in one line."""
    verdict = judge(folder.path)
    return str(verdict.outcome), verdict.reason


def worst_exit_code(outcomes: Sequence[str]) -> int:
    """Return the exit code of a suite whose runs ended so."""
    return exit_code(merge([Outcome[name] for name in outcomes if name != CANCELLED]))
