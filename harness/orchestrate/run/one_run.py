"""Executes one run, from its specification to its verdict: lab, phases, cleanup and judge.

    RunSpec --> lab up, phases, lab down --> run.json --own checks, judge--> verdict.json

The cleanup always runs and cannot be interrupted: it writes the manifest and removes the lab.
"""

from __future__ import annotations

import time
import traceback
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from windtunnel.harness.artifact.compressed_file import compress_file
from windtunnel.harness.artifact.run_dir import RunDir
from windtunnel.harness.orchestrate.cancel import Cancellation, Cancelled
from windtunnel.harness.orchestrate.event import OnEvent, RunEvent
from windtunnel.harness.orchestrate.fidelity import SIM
from windtunnel.harness.orchestrate.lab import Lab, LabError, Unsupported
from windtunnel.harness.orchestrate.labs import labs
from windtunnel.harness.orchestrate.processes.watch import RunFailed
from windtunnel.harness.orchestrate.run import archives, own_checks
from windtunnel.harness.orchestrate.run.fault_progress import FaultCounts
from windtunnel.harness.orchestrate.run.phases import Emit, Run
from windtunnel.harness.orchestrate.run.run_spec import RunSpec
from windtunnel.harness.orchestrate.run.simulation import SimulatedRun
from windtunnel.harness.orchestrate.run.traffic import Overran
from windtunnel.harness.orchestrate.teardown.state import RECORDS
from windtunnel.harness.scenario.schema.channel import parse_channel
from windtunnel.harness.scenario.validation.impairment_validation import shared_netem_problems
from windtunnel.harness.topology import model as topology
from windtunnel.harness.verdict.core.outcome import Outcome
from windtunnel.harness.verdict.core.process_error import is_of_limit
from windtunnel.harness.verdict.judge import judge

CANCELLED = "CANCELLED"


@dataclass(frozen=True)
class RunResult:
    """The outcome of a run, the reason, and the start and end times."""

    outcome: str
    """Name of the outcome: FAIL, HARNESS, INCONCLUSIVE, UNSUPPORTED, PASS or CANCELLED."""

    reason: str
    started_ns: int
    ended_ns: int


Begin = Callable[[RunSpec, Emit], Run]
"""A function that takes a specification and returns a run, whose lab is not up yet."""


def begin_isolated(spec: RunSpec, emit: Emit) -> Run:
    """Create a run with a lab of its own, which are independent of all other runs."""
    return (SimulatedRun if spec.fidelity == SIM else Run)(spec, make_lab(spec), emit)


def execute_run(
    spec: RunSpec,
    emit: Emit,
    cancellation: Cancellation,
    on_result: Callable[[RunResult], None],
    begin: Begin = begin_isolated,
) -> None:
    """Execute and judge a run. If the run is cancelled, raises Cancelled after the cleanup and the
    call of `on_result`.
    """
    started_ns = time.time_ns()
    outcome, reason = CANCELLED, "cancelled before its end"
    try:
        spec.folder.make()
        emit(kind="run")
        is_supported = _execute(spec, emit, cancellation, begin)
        if spec.scenario.checks and is_supported:
            emit(kind="phase", phase="own checks")
            own_checks.execute(spec)
        emit(kind="phase", phase="judge")
        outcome, reason = _judge(spec.folder)
        if spec.compress and outcome == Outcome.PASS:
            emit(kind="phase", phase="compress")
            outcome, reason = _compress(spec, emit, reason)
    finally:
        on_result(RunResult(outcome, reason, started_ns, time.time_ns()))


def _execute(spec: RunSpec, emit: Emit, cancellation: Cancellation, begin: Begin) -> bool:
    """Execute the phases of a run. Always write the manifest and remove the lab. Returns whether
    the run is supported.
    """
    run = begin(spec, emit)
    is_fast = True
    try:
        if spec.fidelity not in spec.scenario.fidelity:
            raise Unsupported(_other_fidelity(spec))
        impossible = next(shared_netem_problems(spec.scenario.network.all_links), None)
        if impossible is not None:
            raise Unsupported(impossible.text)
        if spec.tested.missing:
            raise Unsupported(spec.tested.missing)
        _require_driver(spec)
        archives.require(spec)
        run.execute()
        is_fast = False
        run.manifest.complete = True
    except Unsupported as error:
        run.manifest.unsupported = str(error)
    except Overran as error:
        is_fast = False
        run.manifest.overran = str(error)
    except RunFailed as failure:
        is_fast = False
        run.record_failure(failure)
    except (LabError, OSError) as error:
        is_fast = False
        run.manifest.errors.append(str(error))
    except Exception:
        run.manifest.errors.append(f"internal error of the harness: {traceback.format_exc()}")
    except Cancelled as cancelled:
        run.manifest.stopped = str(cancelled)
        raise
    finally:
        with cancellation.shielded():
            _tidy_up(run, is_fast=is_fast)
    return not run.manifest.unsupported


