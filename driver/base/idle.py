"""Idle strategies of agents: spin, yield, sleep, or back off through all three.

The state of a strategy is a record array of length 1, which lets an agent idle without leaving its
compiled duty cycle. The defaults of the sleeps are those of Aeron 1.53, 1 us doubling to 1 ms. Its
10 spins and 20 yields are 60 yields here: an agent that spins keeps the processor from those that
have work, and one that sleeps is woken too late for the next message (docs/performance.md).

A thread that yields to one that spins waits until the scheduler takes the processor from that one,
4 ms on a kernel with 250 ticks a second. A thread that sleeps gets the processor when it wakes. So
an agent whose yields are often late sleeps instead.
"""

import numpy as np

from windtunnel.driver.base import system
from windtunnel.driver.kernels.jit import kernel

SPIN = 0
YIELD = 1
SLEEP = 2
BACKOFF = 3
NO_PARK = -1
"""Result of `park_ns` if the idle strategy does not sleep."""

LATE_NS = 2_000_000
"""Duration of a yield from which it is late: another thread has kept the processor."""
LATE_YIELD, IN_TIME_YIELD = 4, -1
"""What each yield adds to the lateness of an agent. The yield after a late one is often in time,
because the scheduler owes the agent the time that it has waited.
"""
LATENESS_MAX = 16
"""Lateness from which an agent sleeps instead of yielding. After that, one late yield suffices
among the next four.
"""
SLEEPS_COUNT = 1_000
"""Number of sleeps before an agent tries to yield again."""
SLEEP_NS = 200_000
"""Duration of each of these sleeps. Shorter ones take more processor time, and bring nothing."""

IDLE = np.dtype(
    (
        np.record,
        [
            ("mode", "i8"),  # SPIN, YIELD, SLEEP or BACKOFF
            ("spins_max", "i8"),
            ("yields_max", "i8"),
            ("park_ns_min", "i8"),
            ("park_ns_max", "i8"),
            ("misses", "i8"),  # consecutive duty cycles without work
            ("park_ns", "i8"),  # length of the next sleep
            ("lateness", "i8"),  # of the last yields, at most LATENESS_MAX
            ("sleeps_left", "i8"),  # to be made instead of yields
        ],
    )
)


def make_idle(
    mode: int = BACKOFF,
    *,
    spins_max: int = 0,
    yields_max: int = 60,
    park_ns_min: int = 1_000,
    park_ns_max: int = 1_000_000,
) -> np.recarray:
    """Create the state of an idle strategy. In SLEEP mode, each sleep lasts `park_ns_min`."""
    state = np.zeros(1, dtype=IDLE).view(np.recarray)
    state[0] = (mode, spins_max, yields_max, park_ns_min, park_ns_max, 0, park_ns_min, 0, 0)
    return state


@kernel
def after_turn(state, work_count):
    """Idle as the strategy specifies if the duty cycle did no work. Work resets the backoff."""
    length_ns = park_ns(state, work_count)
    if length_ns != NO_PARK:
        system.sleep_ns(length_ns)


@kernel
def until(state, work_count, limit_ns):
    """Idle like `after_turn`, but sleep at most `limit_ns`, or the shortest sleep if that is
    longer.
    """
    length_ns = park_ns(state, work_count)
    if length_ns != NO_PARK:
        system.sleep_ns(min(length_ns, max(limit_ns, state[0].park_ns_min)))


@kernel
def park_ns(state, work_count):
    """Idle like `after_turn`, but only spin or yield. If the strategy specifies a sleep, return its
    length in nanoseconds, otherwise NO_PARK.
    """
    rec = state[0]
    if work_count > 0:
        rec.misses = 0
        rec.park_ns = rec.park_ns_min
        return NO_PARK
    rec.misses += 1
    if rec.mode == YIELD:
        system.yield_cpu()
        return NO_PARK
    if rec.mode == SPIN or (rec.mode == BACKOFF and rec.misses <= rec.spins_max):
        return NO_PARK
    if rec.mode == BACKOFF and rec.misses <= rec.spins_max + rec.yields_max:
        return _yield(rec)
    length_ns = rec.park_ns
    if rec.mode == BACKOFF:
        rec.park_ns = min(length_ns * 2, rec.park_ns_max)
    return length_ns


@kernel
def _yield(rec):
    """Yield and return NO_PARK, or return how long to sleep instead, if yields were often late."""
    if rec.sleeps_left > 0:
        rec.sleeps_left -= 1
        return SLEEP_NS
    began_ns = system.monotonic_ns()
    system.yield_cpu()
    add_yield(rec, system.monotonic_ns() - began_ns)
    return NO_PARK


@kernel
def add_yield(rec, length_ns):
    """Record how long a yield took, and whether sleeps are to follow."""
    if length_ns < LATE_NS:
        rec.lateness = max(0, rec.lateness + IN_TIME_YIELD)
        return
    rec.lateness += LATE_YIELD
    if rec.lateness >= LATENESS_MAX:
        rec.lateness = LATENESS_MAX - 1
        rec.sleeps_left = SLEEPS_COUNT
