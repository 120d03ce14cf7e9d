"""Check of the round trips that an application reports in lines of its log.

    WT RTT 1843000      the answer to a request came after 1,843,000 ns

All other lines are ignored.
"""

from collections.abc import Iterator

import numpy as np

from windtunnel.harness.artifact.noun_form import counted
from windtunnel.harness.artifact.regular_file import open_regular
from windtunnel.harness.artifact.run.result_row import duration
from windtunnel.harness.scenario.applications.application_case import ApplicationCase
from windtunnel.harness.verdict.core.evidence import Evidence
from windtunnel.harness.verdict.core.finding import (
    AtFault,
    Finding,
    failed,
    inconclusive,
    passed,
    present,
)
from windtunnel.harness.verdict.core.kind import Kind
from windtunnel.harness.verdict.core.outcome import Outcome
from windtunnel.harness.verdict.core.process_error import unread

NAME = "reported_round_trips"
PREFIX = b"WT RTT "
REPORTS_MAX = 1 << 20
"""Maximum number of reports that are read from a log."""
LINE_BYTES_MAX = 200
DIGITS_MAX = 18
PERCENTILES = ((50, "p50"), (99, "p99"), (100, "longest"))


def reported_round_trips(evidence: Evidence) -> list[Finding]:
    """The round trips that applications report are as short as the scenario says."""
    case = present(evidence.case)
    return [_finding(evidence, each) for each in case.applications if any(each.round_trips_ns)]


def _finding(evidence: Evidence, application: ApplicationCase) -> Finding:
    path = evidence.folder.host(application.host).application(application.id).log
    name, about = evidence.name_of(path), application.id
    try:
        reports = list(_reports(evidence, application))
    except OSError as error:
        return inconclusive(NAME, unread(name, error), about)
    wrong = next((line for line, value_ns in reports if value_ns is None), None)
    if wrong is not None:
        text = f"line {wrong} of {name}: expected `WT RTT nanoseconds`"
        return Finding(NAME, Outcome.INCONCLUSIVE, text, about, at_fault=AtFault.APPLICATION)
    values_ns = np.array([value_ns for _, value_ns in reports], dtype=np.int64)
    if not len(values_ns):
        text = f"{about} has reported no round trip: expected lines `WT RTT nanoseconds` in {name}"
        return Finding(NAME, Outcome.INCONCLUSIVE, text, about, at_fault=AtFault.APPLICATION)
    shown, is_kept = [], True
    for (percent, title), most_ns in zip(PERCENTILES, application.round_trips_ns, strict=True):
        value_ns = int(np.percentile(values_ns, percent, method="inverted_cdf"))
        shown.append(f"{title} {duration(value_ns)}")
        if most_ns and value_ns > most_ns:
            shown[-1] += f", expected at most {duration(most_ns)}"
            is_kept = False
    text = f"{counted(len(values_ns), 'round trip')} of {about}: {'; '.join(shown)}"
    if is_kept:
        return passed(NAME, text, about)
    return failed(NAME, text, about, kind=Kind.TIMING, at_fault=AtFault.APPLICATION)


def _reports(evidence: Evidence, application: ApplicationCase) -> Iterator[tuple[int, int | None]]:
    """Yield the number of the line of each report, and its value, or None if it is not valid."""
    path = evidence.folder.host(application.host).application(application.id).log
    with open_regular(path) as file:
        number = count = 0
        is_start = True
        while count < REPORTS_MAX and (line := file.readline(LINE_BYTES_MAX)):
            starts, is_start = is_start, line.endswith(b"\n")
            number += starts
            if starts and line.startswith(PREFIX):
                word = line[len(PREFIX) :].strip()
                is_valid = word.isdigit() and len(word) <= DIGITS_MAX
                yield number, int(word) if is_valid else None
                count += 1