def _other_fidelity(spec: RunSpec) -> str:
    given = spec.scenario.fidelity
    text = f"the scenario does not support fidelity {spec.fidelity}, but {', '.join(given)}: "
    return f"{text}choose one of these, or add {spec.fidelity} to `fidelity` in its file"


def _require_driver(spec: RunSpec) -> None:
    """Raise Unsupported if the scenario sets timeouts or settings that a driver does not read from
    its environment, or has an application that cannot use its driver.
    """
    for application in spec.scenario.applications:
        tested = spec.subject(application.host)
        if application.user and application.driver == "shared" and tested.image:
            text = f"application {application.id}: {tested.name} has files that only root may use, "
            raise Unsupported(f"{text}but the application is user {application.user}")
    timeouts = spec.scenario.timeouts.model_fields_set
    for host in spec.scenario.drivers:
        if not spec.subject(host).reads_environment:
            text = f"{spec.subject(host).name} does not read the settings in `drivers`"
            raise Unsupported(text)
    for each in map(spec.subject, spec.scenario.network.hosts):
        if timeouts and not each.reads_environment:
            names = ", ".join(sorted(timeouts))
            raise Unsupported(
                f"{each.name} does not support these timeouts of the scenario: {names}"
            )


def make_lab(spec: RunSpec) -> Lab:
    """Return the lab for a run. The caller must call `up`."""
    scenario = spec.scenario
    channels = [each.channel for each in scenario.traffic]
    channels += [each.channel for each in scenario.observe]
    network = topology.build(
        spec.run_id,
        scenario.network.hosts,
        scenario.network.joined,
        datagram_length_max=max((parse_channel(each).mtu for each in channels), default=0),
        # A simulated network is shared with no other run, and equal runs must have equal digests.
        addresses_of=SIM if spec.fidelity == SIM else "",
    )
    return labs.make(spec.fidelity, network, records=spec.runs / RECORDS, runs=spec.runs)


def _tidy_up(run: Run, *, is_fast: bool) -> None:
    """Collect the evidence, remove the lab and write the manifest, even if one of these steps
    fails.
    """
    try:
        run.finish(is_fast=is_fast)
    except (LabError, OSError) as error:
        run.manifest.complete = False
        run.manifest.errors.append(str(error))
    finally:
        try:
            run.take_down()
        except LabError as error:
            run.manifest.errors.append(str(error))
        run.manifest.write(run.spec.folder.manifest)


def _judge(folder: RunDir) -> tuple[str, str]:
    """Judge a run folder. Returns the outcome's name and a one-line reason.

    Without enough memory or open files there is no verdict, and the runs after this one follow.
    """
    try:
        verdict = judge(folder.path)
    except (MemoryError, OSError) as error:
        if not is_of_limit(error):
            raise
        why = error.strerror if isinstance(error, OSError) else "not enough memory"
        text = f"the run could not be judged: {why}; `windtunnel judge {folder.path}` judges it"
        return str(Outcome.HARNESS), text
    return str(verdict.outcome), verdict.reason


def _compress(spec: RunSpec, emit: Emit, reason: str) -> tuple[str, str]:
    """Compress the captures of a passed run, and judge the run again because the verdict names the
    capture files.
    """
    try:
        for host in spec.scenario.network.hosts:
            if spec.folder.capture(host).exists():
                compress_file(spec.folder.capture(host))
    except OSError as error:
        emit(kind="note", text=f"captures were not compressed: {error}")
        return str(Outcome.PASS), reason
    return _judge(spec.folder)


def event_emitter(spec: RunSpec, index: int, count: int, on_event: OnEvent) -> Emit:
    """Return a function that reports the progress of a run as events."""
    faults = FaultCounts(spec.folder, spec.scenario.network.hosts)
    # A simulator writes its files at the end, so counts read from them would be too low.
    is_counted = spec.fidelity != SIM

    def emit(**fields: Any) -> None:
        if fields["kind"] == "progress" and is_counted:
            faults.update()
        on_event(
            RunEvent(
                run_index=index,
                run_count=count,
                scenario=spec.scenario.name,
                seed=spec.seed,
                pair=spec.tested.name,
                drop_count=faults.drop_count,
                retransmit_count=faults.retransmit_count,
                **fields,
            )
        )

    return emit
