"""Check that the processes under test survived and ended correctly. It is part of every verdict."""

import signal
from collections.abc import Iterator

from windtunnel.harness.artifact.host.application import PublisherFacts, SubscriberFacts
from windtunnel.harness.artifact.host.host_event import AppliedEvent
from windtunnel.harness.artifact.host.recording import RecorderFacts
from windtunnel.harness.artifact.run.manifest import Manifest, Phase, ProcessExit
from windtunnel.harness.artifact.run.result_row import duration
from windtunnel.harness.scenario.resolved.case import TrafficCase
from windtunnel.harness.verdict.checks.left_behind import blame_scenario, blame_scenario_for_waiting
from windtunnel.harness.verdict.core.completeness import RESTART_SEPARATOR
from windtunnel.harness.verdict.core.evidence import Evidence
from windtunnel.harness.verdict.core.exit_codes import (
    CANNOT_START_EXIT_CODES,
    GAVE_UP_EXIT_CODE,
    HARNESS_EXIT_CODES,
    NO_DISK_EXIT_CODE,
    ORDERLY_EXIT_CODES,
    UNSUPPORTED_EXIT_CODE,
    invalid_file_text,
)
from windtunnel.harness.verdict.core.finding import (
    Finding,
    Missing,
    failed,
    inconclusive,
    passed,
    present,
)
from windtunnel.harness.verdict.core.kind import Kind
from windtunnel.harness.verdict.core.outcome import Outcome
from windtunnel.harness.verdict.gates.overload import PHASE
from windtunnel.harness.verdict.views.stalls import stall_detector

NAME = "subject_lived"
ROLES = (
    *("driver", "publisher", "subscriber", "archive", "recorder", "replayer", "replicator"),
    "exercise",
)
SERVERS = ("driver", "archive")
"""Roles whose processes run until a shutdown request. Processes of other roles end on their own."""
_Facts = PublisherFacts | SubscriberFacts | RecorderFacts


def subject_lived(evidence: Evidence) -> list[Finding]:
    """No driver or workload died or reported an error, and the traffic ended within its time
    budget.
    """
    manifest = present(evidence.manifest)
    where = evidence.name_of(evidence.folder.manifest)
    subjects = [each for each in manifest.processes if each.role in ROLES]
    if not subjects:
        return [inconclusive(NAME, Missing(where, "lists no driver or workload"))]
    findings = [
        *_unexpected_exits(evidence, manifest, subjects),
        *_invalid_files(evidence, manifest),
        *_shutdown_failures(subjects, evidence.host_events),
        *_overrun(evidence, manifest, where),
        *_reported_errors(evidence, manifest),
    ]
    for role in _expected(evidence):
        if not any(each.role == role for each in subjects):
            findings.append(inconclusive(NAME, Missing(where, f"lists no {role}")))
    if findings:
        # The process that ended first stopped the run; others fail because of it.
        first = manifest.stopped.partition(" ")[0]
        return sorted(findings, key=lambda each: each.about != first)
    return [passed(NAME, f"{len(subjects)} drivers and workloads ran to completion")]


def _expected(evidence: Evidence) -> list[str]:
    """Return the roles of the processes that this run needs."""
    case = evidence.case
    traffic = () if isinstance(case, Missing) else case.traffic
    needless = set() if traffic else {"publisher", "subscriber"}
    if not any(each.recorded for each in traffic):
        needless |= {"archive", "recorder"}
    if not any(each.replays for each in traffic):
        needless.add("replayer")
    if not any(each.replicated for each in traffic):
        needless.add("replicator")
    if isinstance(case, Missing) or not case.exercises:
        needless.add("exercise")
    return [each for each in ROLES if each not in needless]


