"""What sort of promise a check is about, which decides what may excuse a violation of it."""

from enum import StrEnum


class Kind(StrEnum):
    """The sort of a check, or of one violation where that is another."""

    SAFETY = "safety"
    "What was delivered: whole, once, in order, and in the log."
    PROTOCOL = "protocol"
    "Cause and effect in the protocol; how long anything takes is no part of it."
    STATE = "state"
    "What the counters say when all is over."
    LIVENESS = "liveness"
    "That something happens in the end."
    TIMEOUT = "timeout"
    "That nobody waits in vain until he leaves: that ends a run, so the end is no excuse."
    TIMING = "timing"
    "That it happens soon enough, or not too soon."


ZERO_TOLERANCE = frozenset({Kind.SAFETY, Kind.PROTOCOL, Kind.TIMEOUT})
"""One violation in any number of runs is too many."""

OF_A_BROKEN_RUN = frozenset(Kind) - {Kind.TIMEOUT}
"""What can go wrong because a run was not what it should have been."""

OF_A_SLOW_HOST = frozenset(Kind) - {Kind.PROTOCOL, Kind.TIMEOUT}
"""What can go wrong because a host was too slow: nothing comes in time, or in whole."""

OF_A_STARVED_HOST = OF_A_SLOW_HOST | {Kind.TIMEOUT}
"""The same, where it was so for longer than anybody waits."""
