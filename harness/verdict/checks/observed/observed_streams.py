"""Judges observed streams, session by session: with captures, and with counters and logs if the
drivers have any of them.

    captures            data and its end, NAKs, retransmits
    counters, logs      positions, the image's log       of the hosts' drivers only: an embedded
                                                         driver's are unknown

A check whose evidence does not exist is listed as unknown. It is neither passed nor failed.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace

from windtunnel.harness.artifact.noun_form import counted
from windtunnel.harness.scenario.resolved.case import Case, TrafficCase
from windtunnel.harness.verdict.checks.counters import positions
from windtunnel.harness.verdict.checks.flow_control import window
from windtunnel.harness.verdict.checks.logs import log_comparison
from windtunnel.harness.verdict.checks.observed import arrival
from windtunnel.harness.verdict.checks.observed.found_streams import not_judged, observed_of
from windtunnel.harness.verdict.checks.observed.reported_delivery import reported_once_in_order
from windtunnel.harness.verdict.checks.observed.reported_messages import (
    GOT,
    SENT,
    Reports,
    reports_of,
)
from windtunnel.harness.verdict.checks.observed.sessions import (
    SESSIONS_MAX,
    image_count,
    killed_driver,
    sessions_of,
)
from windtunnel.harness.verdict.checks.observed.stream_limits import limit_findings
from windtunnel.harness.verdict.checks.retransmission import (
    nak_checks,
    recovery,
    retransmit_checks,
)
from windtunnel.harness.verdict.core.evidence import Evidence
from windtunnel.harness.verdict.core.finding import (
    Finding,
    Missing,
    finding_of,
    inconclusive,
    passed,
    present,
)
from windtunnel.harness.verdict.core.kind import Kind
from windtunnel.harness.verdict.core.outcome import Outcome

NAME = "observed_streams"
NAMED_MAX = 4
Check = Callable[[Evidence, TrafficCase], Finding]
FROM_CAPTURES: tuple[tuple[str, Kind, Check], ...] = (
    (arrival.ARRIVED, Kind.SAFETY, arrival.observed_data_arrived),
    (nak_checks.ONLY_GAPS, Kind.PROTOCOL, nak_checks.naks_only_for_gaps),
    (retransmit_checks.ONLY_REQUESTED, Kind.PROTOCOL, retransmit_checks.retransmits_only_if_asked),
    (recovery.IDENTICAL, Kind.PROTOCOL, recovery.retransmits_identical),
)
FROM_DRIVERS: tuple[tuple[str, Kind, Check], ...] = (
    (arrival.EOS, Kind.LIVENESS, arrival.observed_end_of_stream),
    (positions.HWM, Kind.PROTOCOL, positions.rcv_hwm_from_wire),
    (positions.MONOTONIC, Kind.PROTOCOL, positions.rcv_pos_monotonic),
    (log_comparison.EQUAL, Kind.SAFETY, log_comparison.image_log_equals_publication),
)
"""Checks that are unknown, instead of inconclusive, without their evidence."""
OF_CHANNEL: tuple[tuple[str, Kind, Check], ...] = (
    (window.WITHIN, Kind.PROTOCOL, window.sends_within_window),
)
"""The same, for streams whose channel is known."""
NO_STREAM = (
    "have no SETUP from one host to another, expected at least one stream (an endpoint such as "
    "localhost leads to the program's own host)"
)
ALWAYS_UNKNOWN = "what the applications offered, and what they did with the data"
REPLACED_UNKNOWN = "whether all data arrived"


def observed_streams(evidence: Evidence) -> list[Finding]:
    """Each observed stream arrived as it was sent, and its drivers kept to the protocol."""
    case = present(evidence.case)
    reports = reports_of(evidence, case)
    findings: list[Finding] = []
    where = evidence.name_of(evidence.folder.captures)
    for text in not_judged(evidence, case):
        findings.append(inconclusive(NAME, Missing(where, f"also have {text}")))
    found = observed_of(evidence, case)
    if case.observes_all:
        captures = (evidence.capture(host.name) for host in case.hosts)
        findings += [inconclusive(NAME, each) for each in captures if isinstance(each, Missing)]
        if not found:
            findings.append(inconclusive(NAME, Missing(where, NO_STREAM)))
    for each in found:
        sent, got = (reports.get((kind, each.id), Reports()) for kind in (SENT, GOT))
        is_reported = bool(sent.applications and got.applications)
        findings += _stream(evidence, case, each, is_reported=is_reported)
        if is_reported:
            findings.append(reported_once_in_order(evidence, each, sent, got))
    return findings


def _stream(
    evidence: Evidence, case: Case, traffic: TrafficCase, *, is_reported: bool
) -> Iterator[Finding]:
    near = evidence.capture(traffic.from_host)
    if isinstance(near, Missing):
        yield inconclusive(NAME, near, traffic.id)
        return
    sessions = sessions_of(near, case, traffic)
    where = evidence.name_of(evidence.folder.capture(traffic.from_host))
    if not sessions:
        text = f"has no SETUP of stream {traffic.stream_id} to one of the ports of its channel, "
        text += f"sent by {traffic.from_host}"
        yield inconclusive(NAME, Missing(where, text), traffic.id)
    for flow in sessions[:SESSIONS_MAX]:
        unknown = [] if is_reported else [ALWAYS_UNKNOWN]
        yield from (replace(found, about=flow.id) for found in _session(evidence, flow, unknown))
    if len(sessions) > SESSIONS_MAX:
        text = f"has {counted(len(sessions), 'session')}, of which {SESSIONS_MAX} were judged"
        yield inconclusive(NAME, Missing(where, text), traffic.id)


def _session(evidence: Evidence, flow: TrafficCase, unknown: list[str]) -> Iterator[Finding]:
    """Yield the findings about a session, and what is unknown about it, after what was `unknown`
    before.
    """
    wire = evidence.wire(flow)
    if isinstance(wire, Missing):
        yield inconclusive(NAME, wire, flow.id)
        return
    replaced = _replaced_image(evidence, flow)
    checks = FROM_CAPTURES if not replaced else FROM_CAPTURES[2:]
    if replaced:
        unknown.append(f"{REPLACED_UNKNOWN}, and where positions should be ({replaced})")
    yield from (_run(*check, evidence, flow) for check in checks)
    of_channel = () if flow.found or replaced else OF_CHANNEL
    for check in (*(FROM_DRIVERS if not replaced else FROM_DRIVERS[:1]), *of_channel):
        found = _run(*check, evidence, flow)
        if found.outcome is Outcome.INCONCLUSIVE:
            unknown.append(f"{found.name} ({found.text})")
        else:
            yield found
    yield from limit_findings(evidence, flow, wire)
    frames = counted(len(wire.sent.starts), "frame")
    text = f"{frames} of session {wire.facts.session_id} sent; "
    text += f"unknown: {'; '.join(unknown)}" if unknown else "nothing is unknown"
    yield passed(NAME, text, flow.id)


def _run(name: str, kind: Kind, check: Check, evidence: Evidence, flow: TrafficCase) -> Finding:
    found = finding_of(name, flow.id, check, evidence, flow)
    return replace(found, kind=found.kind or kind)


def _replaced_image(evidence: Evidence, flow: TrafficCase) -> str:
    """Return why a session has had several images, each with its own start, or an empty string."""
    event = killed_driver(evidence.host_events, flow)
    if event:
        return f"event {event} killed a driver"
    wire = present(evidence.wire(flow))
    count = image_count(evidence, flow, wire)
    return f"the session had {counted(count, 'image')}" if count > 1 else ""


def unread_notes(findings: Sequence[Finding]) -> Iterator[str]:
    """Yield a note if no stream was found, and one if no data was sent because there was no
    subscriber, for the reason of a verdict.
    """
    yield from (each.text for each in findings if each.name == NAME and NO_STREAM in each.text)
    names = [each.about for each in findings if arrival.UNREAD in each.text]
    if names:
        yield f"no data of {_named(names)}: it had no subscriber where its channel leads"


def unknown_notes(findings: Iterable[Finding]) -> Iterator[str]:
    """Yield notes for the reason of a verdict: of which streams it is unknown whether all data
    arrived, which have no results, and of which the content is unknown.
    """
    observed = [each for each in findings if each.name == NAME and each.about]
    replaced = [each.about for each in observed if REPLACED_UNKNOWN in each.text]
    if replaced:
        which = _named(replaced)
        yield f"unknown for {which}: {REPLACED_UNKNOWN}, as images were replaced (no figures)"
    names = [each.about for each in observed if ALWAYS_UNKNOWN in each.text]
    if names:
        is_all = NAMED_MAX < len(names) == len(observed)
        which = f"all {len(names)} observed streams" if is_all else _named(names)
        yield f"unknown for {which}: {ALWAYS_UNKNOWN}"


def _named(names: Sequence[str]) -> str:
    """Return the names of streams, of which at most NAMED_MAX are written out."""
    text = ", ".join(names[:NAMED_MAX])
    return text if len(names) <= NAMED_MAX else f"{text} and {len(names) - NAMED_MAX} more"