def _unexpected_exits(
    evidence: Evidence, manifest: Manifest, subjects: list[ProcessExit]
) -> list[Finding]:
    findings = []
    ended_ns = _end_times_ns(evidence, manifest)
    for each in subjects:
        code = each.exit_code
        if each.asked or code is None or (code == 0 and each.role not in SERVERS):
            continue
        if is_harness_failure(each):
            text = f"{each.name} failed with a harness error{_last_log_line(each)}"
            findings.append(Finding(NAME, Outcome.HARNESS, text, each.name, _log_of(each)))
            continue
        where, log = _log_of(each), _last_log_line(each)
        # For a driver, the harness determines this: these codes are valid only before a first
        # heartbeat.
        cannot = CANNOT_START_EXIT_CODES if manifest.unsupported else ()
        if code in (cannot if each.role == "driver" else (UNSUPPORTED_EXIT_CODE,)):
            text = f"{each.name} reports that it does not support this run{log}"
            findings.append(Finding(NAME, Outcome.UNSUPPORTED, text, each.name, where))
            continue
        when = _when_crashed(each) or _when(manifest, ended_ns.get(each.name, 0))
        text = f"{each.name} {_exit_text(code)}{when} before the shutdown request{log}"
        gave_up = code == GAVE_UP_EXIT_CODE and each.role != "driver"
        kind = Kind.TIMEOUT if gave_up else Kind.SAFETY
        finding = failed(NAME, text, each.name, evidence=where, conclusive=not gave_up, kind=kind)
        findings.append(blame_scenario(evidence, finding))
    return findings


def _invalid_files(evidence: Evidence, manifest: Manifest) -> Iterator[Finding]:
    """Yield a finding for each driver whose cnc.dat the sampler could not read."""
    for each in manifest.processes:
        text = invalid_file_text(each.name, each.exit_code, each.last_log_line)
        if each.role == "sampler" and text:
            host = each.name.partition("/")[0]
            if _has_applications(evidence, host):
                text += "; an application that shares the driver may have done it"
            about, where = f"{host}/driver", _log_of(each)
            yield failed(NAME, text, about, evidence=where, conclusive=True, kind=Kind.SAFETY)


def _has_applications(evidence: Evidence, host: str) -> bool:
    """Return whether an application may write to the files of a host's driver."""
    case = evidence.case
    if isinstance(case, Missing):
        return False
    return any(each.host == host and each.driver == "shared" for each in case.applications)


def is_harness_failure(each: ProcessExit) -> bool:
    """Return whether a workload failed because of the harness, or an archive's disk could not be
    set up.
    """
    if each.role == "archive":
        return each.exit_code == NO_DISK_EXIT_CODE
    is_workload = each.role in ROLES and each.role not in SERVERS
    return is_workload and each.exit_code in HARNESS_EXIT_CODES


def workload_failed(manifest: Manifest, host: str, stem: str) -> bool:
    """Return whether a workload failed because of the harness. The workload's files on the host are
    named `stem`.
    """
    mine = [each for each in manifest.processes if is_harness_failure(each)]
    return any(each.name.partition(RESTART_SEPARATOR)[0] == f"{host}/{stem}" for each in mine)


def _shutdown_failures(
    subjects: list[ProcessExit], happened: list[AppliedEvent] | Missing
) -> list[Finding]:
    """Return findings about processes that ignored a shutdown request, or ended abnormally after
    it.
    """
    findings = []
    for each in subjects:
        where, log = _log_of(each), _last_log_line(each)
        if each.late_s:
            text = f"{each.name} did not end within {each.late_s:g} s of the shutdown request{log}"
            findings.append(failed(NAME, text, each.name, evidence=where, kind=Kind.LIVENESS))
            continue
        code = each.exit_code
        if not each.asked or each.role not in SERVERS or code is None or code in ORDERLY_EXIT_CODES:
            continue
        if code == -signal.SIGKILL and _may_be_killed_by_event(each, happened):
            continue
        if is_harness_failure(each):
            text = f"{each.name} failed with a harness error{log}"
            findings.append(Finding(NAME, Outcome.HARNESS, text, each.name, where))
            continue
        # It may have timed out just before the shutdown request.
        gave_up = code == GAVE_UP_EXIT_CODE and each.role != "driver"
        kind = Kind.TIMEOUT if gave_up else Kind.SAFETY
        text = f"{each.name} {_exit_text(code)} after the shutdown request{log}"
        findings.append(
            failed(NAME, text, each.name, evidence=where, conclusive=not gave_up, kind=kind)
        )
    return findings


def _may_be_killed_by_event(each: ProcessExit, happened: list[AppliedEvent] | Missing) -> bool:
    """Return whether a kill event of the scenario may have ended this process. Its exit is then
    recorded as if it had been requested.
    """
    if isinstance(happened, Missing):
        return True
    host = each.name.partition("/")[0]
    kills = [event for event in happened if event.action == "kill" and event.host == host]
    return any(each.role in event.processes for event in kills)


