"""Check of a scenario's timed expectations: what a fault rule has matched is answered in time.

    middlebox: rule applies ----- at most `within` -----> the answer leaves its host
                                                          (pauses of its driver do not count)

The time is that between the decision of the middlebox and the capture at the host that answers. It
is exact in a simulation.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from windtunnel.harness.artifact.middlebox.decision import NO_POSITION
from windtunnel.harness.artifact.middlebox.frame_class import NAMES
from windtunnel.harness.artifact.noun_form import counted
from windtunnel.harness.artifact.records import Records
from windtunnel.harness.dissect.frames.route import between
from windtunnel.harness.scenario.frame_expectation import (
    AFTER,
    FROM,
    NAME,
    TO,
    FrameExpectation,
    parse_expectation,
)
from windtunnel.harness.scenario.resolved.case import Case
from windtunnel.harness.scenario.schema.units import format_duration
from windtunnel.harness.verdict.checks.timed.answers import Answers, met_between
from windtunnel.harness.verdict.core.evidence import Evidence
from windtunnel.harness.verdict.core.finding import (
    AtFault,
    Finding,
    Missing,
    failed,
    finding_of,
    inconclusive,
    passed,
    present,
)
from windtunnel.harness.verdict.core.outcome import Outcome
from windtunnel.harness.verdict.views.pauses import pauses_of

TRAFFIC_PHASE = "traffic"


@dataclass(frozen=True)
class _Compared:
    """The frames that a rule has matched, and how each was answered."""

    met: Records
    due_ns: list[int]
    counts: list[int]
    waits_ns: list[int]
    "Times of the first answers that came in time, after the decisions."
    wrong: list[int]
    "Indices of the frames that were answered too seldom, or although there must be no answer."
    unknown: list[int]
    "Indices of the frames for which the run ended too early."


def expected_frames(evidence: Evidence, arguments: Mapping[str, Any]) -> list[Finding]:
    """Each frame that a fault rule has matched is followed in time by the frames that the scenario
    expects, such as a NAK of its range.
    """
    expected = parse_expectation(arguments)
    return [finding_of(NAME, expected.about, _found, evidence, expected)]


def _found(evidence: Evidence, expected: FrameExpectation) -> Finding:
    case = present(evidence.case)
    if text := _unknown_name(expected, case):
        damaged = Missing(evidence.name_of(evidence.folder.case), text, damaged=True)
        return inconclusive(NAME, damaged, expected.about)
    decisions, capture, pauses = present(
        evidence.decisions,
        evidence.capture(expected.from_host),
        pauses_of(evidence, expected.from_host),
    )
    ends = (expected.from_host, expected.to_host)
    links = [code for code, each in enumerate(case.directions) if {*each} == {*ends}]
    rule = next(code for code, each in enumerate(case.faults) if each.id == expected.after)
    met = met_between(decisions, rule, links)
    where = tuple(
        evidence.name_of(each)
        for each in (evidence.folder.decisions, evidence.folder.capture(expected.from_host))
    )
    if len(met) == 0:
        text = f"rule {expected.after} matched no frame between {' and '.join(sorted(ends))}"
        at_fault = AtFault.SCENARIO
        return Finding(NAME, Outcome.INCONCLUSIVE, text, expected.about, where, at_fault=at_fault)
    sent = capture.frames[between(capture.frames, *(case.address(each) for each in ends))]
    due_ns = pauses.due_ns(met["time_ns"].astype(np.int64), expected.within_ns)
    answers = Answers(sent, expected.then)
    compared = _compare(met, due_ns.tolist(), answers, expected.count, _ended_ns(evidence))
    return _finding(expected, case, compared, answers, where)


def _unknown_name(expected: FrameExpectation, case: Case) -> str:
    """Return which name of an expectation the case lacks, or an empty string. A run folder may be
    untrusted, and a name of a host is part of a path.
    """
    hosts, rules = [each.name for each in case.hosts], [each.id for each in case.faults]
    for argument, name, known in (
        (FROM, expected.from_host, hosts),
        (TO, expected.to_host, hosts),
        (AFTER, expected.after, rules),
    ):
        if name not in known:
            return f"expected `{argument}` to name one of {', '.join(known)}, found {name!r}"
    return ""


def _compare(
    met: Records, due_ns: list[int], answers: Answers, least: int, ended_ns: int
) -> _Compared:
    counts, waits_ns, wrong, unknown = [], [], [], []
    for index, each in enumerate(met):
        times_ns = answers.times_ns(each, due_ns[index])
        counts.append(len(times_ns))
        if len(times_ns):
            waits_ns.append(int(times_ns[0]) - int(each["time_ns"]))
        if (counts[-1] > 0) if least == 0 else (counts[-1] < least and due_ns[index] <= ended_ns):
            wrong.append(index)
        elif due_ns[index] > ended_ns and (least == 0 or counts[-1] < least):
            unknown.append(index)
    return _Compared(met, due_ns, counts, waits_ns, wrong, unknown)


def _ended_ns(evidence: Evidence) -> int:
    """Return the time at which the drivers may have ended: the end of the traffic."""
    manifest = evidence.manifest
    phases = () if isinstance(manifest, Missing) else manifest.phases
    return max((each.ended_ns for each in phases if each.name == TRAFFIC_PHASE), default=0)


def _finding(
    expected: FrameExpectation,
    case: Case,
    compared: _Compared,
    answers: Answers,
    where: tuple[str, ...],
) -> Finding:
    total, within = len(compared.met), format_duration(expected.within_ns)
    facts = {"frames": total, "wrong": len(compared.wrong), "unknown": len(compared.unknown)}
    more: dict[str, Any] = {"evidence": where, "facts": facts}
    answer = f"{expected.then} from {expected.from_host} to {expected.to_host}"
    if not compared.wrong and not compared.unknown:
        text = f"{counted(total, 'frame')} that {expected.after} matched: "
        if expected.count == 0:
            text += f"no {answer} within {within}"
        else:
            text += f"each was followed by {_what(expected, answer)} within {within}, "
            waits_ns = compared.waits_ns
            text += f"the first after {min(waits_ns)} to {max(waits_ns)} ns"
        return passed(NAME, text, expected.about, **more)
    index = (compared.wrong or compared.unknown)[0]
    met = compared.met[index]
    decided_ns, position = int(met["time_ns"]), int(met["position"])
    facts |= {"decided_ns": decided_ns, "due_ns": compared.due_ns[index]}
    if position != NO_POSITION:
        more["position"] = position
    text = f"{_frame_text(case, met)}, which {expected.after} matched at {decided_ns} ns"
    if compared.wrong:
        text += f": {_wrong_text(expected, answer, compared, answers, index)}"
        many = f"{len(compared.wrong)} of {counted(total, 'frame')}: "
        return failed(NAME, many + text, expected.about, **more)
    text += f": the run ended before {within} had passed, "
    found = f"{compared.counts[index]} of " if expected.count else ""
    text += f"with {found}{_what(expected, answer)}"
    many = f"{len(compared.unknown)} of {counted(total, 'frame')}: "
    return Finding(NAME, Outcome.INCONCLUSIVE, many + text, expected.about, **more)


def _what(expected: FrameExpectation, answer: str) -> str:
    """Return the expected answers as text, such as `2 NAK from b to a`."""
    return f"no {answer}" if expected.count == 0 else f"{expected.count} {answer}"


def _wrong_text(
    expected: FrameExpectation, answer: str, compared: _Compared, answers: Answers, index: int
) -> str:
    met, within = compared.met[index], format_duration(expected.within_ns)
    times_ns = answers.times_ns(met)
    wait = "none followed"
    if len(times_ns):
        wait = f"the first one left after {int(times_ns[0]) - int(met['time_ns'])} ns"
    found = f"{compared.counts[index]} within {within}; {wait}"
    return f"expected {_what(expected, answer)}, found {found}"


def _frame_text(case: Case, met: Any) -> str:
    source, destination = case.directions[int(met["link"])]
    text = f"{NAMES[int(met['frame_type'])]} of stream {met['stream_id']}, session "
    text += f"{met['session_id']}, "
    if int(met["position"]) != NO_POSITION:
        text += f"position {met['position']}, attempt {met['attempt']}, "
    return f"{text}from {source} to {destination}"
