"""Kinds of requirements. The kind decides which failed gates may excuse a violation."""

from enum import StrEnum


class Kind(StrEnum):
    """The kind of a requirement, such as safety or timing. A violation can be of another kind than
    the check that found it.
    """

    SAFETY = "safety"
    "Messages are delivered complete, once and in order, and are in the log."
    PROTOCOL = "protocol"
    "Cause and effect in the protocol, regardless of time."
    STATE = "state"
    "The final values of counters."
    LIVENESS = "liveness"
    "Something happens eventually."
    TIMEOUT = "timeout"
    "No process waits until it times out. A timeout ends the run, so an early end is no excuse."
    TIMING = "timing"
    "Something happens soon enough, or not too soon."
    OWN = "own"
    "What a check of the user requires."


ZERO_TOLERANCE = frozenset({Kind.SAFETY, Kind.PROTOCOL, Kind.TIMEOUT})
"""Kinds for which a single violation, in any number of runs, is a failure."""

BROKEN_RUN_KINDS = frozenset(Kind) - {Kind.TIMEOUT}
"""Kinds of violations that an invalid run can cause."""

SLOW_HOST_KINDS = frozenset(Kind) - {Kind.PROTOCOL, Kind.TIMEOUT}
"""Kinds of violations that a slow host can cause: data arrives late or incomplete."""

STARVED_HOST_KINDS = SLOW_HOST_KINDS | {Kind.TIMEOUT}
"""Kinds of violations that a host can cause if it is starved for longer than the timeouts."""
