"""Whether the processes under test lived and came to their end; this check is always made."""

import signal
from collections.abc import Iterator

from windtunnel.harness.artifact.host.application import PublisherFacts, SubscriberFacts
from windtunnel.harness.artifact.host.host_event import HappenedEvent
from windtunnel.harness.artifact.host.recording import RecorderFacts
from windtunnel.harness.artifact.run.manifest import Manifest, ProcessExit
from windtunnel.harness.scenario.resolved.case import TrafficCase
from windtunnel.harness.verdict.core.evidence import Evidence
from windtunnel.harness.verdict.core.exit_codes import (
    CANNOT_START_EXIT_CODES,
    GAVE_UP_EXIT_CODE,
    HARNESS_EXIT_CODES,
    NO_DISK_EXIT_CODE,
    ORDERLY_EXIT_CODES,
    UNSUPPORTED_EXIT_CODE,
)
from windtunnel.harness.verdict.core.finding import Finding, Missing, could_not_look, failed, passed
from windtunnel.harness.verdict.core.kind import Kind
from windtunnel.harness.verdict.core.outcome import Outcome
from windtunnel.harness.verdict.core.wholeness import SUCCESSOR
from windtunnel.harness.verdict.views import stall_detector

NAME = "subject_lived"
ROLES = ("driver", "publisher", "subscriber", "archive", "recorder", "replayer", "replicator")
SERVERS = ("driver", "archive")
"""They live until they are asked to end; the others end by themselves."""
_Facts = PublisherFacts | SubscriberFacts | RecorderFacts


def subject_lived(evidence: Evidence) -> list[Finding]:
    """No driver or workload died, each workload ended well, and the traffic within its budget."""
    manifest = evidence.manifest
    if isinstance(manifest, Missing):
        return [could_not_look(NAME, manifest)]
    where = evidence.name_of(evidence.folder.manifest)
    subjects = [each for each in manifest.processes if each.role in ROLES]
    if not subjects:
        return [could_not_look(NAME, Missing(where, "tells of no driver or workload"))]
    findings = [
        *_deaths(subjects, manifest.unsupported),
        *_bad_ends(subjects, evidence.host_events),
        *_overrun(evidence, manifest, where),
        *_own_words(evidence, manifest),
    ]
    for role in _expected(evidence):
        if not any(each.role == role for each in subjects):
            findings.append(could_not_look(NAME, Missing(where, f"tells of no {role}")))
    if findings:
        return findings
    return [passed(NAME, f"{len(subjects)} drivers and workloads lived to their end")]


def _expected(evidence: Evidence) -> list[str]:
    """The roles that every run has, and those that this one's case asks for."""
    case = evidence.case
    traffic = () if isinstance(case, Missing) else case.traffic
    needless = set()
    if not any(each.recorded for each in traffic):
        needless |= {"archive", "recorder"}
    if not any(each.replays for each in traffic):
        needless.add("replayer")
    if not any(each.replicated for each in traffic):
        needless.add("replicator")
    return [each for each in ROLES if each not in needless]


def _deaths(subjects: list[ProcessExit], unsupported: str) -> list[Finding]:
    findings = []
    for each in subjects:
        code = each.exit_code
        if each.asked or code is None or (code == 0 and each.role not in SERVERS):
            continue
        if is_our_failure(each):
            text = f"{each.name} failed by itself{_last_words(each)}"
            findings.append(Finding(NAME, Outcome.HARNESS, text, each.name, _log_of(each)))
            continue
        where, words = _log_of(each), _last_words(each)
        # Of a driver the harness alone can tell: these codes mean it only before a heartbeat.
        cannot = CANNOT_START_EXIT_CODES if unsupported else ()
        if code in (cannot if each.role == "driver" else (UNSUPPORTED_EXIT_CODE,)):
            text = f"{each.name} says that it cannot do this{words}"
            findings.append(Finding(NAME, Outcome.UNSUPPORTED, text, each.name, where))
            continue
        text = f"{each.name} {_how(code)} before it was asked to end{words}"
        gave_up = code == GAVE_UP_EXIT_CODE and each.role != "driver"
        kind = Kind.TIMEOUT if gave_up else Kind.SAFETY
        findings.append(
            failed(NAME, text, each.name, evidence=where, conclusive=not gave_up, kind=kind)
        )
    return findings


