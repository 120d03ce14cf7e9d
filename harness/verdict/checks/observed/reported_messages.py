"""What applications report about their messages, in lines of their logs.

    WT SENT requests 0 1842515611      the publication has accepted message 0 of the stream
    WT GOT requests 0 1842515611       the application has received message 0

The fields are the id of an observed stream, the number of the message, counted from 0, and the
CRC-32 of its bytes. The id may be omitted if the application's host has only one observed stream in
that direction. All other lines are ignored.
"""

from dataclasses import dataclass, field
from typing import BinaryIO

from windtunnel.harness.artifact.regular_file import open_regular
from windtunnel.harness.artifact.run.manifest import LOG_LOST
from windtunnel.harness.scenario.applications.application_case import ApplicationCase
from windtunnel.harness.scenario.resolved.case import Case, TrafficCase
from windtunnel.harness.verdict.checks.observed.found_streams import observed_of
from windtunnel.harness.verdict.core.completeness import application_exits
from windtunnel.harness.verdict.core.evidence import Evidence
from windtunnel.harness.verdict.core.finding import Missing

SENT, GOT = "SENT", "GOT"
PREFIX = b"WT "
Streams = tuple[TrafficCase, ...]
REPORTS_MAX = 1 << 20
"""Maximum number of reports that are read from a log."""
LINE_BYTES_MAX = 200
NUMBER_DIGITS_MAX = 18


@dataclass(frozen=True)
class Report:
    """One message that an application has reported."""

    number: int
    checksum: int
    line: int
    "Number of the line in the log, from 1."


@dataclass
class Reports:
    """The reports of one kind about one stream, and what cannot be used among them."""

    applications: list[str] = field(default_factory=list)
    "Ids of the applications that have reported, in order of the scenario."
    reports: list[Report] = field(default_factory=list)
    problem: str = ""
    "The first report that cannot be used, or an empty string."


def reports_of(evidence: Evidence, case: Case) -> dict[tuple[str, str], Reports]:
    """Return what all applications have reported, by kind (`SENT` or `GOT`) and stream."""
    found: dict[tuple[str, str], Reports] = {}
    streams = observed_of(evidence, case)
    for application in case.applications:
        path = evidence.folder.host(application.host).application(application.id).log
        try:
            with open_regular(path) as file:
                _read(file, evidence.name_of(path), streams, application, found)
        except OSError:
            continue  # The check of the application reports it.
        if _is_log_lost(evidence, application):
            for reports in found.values():
                if application.id in reports.applications:
                    text = f"{evidence.name_of(path)} is incomplete, as it could not be written"
                    reports.problem = reports.problem or text
    return found


def _is_log_lost(evidence: Evidence, application: ApplicationCase) -> bool:
    manifest = evidence.manifest
    if isinstance(manifest, Missing):
        return False
    return any(each.problem == LOG_LOST for each in application_exits(manifest, application))


def _read(
    file: BinaryIO,
    name: str,
    streams: Streams,
    application: ApplicationCase,
    found: dict[tuple[str, str], Reports],
) -> None:
    count = number = 0
    is_start = True
    while line := file.readline(LINE_BYTES_MAX):
        starts, is_start = is_start, line.endswith(b"\n")
        number += starts
        words = line.split() if starts and line.startswith(PREFIX) else []
        if len(words) < 2 or words[1].decode("ascii", "replace") not in (SENT, GOT):
            continue
        kind = words[1].decode()
        stream, report = _parsed(streams, application, kind, words[2:], number)
        for each in [stream] if stream else _streams(streams, application, kind):
            reports = found.setdefault((kind, each), Reports())
            if application.id not in reports.applications:
                reports.applications.append(application.id)
            count += 1
            if report is None:
                text = f"line {number} of {name}: expected `WT {kind} [stream] number crc`"
                reports.problem = reports.problem or text
            elif count > REPORTS_MAX:
                reports.problem = reports.problem or f"{name} has more than {REPORTS_MAX} reports"
                return
            else:
                reports.reports.append(report)


def _parsed(
    observed: Streams, application: ApplicationCase, kind: str, words: list[bytes], line: int
) -> tuple[str, Report | None]:
    """Return the stream of a report, if it is known, and the report, if it is valid."""
    streams = _streams(observed, application, kind)
    stream = streams[0] if len(streams) == 1 else ""
    if len(words) == 3:
        named = words[0].decode("ascii", "replace")
        stream = named if named in streams else ""
        words = words[1:]
    numbers = [int(each) for each in words if each.isdigit() and len(each) <= NUMBER_DIGITS_MAX]
    if not stream or len(words) != 2 or len(numbers) != 2:
        return stream, None
    return stream, Report(numbers[0], numbers[1], line)


def _streams(streams: Streams, application: ApplicationCase, kind: str) -> list[str]:
    """Return the observed streams that an application may have sent or received."""
    host = application.host
    ends = [(each.id, each.from_host if kind == SENT else each.to_host) for each in streams]
    return [stream for stream, end in ends if end == host]
