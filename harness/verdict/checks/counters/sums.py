"""Checks that counters of a whole driver agree with the counters and records that they summarize,
and that nothing else was recorded.

    Sender flow control limits     the sum of snd-bpe of all publications
    Errors                         the observations in the error log
    Short sends                    0, if no socket is smaller than what a sender sends at once
    error log                      only errors that an exercise causes, and each rejection that
                                   reached a publication

The sampler reads all counters in one pass, but not at once, and freed counters keep their last
value. So the sums are exact where nothing happens during a pass: in a simulation.
"""

from collections.abc import Mapping

from windtunnel.harness.dissect.driver_files import counter_key
from windtunnel.harness.scenario.exercises import ExerciseName
from windtunnel.harness.scenario.resolved.case import TrafficCase
from windtunnel.harness.scenario.schema.channel import parse_channel
from windtunnel.harness.verdict.checks.counters.rejections import unrecorded
from windtunnel.harness.verdict.core.evidence import Evidence
from windtunnel.harness.verdict.core.finding import (
    Finding,
    Missing,
    failed,
    finding_of,
    inconclusive,
    passed,
    present,
)
from windtunnel.harness.verdict.core.virtual import is_virtual

ADD_UP = "system_counters_add_up"

CAUSED: Mapping[ExerciseName, tuple[str, ...]] = {
    "image-rejection": ("onPublicationError",),
    "sessions": ("(-1) invalid channel",),
}
"""How the texts of the errors begin that an exercise causes, in the logs of ours and of Aeron's
drivers.
"""


def system_counters_add_up(evidence: Evidence, traffics: list[TrafficCase]) -> list[Finding]:
    """A driver's counter of flow control limits is the sum of snd-bpe, its counter of errors the
    number of observations in its error log, all of which have a cause and which has each rejection
    of a receiver, and no send is short without a small send buffer, in a simulation.
    """
    hosts = [each.name for each in present(evidence.case).hosts]
    return [finding_of(ADD_UP, each, _host, evidence, each) for each in hosts]


def _host(evidence: Evidence, host: str) -> Finding:
    case = present(evidence.case)
    if not is_virtual(case):
        text = "not compared: in real time, counters change while they are read"
        return passed(ADD_UP, text, host)
    counted, errors = present(evidence.host_counters(host), evidence.error_log(host))
    files = evidence.folder.host(host)
    where = tuple(evidence.name_of(each) for each in (files.counters, files.cnc_errors))
    counters = counted.counters
    limits = sum(
        each.final_value
        for each in counters
        if each.type_id == counter_key.SENDER_BACK_PRESSURE_EVENTS
    )
    expected = {
        counter_key.FLOW_CONTROL_LIMITS: (limits, "the sum of snd-bpe"),
        counter_key.ERRORS: (sum(each.count for each in errors), "the length of the error log"),
    }
    if not _may_send_short(evidence, host):
        expected[counter_key.SHORT_SENDS] = 0, "because no socket has a small buffer"
    for counter_id, (value, what) in expected.items():
        counter = counter_key.system_counter(counters, counter_id)
        if counter is None:
            missing = Missing(where[0], f"has no system counter {counter_id}")
            return inconclusive(ADD_UP, missing, host)
        if counter.final_value != value:
            text = f"counter {counter.label!r} is {counter.final_value}, expected {value}, {what}"
            return failed(ADD_UP, text, host, evidence=where)
    caused = tuple(text for exercise in case.exercises for text in CAUSED.get(exercise, ()))
    for each in errors:
        if not each.text.startswith(caused):
            shown = ", ".join(each.text.splitlines()[:2])
            text = f"the error log has an error without a known cause: {shown}"
            return failed(ADD_UP, text, host, evidence=where)
    capture = present(evidence.capture(host))
    lacking = unrecorded(capture, case.address(host), errors)
    if lacking:
        text = f"the error log has no entry of a rejection that arrived: {lacking}"
        where = (*where, evidence.name_of(evidence.folder.capture(host)))
        return failed(ADD_UP, text, host, evidence=where)
    text = f"{limits} flow control limits, {expected[counter_key.ERRORS][0]} errors"
    return passed(ADD_UP, text, host, evidence=where)


def _may_send_short(evidence: Evidence, host: str) -> bool:
    """Return whether a socket of a host may have been full. Simulated sockets have room for all
    that the driver `ours` sends in a turn, unless a channel specifies a smaller buffer.
    """
    subject, case = evidence.subject(host), present(evidence.case)
    if case.exercises or (subject is not None and subject.is_aerons):
        return True
    channels = [parse_channel(each.channel) for each in case.traffic if host in each.publishers]
    return any(each.send_buffer_bytes for each in channels)