def is_our_failure(each: ProcessExit) -> bool:
    """Whether this is a workload that says that it failed by itself, or an archive's disk did."""
    if each.role == "archive":
        return each.exit_code == NO_DISK_EXIT_CODE
    is_workload = each.role in ROLES and each.role not in SERVERS
    return is_workload and each.exit_code in HARNESS_EXIT_CODES


def failed_by_itself(manifest: Manifest, host: str, stem: str) -> bool:
    """Whether a workload that left files of this stem on a host did not write them to their end."""
    mine = [each for each in manifest.processes if is_our_failure(each)]
    return any(each.name.partition(SUCCESSOR)[0] == f"{host}/{stem}" for each in mine)


def _bad_ends(
    subjects: list[ProcessExit], happened: list[HappenedEvent] | Missing
) -> list[Finding]:
    """Whoever did not end when he was asked to, and servers that did not end in good order."""
    findings = []
    for each in subjects:
        where, words = _log_of(each), _last_words(each)
        if each.late_s:
            text = f"{each.name} did not end within {each.late_s:g} s of being asked to{words}"
            findings.append(failed(NAME, text, each.name, evidence=where, kind=Kind.LIVENESS))
            continue
        code = each.exit_code
        if not each.asked or each.role not in SERVERS or code is None or code in ORDERLY_EXIT_CODES:
            continue
        if code == -signal.SIGKILL and _may_be_ordered(each, happened):
            continue
        if is_our_failure(each):
            text = f"{each.name} failed by itself{words}"
            findings.append(Finding(NAME, Outcome.HARNESS, text, each.name, where))
            continue
        # It may have given up just before it was asked.
        gave_up = code == GAVE_UP_EXIT_CODE and each.role != "driver"
        kind = Kind.TIMEOUT if gave_up else Kind.SAFETY
        text = f"{each.name} {_how(code)} when it was asked to end{words}"
        findings.append(
            failed(NAME, text, each.name, evidence=where, conclusive=not gave_up, kind=kind)
        )
    return findings


def _may_be_ordered(each: ProcessExit, happened: list[HappenedEvent] | Missing) -> bool:
    """Whether an event may have killed this process, which counts as asked, too."""
    if isinstance(happened, Missing):
        return True
    host = each.name.partition("/")[0]
    kills = [event for event in happened if event.action == "kill" and event.host == host]
    return any(each.role in event.processes for event in kills)


def _log_of(each: ProcessExit) -> tuple[str, ...]:
    return (each.log,) if each.log else ()


def _last_words(each: ProcessExit) -> str:
    return f"; its last words: {each.last_log_line}" if each.last_log_line else ""


def _how(code: int) -> str:
    return f"was ended by signal {-code}" if code < 0 else f"ended with exit code {code}"


def _overrun(evidence: Evidence, manifest: Manifest, where: str) -> list[Finding]:
    if not manifest.overran:
        return []
    text = f"the traffic did not come to its end: {manifest.overran}"
    calm_ns = stall_detector.calm_ns(evidence)
    if calm_ns:
        text += f"; nothing had moved for {calm_ns / 1e9:.1f} s, in which all hosts had their time"
    kind = Kind.TIMEOUT if calm_ns else Kind.LIVENESS
    return [failed(NAME, text, evidence=(where,), kind=kind)]


def _own_words(evidence: Evidence, manifest: Manifest) -> list[Finding]:
    """What workloads say went wrong; one that ended well says at least that nothing did."""
    case = evidence.case
    if isinstance(case, Missing):
        return [could_not_look(NAME, case)]
    findings = []
    for traffic in case.traffic:
        for facts, who in _spoken(evidence, traffic):
            host, _, stem = who.partition("/")
            if failed_by_itself(manifest, host, stem):
                continue
            if isinstance(facts, Missing):
                findings.append(could_not_look(NAME, facts, who))
            elif facts.error:
                findings.append(failed(NAME, f"{who} says: {facts.error}", who, kind=Kind.LIVENESS))
    return findings


def _spoken(evidence: Evidence, traffic: TrafficCase) -> Iterator[tuple[_Facts | Missing, str]]:
    """What each workload of a stream says of itself, and who it is."""
    for host in traffic.archived:
        yield evidence.recorder(host, traffic.id), f"{host}/recorder-{traffic.id}"
    for host in traffic.publishers:
        flow = traffic.between(host, traffic.to_host)
        yield evidence.publisher(flow), f"{host}/publisher-{flow.id}"
    for host in traffic.subscribers:
        flow = traffic.between(traffic.from_host, host)
        yield evidence.subscriber(flow), f"{host}/subscriber-{flow.id}"
