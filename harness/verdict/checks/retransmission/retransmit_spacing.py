"""Checks that a sender does not repeat a response to a NAK within the linger time.

    NAKs     [--------)             [--------)      [--------)
    sent          #  #  #           ignored               #  #  #
                  |<------- 10 ms ------------->|

See `nak_response` for what a response is.
"""

import numpy as np
from numpy.typing import NDArray

from windtunnel.harness.artifact.noun_form import noun_for
from windtunnel.harness.dissect.frames.flow import positions
from windtunnel.harness.scenario.resolved.case import TrafficCase
from windtunnel.harness.verdict.checks.retransmission.linger_times import (
    LINGER_NS_MAX,
    linger_times,
)
from windtunnel.harness.verdict.checks.retransmission.nak_response import (
    has_one_port,
    has_single_responses,
    retransmits_of,
)
from windtunnel.harness.verdict.checks.retransmission.range_responses import (
    Retransmits,
    has_ranges,
    resent_too_soon,
)
from windtunnel.harness.verdict.core.evidence import Evidence
from windtunnel.harness.verdict.core.finding import Finding, failed, passed, present
from windtunnel.harness.verdict.core.virtual import is_virtual

SPACED = "retransmits_spaced"
LINGER_NS = 10_000_000
LINGER_SLACK_NS = 1_000_000
"""Tolerance for the timestamps of a capture."""


def retransmits_spaced(evidence: Evidence, traffic: TrafficCase) -> Finding:
    """A sender ignores a NAK for data that it retransmitted less than 10 ms ago.

    The linger time starts when the sender reads its clock, and the response may leave at any time
    after that. So two responses may be arbitrarily close, but a third one must follow the first by
    at least 10 ms. A sender of many ranges remembers each of them; another one only the last. In a
    simulation no response is delayed, so a second one within 10 ms is too early as well, wherever
    in the first one's range it begins; and a sender of many ranges sends no frame again.
    """
    wire = present(evidence.wire(traffic))
    where = (evidence.name_of(evidence.folder.capture(traffic.from_host)),)
    found = retransmits_of(wire)
    naks = wire.naks(wire.feedback_arrived_from_all)
    nak_positions = positions(naks, wire.facts.initial_term_id, wire.facts.term_length)
    nak_times_ns = naks["time_ns"].astype(np.int64)
    if has_single_responses(evidence, traffic) and is_virtual(evidence.case):
        again = _second_within(found, nak_positions, nak_times_ns)
        if again is not None:
            position, text = again
            return failed(SPACED, text, traffic.id, evidence=where, position=position)
    least_ns = LINGER_NS - LINGER_SLACK_NS
    remembers_all = has_ranges(evidence, traffic)
    setting_ns = linger_times(evidence, traffic).least_ns
    is_exact = is_virtual(evidence.case) and setting_ns < LINGER_NS_MAX
    if remembers_all and is_exact and has_one_port(wire):
        soon = resent_too_soon(wire, setting_ns - LINGER_SLACK_NS)
        if soon is not None:
            text = f"position {soon[0]} was retransmitted again after {soon[1]} ns, expected an "
            text += f"interval of {setting_ns} ns"
            return failed(SPACED, text, traffic.id, evidence=where, position=soon[0])
    starts, times_ns = found.starts, found.times_ns
    if remembers_all:
        order = np.argsort(starts, kind="stable")
        starts, times_ns = starts[order], times_ns[order]
    same = (starts[1:-1] == starts[:-2]) & (starts[2:] == starts[:-2])
    near = times_ns[2:] - times_ns[:-2] < least_ns
    for at in np.flatnonzero(same & near).tolist():
        first_ns, third_ns = int(times_ns[at]), int(times_ns[at + 2])
        position = int(starts[at])
        since_ns = _earliest_nak_ns(nak_times_ns[nak_positions == position], first_ns)
        between = (nak_times_ns > since_ns) & (nak_times_ns <= third_ns)
        # A unicast sender remembers its last response only; a NAK for another position replaces it.
        if not remembers_all and (nak_positions[between] != position).any():
            continue
        text = (
            f"position {position} was retransmitted three times within {third_ns - first_ns} ns, "
            f"expected an interval of {LINGER_NS} ns"
        )
        return failed(SPACED, text, traffic.id, evidence=where, position=position)
    responses = noun_for(len(found.starts), "response")
    text = f"{len(found.starts)} {responses}, none within the linger time of a previous one"
    return passed(SPACED, text, traffic.id, evidence=where)


def _second_within(
    found: Retransmits, nak_positions: NDArray[np.int64], nak_times_ns: NDArray[np.int64]
) -> tuple[int, str] | None:
    """Return the first response that begins in the range of the last one within the linger time,
    although no NAK for another range has come between them.
    """
    for at in range(len(found.starts) - 1):
        begin, end = int(found.starts[at]), int(found.ends[at])
        since_ns, position = int(found.times_ns[at]), int(found.starts[at + 1])
        passed_ns = int(found.times_ns[at + 1]) - since_ns
        if not begin <= position < end or passed_ns >= LINGER_NS - LINGER_SLACK_NS:
            continue
        after = nak_times_ns > since_ns
        between = nak_positions[after & (nak_times_ns <= since_ns + passed_ns)]
        if ((between >= begin) & (between < end)).all():
            return position, (
                f"position {position} was retransmitted again {passed_ns} ns after the response "
                f"from {begin} to {end}, expected an interval of {LINGER_NS} ns"
            )
    return None


def _earliest_nak_ns(nak_times_ns: NDArray[np.int64], answered_ns: int) -> int:
    """Return the time of the earliest NAK that may have caused a response.

    Later NAKs may have been read from the socket only after the response was sent.
    """
    recent = nak_times_ns[(nak_times_ns <= answered_ns) & (nak_times_ns > answered_ns - LINGER_NS)]
    return int(recent.min(initial=answered_ns))
