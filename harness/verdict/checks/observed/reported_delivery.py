"""Check that applications received each message once and in order, according to their reports.

sender    SENT 0   SENT 1   SENT 2   SENT 3
receiver  GOT 0    GOT 1    GOT 1                 message 1 again, and 2 and 3 never
"""

from collections.abc import Iterable, Iterator

from windtunnel.harness.artifact.noun_form import counted
from windtunnel.harness.scenario.resolved.case import TrafficCase
from windtunnel.harness.verdict.checks.observed.message_places import (
    absent_messages,
    message_position,
)
from windtunnel.harness.verdict.checks.observed.reported_messages import Report, Reports
from windtunnel.harness.verdict.core.evidence import Evidence
from windtunnel.harness.verdict.core.finding import AtFault, Finding, failed, passed
from windtunnel.harness.verdict.core.kind import Kind
from windtunnel.harness.verdict.core.outcome import Outcome

DELIVERED = "reported_once_in_order"


def reported_once_in_order(
    evidence: Evidence, traffic: TrafficCase, sent: Reports, got: Reports
) -> Finding:
    """The receiving application reports each message that the sending one reports, once and in
    order.
    """
    problem = _unusable(sent, got)
    if problem:
        return Finding(DELIVERED, Outcome.INCONCLUSIVE, problem, traffic.id,
                       at_fault=AtFault.APPLICATION)  # fmt: skip
    wrong = _first_wrong(sent.reports, got.reports)
    if wrong is None:
        text = f"{counted(len(sent.reports), 'message')} of {sent.applications[0]} reached "
        return passed(DELIVERED, f"{text}{got.applications[0]}, once and in order", traffic.id)
    index, text, is_late = wrong
    checksums = [each.checksum for each in sent.reports]
    position, place = message_position(evidence, traffic, checksums, index)
    where = f" ({place})" if place else ""
    text = f"{got.applications[0]} {text}"
    absent = [] if is_late else absent_messages(evidence, traffic, checksums)
    if index in absent:
        text = f"{sent.applications[0]} reports it as sent, but it is not in the stream"
        if len(absent) > 1:
            others = counted(len(absent) - 1, "other")
            text += f", nor {'is' if len(absent) == 2 else 'are'} {others} of {len(checksums):,}"
        text += "; an `offer` with a negative result has not sent its message"
    log = evidence.folder.host(traffic.to_host).application(got.applications[0]).log
    return failed(
        DELIVERED,
        f"message {index}{where}: {text}",
        traffic.id,
        evidence=(evidence.name_of(log),),
        message=index,
        position=position,
        at_fault=AtFault.APPLICATION,
        kind=Kind.LIVENESS if is_late else Kind.SAFETY,
        conclusive=not is_late,
    )


def reported_counts(sent: Reports, got: Reports) -> tuple[int, int] | None:
    """Return how many messages were sent, and how many different ones of them were received, or
    None if the reports do not show it.
    """
    if not (sent.applications and got.applications) or _unusable(sent, got):
        return None
    received = {each.number for each in got.reports if each.number < len(sent.reports)}
    return len(sent.reports), len(received)


def reported_notes(findings: Iterable[Finding]) -> Iterator[str]:
    """Yield a note for each stream whose messages arrived once and in order, for the reason of a
    passing verdict.
    """
    for each in findings:
        if each.name == DELIVERED and each.outcome is Outcome.PASS:
            yield f"{each.about}: {each.text}"


def _unusable(sent: Reports, got: Reports) -> str:
    """Return why the reports cannot be compared, or an empty string."""
    for what, each in (("sent", sent), ("received", got)):
        if each.problem:
            return each.problem
        if len(each.applications) > 1:
            names = " and ".join(each.applications)
            return f"{names} both report that they {what} the stream, but only one may"
    numbers = [each.number for each in sent.reports]
    wrong = next((at for at, number in enumerate(numbers) if number != at), None)
    if wrong is not None:
        text = f"{sent.applications[0]} reports message {numbers[wrong]} as sent, where message "
        return f"{text}{wrong} was expected"
    return ""


def _first_wrong(sent: list[Report], got: list[Report]) -> tuple[int, str, bool] | None:
    """Return the first message that was not received once and in order, with a description, and
    whether it may only have been late.
    """
    checksums = [each.checksum for each in sent]
    for index, report in enumerate(got):
        if (report.number, report.checksum) == (index, *checksums[index : index + 1]):
            continue
        if report.number < index and report.checksum != checksums[report.number]:
            text = f"reports message {report.number} with another checksum than was sent: "
            return index, f"{text}the numbers must continue after a restart", False
        if report.number < index or report.checksum in checksums[max(0, index - 1) : index]:
            return index, f"reports message {min(report.number, index - 1)} again instead", False
        if index >= len(sent):
            return index, "reports a message that was never sent", False
        if report.number > index or report.checksum in checksums[index + 1 : index + 2]:
            return index, "has skipped it: it reports a later one", False
        return index, "reports another checksum than was sent", False
    if len(got) < len(sent):
        missing = counted(len(sent) - len(got), "message")
        return len(got), f"does not report it, and misses {missing} at the end", True
    return None
