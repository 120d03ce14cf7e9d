"""Idle strategies of agents: spin, yield, sleep, or back off through all three.

The state of a strategy is a record array of length 1, which lets an agent idle without leaving its
compiled duty cycle. The defaults of the sleeps are those of Aeron 1.53, 1 us doubling to 1 ms. Its
10 spins and 20 yields are 60 yields here: an agent that spins keeps the processor from those that
have work, and one that sleeps is woken too late for the next message (docs/performance.md).

A thread that yields to one that spins waits until the scheduler takes the processor from that one,
4 ms on a kernel with 250 ticks a second. A thread that sleeps gets the processor when it wakes. So
an agent whose yields are often late makes none for a while: it backs off by sleeping at once.
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
"""Duration from which a yield is late: another thread has kept the processor."""
LATE_YIELD, IN_TIME_YIELD = 3, -1
"""What each yield adds to the lateness of an agent. A late yield counts more, because the scheduler
owes an agent that has waited, whose next yield is in time.
"""
LATENESS_MAX = 16
"""Lateness from which an agent no longer yields. When it tries again, one late yield among the
first three suffices.
"""
SLEEPS_COUNT = 1_000
"""Number of sleeps before an agent yields again."""
CONTENDED_PARK_NS = 200_000
"""Duration of the first sleep of an agent that does not yield. Shorter sleeps take more processor
time from the threads that have work, and bring nothing.
"""

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
            ("lateness", "i8"),  # of the last yields, below LATENESS_MAX
            ("sleeps_left", "i8"),  # before the agent yields again
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
    if rec.mode == BACKOFF:
        return _back_off(rec)
    return rec.park_ns


@kernel
def _back_off(rec):
    """Yield, or return the length of the next sleep."""
    if rec.sleeps_left > 0:
        rec.sleeps_left -= 1
        rec.park_ns = max(rec.park_ns, min(CONTENDED_PARK_NS, rec.park_ns_max))
    elif rec.misses <= rec.spins_max + rec.yields_max:
        began_ns = system.monotonic_ns()
        system.yield_cpu()
        add_yield(rec, system.monotonic_ns() - began_ns)
        return NO_PARK
    length_ns = rec.park_ns
    rec.park_ns = min(length_ns * 2, rec.park_ns_max)
    return length_ns


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
