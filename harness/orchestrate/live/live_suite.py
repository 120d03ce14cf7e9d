"""Executes the run of a live lab, as the only one of a suite, from its options to its verdict."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from windtunnel.harness.artifact.suite_dir import new_suite_id
from windtunnel.harness.orchestrate.cancel import Cancellation, Cancelled
from windtunnel.harness.orchestrate.event import RunEvent
from windtunnel.harness.orchestrate.fidelity import COMPOSE, NETNS, Fidelity
from windtunnel.harness.orchestrate.lab import LabError
from windtunnel.harness.orchestrate.labs import labs
from windtunnel.harness.orchestrate.live.line_channel import ChannelClosed
from windtunnel.harness.orchestrate.live.live_run import Channel, LiveRun
from windtunnel.harness.orchestrate.live.live_scenario import OptionError, live_scenario
from windtunnel.harness.orchestrate.precompile.progress import CompileProgress
from windtunnel.harness.orchestrate.run import payload
from windtunnel.harness.orchestrate.run.one_run import (
    RunResult,
    event_emitter,
    execute_run,
    make_lab,
)
from windtunnel.harness.orchestrate.run.phases import Emit, Run
from windtunnel.harness.orchestrate.run.run_spec import RunSpec
from windtunnel.harness.orchestrate.subjects import peers
from windtunnel.harness.orchestrate.subjects.subject import OURS, Pair, Subject
from windtunnel.harness.orchestrate.suite.runner import PAYLOAD_STORE
from windtunnel.harness.orchestrate.suite.suite import PlannedRun, RunningSuite, SuiteOptions

FILE = "lab.yaml"
NAMES_MAX = 20
_CONTENT = b"A lab that a program controls sends nothing of its own.\n"


@dataclass(frozen=True)
class LabEnd:
    """How a lab has ended, and where its evidence is."""

    outcome: str
    reason: str
    seed: int
    run_dir: Path
    suite_dir: Path


def run_lab(channel: Channel, options: Mapping[str, Any]) -> LabEnd:
    """Build a lab, serve the program that uses it, take the lab down and judge the run.

    Raises LabError if the lab cannot be built at all, and Cancelled if a signal ends it.
    """
    scenario = live_scenario(options)
    out = Path(str(options["out"])).resolve()
    fidelity = _fidelity(options)
    drivers = _drivers(options.get("driver") or {}, scenario.network.hosts, fidelity, out)
    labs.require(fidelity, lambda done: _report(channel, done))
    content = payload.content_payload(out / PAYLOAD_STORE, "lab", _CONTENT)
    common = SuiteOptions(
        out, fidelity, content, tested=_pair(drivers), allow_commands=True, by_host=drivers
    )
    suite = _new_suite(out, common, options)
    # The file need not exist: its folder is what `${scenario.dir}` means to the applications.
    file = Path(str(options["folder"])) / FILE
    spec = suite.spec(PlannedRun(scenario, file, scenario.seeds.root))
    results: list[RunResult] = []

    def begin(run_spec: RunSpec, emit: Emit) -> Run:
        return LiveRun(run_spec, make_lab(run_spec), emit, channel, options)

    def on_result(result: RunResult) -> None:
        suite.record(spec, result)
        results.append(result)

    emit = event_emitter(spec, 0, 1, lambda event: _note(channel, event))
    with Cancellation() as cancellation:
        try:
            execute_run(spec, emit, cancellation, on_result, begin)
        except Cancelled as cancelled:
            suite.close(cancelled)
            raise
        suite.close()
    (result,) = results
    folder = spec.folder.path
    return LabEnd(result.outcome, result.reason, spec.seed, folder, suite.result.suite_dir)


def _fidelity(options: Mapping[str, Any]) -> Fidelity:
    """Return the kind of lab that a program has requested."""
    found = options.get("fidelity") or NETNS
    if found == NETNS:
        return NETNS
    if found == COMPOSE:
        return COMPOSE
    raise OptionError(f"fidelity: expected {NETNS} or {COMPOSE}, found {str(found)[:80]!r}")


def _drivers(
    names: Mapping[str, Any], hosts: Sequence[str], fidelity: Fidelity, out: Path
) -> dict[str, Subject]:
    """Return the driver of each host of a lab, given the names of peers by host. A host that is not
    named has Windtunnel's.
    """
    found = {}
    for host in hosts:
        try:
            peer = str(names.get(host) or OURS.name)
            found[host] = peers.find(peer, fidelity, out / peers.STORE)
        except peers.PeerError as error:
            raise OptionError(f"driver of host {host}: {error}") from error
        if found[host].missing:
            raise LabError(f"driver of host {host}: {peer}: {found[host].missing}")
    return found


def _pair(drivers: Mapping[str, Subject]) -> Pair:
    """Return the drivers of the first two hosts, which stand for all in the list of the suite."""
    first, second, *_ = drivers.values()
    return Pair(first, second)


def _new_suite(out: Path, common: SuiteOptions, options: Mapping[str, Any]) -> RunningSuite:
    """Create the suite's folder. Labs that start in the same second may draw the same name."""
    command = [str(each) for each in options.get("argv", ())]
    for _ in range(NAMES_MAX):
        with suppress(FileExistsError):
            return RunningSuite(out / new_suite_id(datetime.now(UTC)), common, command)
    raise LabError(f"{out}: {NAMES_MAX} names of suites in a row exist already")


def _report(channel: Channel, done: CompileProgress) -> None:
    """Report the progress. Raises ChannelClosed if the program does not wait any more."""
    channel.send({"progress": str(done)})


def _note(channel: Channel, event: RunEvent) -> None:
    if event.kind == "phase":
        with suppress(ChannelClosed):
            channel.send({"progress": event.phase})
