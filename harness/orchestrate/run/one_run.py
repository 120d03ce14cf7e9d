"""One run from its order to its verdict: lab, phases, judge, and every way out tidies up.

    order --> lab up, phases, lab down --> run.json --judge--> verdict.json

Whatever happens, nothing can interrupt the tidying-up: a manifest is left, and an empty machine.
Refuses to know the other runs of a suite, and in which process it is made.
"""

from __future__ import annotations

import time
import traceback
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from windtunnel.harness.artifact.run_dir import RunDir
from windtunnel.harness.orchestrate.cancel import Cancellation, Cancelled
from windtunnel.harness.orchestrate.event import OnEvent, RunEvent
from windtunnel.harness.orchestrate.lab import Lab, LabError
from windtunnel.harness.orchestrate.labs import labs
from windtunnel.harness.orchestrate.processes.watch import RunFailed
from windtunnel.harness.orchestrate.run import archives
from windtunnel.harness.orchestrate.run.fault_progress import Weather
from windtunnel.harness.orchestrate.run.phases import Run, Tell
from windtunnel.harness.orchestrate.run.run_spec import RunSpec
from windtunnel.harness.orchestrate.run.simulation import SimulatedRun
from windtunnel.harness.orchestrate.run.traffic import Overran, Unsupported
from windtunnel.harness.scenario.schema.channel import parse_channel
from windtunnel.harness.scenario.validation.impairment_validation import shared_problems
from windtunnel.harness.topology import model as topology
from windtunnel.harness.verdict.judge import judge

CANCELLED = "CANCELLED"
RECORDS = ".lab"


@dataclass(frozen=True)
class RunResult:
    """What came of a run."""

    outcome: str
    """FAIL, HARNESS, INCONCLUSIVE, UNSUPPORTED, PASS or CANCELLED."""

    reason: str
    started_ns: int
    ended_ns: int


Begin = Callable[[RunSpec, Tell], tuple[Lab, Run]]
"""Gives an order its lab, not yet up, and its run."""


def begin_alone(order: RunSpec, tell: Tell) -> tuple[Lab, Run]:
    """A lab and processes of its own for a run."""
    lab = lab_of(order)
    return lab, (SimulatedRun if order.fidelity == labs.SIM else Run)(order, lab, tell)


def make_run(
    order: RunSpec,
    tell: Tell,
    cancellation: Cancellation,
    on_made: Callable[[RunResult], None],
    begin: Begin = begin_alone,
) -> None:
    """Make one run and judge it; raises Cancelled after all is tidied up and told."""
    started_ns = time.time_ns()
    outcome, reason = CANCELLED, "cancelled before its end"
    try:
        order.folder.make()
        tell(kind="run")
        _walk(order, tell, cancellation, begin)
        tell(kind="phase", phase="judge")
        outcome, reason = _judged(order.folder)
    finally:
        on_made(RunResult(outcome, reason, started_ns, time.time_ns()))


def _walk(order: RunSpec, tell: Tell, cancellation: Cancellation, begin: Begin) -> None:
    """Walk one run's phases, leaving a manifest and an empty machine whatever happens."""
    lab, run = begin(order, tell)
    hurry = True
    try:
        if order.fidelity not in order.scenario.fidelity:
            raise Unsupported(f"the scenario is not made for fidelity {order.fidelity}")
        impossible = next(shared_problems(order.scenario.network.all_links), None)
        if impossible is not None:
            raise Unsupported(impossible.text)
        if order.tested.missing:
            raise Unsupported(order.tested.missing)
        _require_timeouts(order)
        archives.require(order)
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


def _require_timeouts(order: RunSpec) -> None:
    """Raise Unsupported if a peer cannot be told the time-outs that a scenario asks for."""
    asked = order.scenario.timeouts.model_fields_set
    for each in order.tested:
        if asked and not each.reads_environment:
            text = f"{each.name} takes no time-outs from a scenario: {', '.join(sorted(asked))}"
            raise Unsupported(text)


def lab_of(order: RunSpec) -> Lab:
    """The lab of a run, not yet up."""
    scenario = order.scenario
    laid_out = topology.build(
        order.run_id,
        scenario.network.hosts,
        scenario.network.joined,
        datagram_length_max=max(
            (parse_channel(each.channel).mtu for each in scenario.traffic), default=0
        ),
    )
    return labs.make(order.fidelity, laid_out, records=order.runs / RECORDS, runs=order.runs)


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


def teller(order: RunSpec, index: int, count: int, on_event: OnEvent) -> Tell:
    """Return what makes an event of each thing that a run has to tell."""
    weather = Weather(order.folder, order.scenario.network.hosts)

    def tell(**what: Any) -> None:
        if what["kind"] == "progress":
            weather.look()
        on_event(
            RunEvent(
                run_index=index,
                run_count=count,
                scenario=order.scenario.name,
                seed=order.seed,
                pair=order.tested.name,
                drop_count=weather.drop_count,
                nak_count=weather.nak_count,
                **what,
            )
        )

    return tell
