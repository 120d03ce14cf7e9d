"""Leaves out of trials what the real C driver is known to do wrong, so that other findings show.

A sender's driver finds the publication of a frame from a receiver by session id and stream id. The
C driver ignores the stream id if the session id is negative, and then accepts feedback whose stream
id is wrong: see docs/findings/negative-session-ids.md.
"""

from windtunnel.harness.scenario.resolved.fault_case import FaultCase

_FEEDBACK = ("SM", "NAK")


def without_known_defects(fault: FaultCase) -> FaultCase | None:
    """Return a fault rule without feedback that has a wrong stream id, or None if nothing is left
    of the rule.
    """
    if fault.field == "stream-id":
        types = tuple(each for each in fault.frame_types if each not in _FEEDBACK)
        return fault.model_copy(update={"frame_types": types}) if types else None
    if fault.forged:
        forged = tuple(
            each for each in fault.forged if each.is_same_stream or each.type not in _FEEDBACK
        )
        return fault.model_copy(update={"forged": forged}) if forged else None
    return fault