def _log_of(each: ProcessExit) -> tuple[str, ...]:
    return (each.log,) if each.log else ()


def _last_log_line(each: ProcessExit) -> str:
    return f"; its log {each.log} ends with: {each.last_log_line}" if each.last_log_line else ""


def _end_times_ns(evidence: Evidence, manifest: Manifest) -> dict[str, int]:
    """Return the known times at which processes ended, by name: a workload reports its own, and the
    traffic phase ends with the process that stopped the run.
    """
    times_ns = {}
    first = manifest.stopped.partition(" ")[0]
    if traffic := _traffic_phase(manifest):
        times_ns[first] = traffic.ended_ns
    if not isinstance(evidence.case, Missing):
        for each in evidence.case.traffic:
            for facts, name in _reports(evidence, each):
                if not isinstance(facts, Missing):
                    times_ns[name] = facts.ended_ns
    return times_ns


def _when(manifest: Manifest, ended_ns: int) -> str:
    """Return when a process ended, as a part of a sentence, or "" if that is unknown."""
    traffic = _traffic_phase(manifest)
    if traffic is None or ended_ns < traffic.started_ns:
        return ""
    return f", {duration(ended_ns - traffic.started_ns)} after the traffic began,"


def _when_crashed(each: ProcessExit) -> str:
    """Return when and where a driver crashed in a simulation, or "" if it did not."""
    if each.virtual_ns is None:
        return ""
    where = f" in its {each.part}" if each.part else ""
    return f"{where} at {duration(each.virtual_ns)} of virtual time,"


def _traffic_phase(manifest: Manifest) -> Phase | None:
    return next((each for each in manifest.phases if each.name == PHASE), None)


def _exit_text(code: int) -> str:
    if code >= 0:
        return f"exited with code {code}"
    try:
        return f"was terminated by signal {-code} ({signal.Signals(-code).name})"
    except ValueError:
        return f"was terminated by signal {-code}"


def _overrun(evidence: Evidence, manifest: Manifest, where: str) -> list[Finding]:
    if not manifest.overran:
        return []
    text = f"the traffic did not complete: {manifest.overran}"
    stall_ns = stall_detector.stall_ns(evidence)
    if stall_ns:
        text += f"; no position moved for {stall_ns / 1e9:.1f} s although no host was overloaded"
    kind = Kind.TIMEOUT if stall_ns else Kind.LIVENESS
    finding = failed(NAME, text, evidence=(where,), kind=kind)
    names = manifest.overran.partition("still running: ")[2].partition(";")[0]
    return [blame_scenario_for_waiting(evidence, finding, {*names.split(", ")})]


def _reported_errors(evidence: Evidence, manifest: Manifest) -> list[Finding]:
    """Return findings about errors reported by workloads, and about missing reports."""
    case = evidence.case
    if isinstance(case, Missing):
        return [inconclusive(NAME, case)]
    findings = []
    for traffic in case.traffic:
        for facts, name in _reports(evidence, traffic):
            host, _, stem = name.partition("/")
            if workload_failed(manifest, host, stem):
                continue
            if isinstance(facts, Missing):
                findings.append(inconclusive(NAME, facts, name))
            elif facts.error:
                text = f"{name} failed{_when(manifest, facts.ended_ns)} and reports: {facts.error}"
                findings.append(failed(NAME, text, name, kind=Kind.LIVENESS))
    return findings


def _reports(evidence: Evidence, traffic: TrafficCase) -> Iterator[tuple[_Facts | Missing, str]]:
    """Yield the report of each of a stream's workloads, with the process name."""
    for host in traffic.archived:
        yield evidence.recorder(host, traffic.id), f"{host}/recorder-{traffic.id}"
    for host in traffic.publishers:
        flow = traffic.between(host, traffic.to_host)
        yield evidence.publisher(flow), f"{host}/publisher-{flow.id}"
    for host in traffic.subscribers:
        flow = traffic.between(traffic.from_host, host)
        yield evidence.subscriber(flow), f"{host}/subscriber-{flow.id}"
