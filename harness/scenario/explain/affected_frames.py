"""Estimates how many DATA frames a fault rule affects.

    all frames of the stream ---- earlier rules ---- this rule
    retransmits of those that rules drop  --- earlier rules ---- this rule

A rule is for all frames of a link, for all first attempts, or for particular frames, such as those
at a position. How often particular frames are lost and sent again is not estimated.
"""

from collections.abc import Sequence

from windtunnel.harness.scenario.explain.stream_length import expected_data_frames
from windtunnel.harness.scenario.resolved.case import Case
from windtunnel.harness.scenario.resolved.fault_case import CountCase, FaultCase

EVERY_ATTEMPT, FIRST_ATTEMPT = CountCase(), CountCase(first=1, last=1)


def affected_frames(case: Case, fault: FaultCase) -> float:
    """Estimate the number of DATA frames that a rule affects, including retransmissions. Returns 0
    if the rule is for particular frames.
    """
    total = 0.0
    if not (fault.is_plain or _is_for_first_attempts(fault)):
        return total
    for traffic in case.traffic:
        for flow in traffic.flows:
            forward = case.link_names[case.link_between(flow.from_host, flow.to_host)]
            if "DATA" not in fault.frame_types or forward not in fault.links:
                continue
            earlier = case.faults[: case.faults.index(fault)]
            reaching = _passing(earlier, forward, is_first=True)
            if traffic.reliable and fault.attempt != FIRST_ATTEMPT:
                reaching += _retransmits(case, forward) * _passing(earlier, forward, is_first=False)
            total += expected_data_frames(traffic) * reaching * fault.share
    return total


def _passing(faults: Sequence[FaultCase], link: str, *, is_first: bool) -> float:
    """Return the share of DATA frames, sent for the first time or again, to which none of these
    rules applies. Rules for particular frames do not count.
    """
    share = 1.0
    for each in faults:
        is_for_all = each.is_plain or (is_first and _is_for_first_attempts(each))
        if is_for_all and "DATA" in each.frame_types and link in each.links:
            share *= 1 - each.share
    return share


def _is_for_first_attempts(fault: FaultCase) -> bool:
    is_plain = fault.model_copy(update={"attempt": EVERY_ATTEMPT}).is_plain
    return is_plain and fault.attempt == FIRST_ATTEMPT


def _retransmits(case: Case, link: str) -> float:
    """Return how often the average DATA frame is sent again."""
    dropping = [each for each in case.faults if each.action == "drop"]
    lost = 1 - _passing(dropping, link, is_first=True)
    return lost / max(_passing(dropping, link, is_first=False), 0.01)
